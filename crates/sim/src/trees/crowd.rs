//! Receivers that come, go and change their levels.

use core::time::Duration;

use fastrand::Rng;
use outflow_routing::Level;
use outflow_routing::tree::StreamId;

use super::relay::{Relay, View};

/// The worst level that is asked for.
const WORST: u8 = 8;

/// How many receivers there are, and how often they change their minds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    /// Receivers of a stream at a relay that has any.
    pub receivers: u64,
    /// How long, in the mean, a receiver stays at a level. Then it leaves and another comes.
    pub stay: Duration,
    /// How long, in the mean, until all at a relay go at once, if it has one stream; longer by as much as it has
    /// more.
    pub presence: Duration,
    /// How long, in the same way, until as many come again.
    pub absence: Duration,
}

impl Crowd {
    /// How many receivers come at which level, each with one of its own.
    pub(super) fn arrivals(&self, random: &mut Rng) -> Vec<(Level, u64)> {
        let mut counts = [0; WORST as usize];
        for _ in 0..self.receivers {
            counts[usize::from(draw(random).number()) - 1] += 1;
        }
        let of = |(number, count)| Some((Level::new(number).filter(|_| count > 0)?, count));
        (1..).zip(counts).filter_map(of).collect()
    }

    /// How long it is until the next change at a relay.
    pub(super) fn wait(&self, random: &mut Rng) -> Duration {
        // Times between changes of a relay's receivers are exponential.
        let mean = self.stay.as_secs_f64() / self.receivers.max(1) as f64;
        Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln())
    }

    /// One of the receivers at a relay changes its level; now and then, all go or come. Of which stream, and how
    /// many want which level then.
    pub(super) fn change(&self, relay: &Relay, random: &mut Rng) -> Option<(StreamId, Vec<(Level, u64)>)> {
        let wanted = relay.views.iter().filter(|(_, view)| !view.receivers.is_empty());
        let streams: Vec<_> = wanted.collect();
        if streams.is_empty() {
            return None;
        }
        let (stream, view) = streams[random.usize(..streams.len())];
        let is_there = view.is_wanted();
        let lasts = if is_there { self.presence } else { self.absence };
        let changes_each = lasts.as_secs_f64() / self.stay.as_secs_f64() * self.receivers as f64;
        let is_all = random.f64() * changes_each < 1.0;
        let wishes = match (is_there, is_all) {
            (true, false) => change_one(view, random),
            (true, true) => departures(view),
            (false, true) => self.arrivals(random),
            (false, false) => Vec::new(),
        };
        Some((*stream, wishes))
    }
}

/// All receivers leave.
pub(super) fn departures(view: &View) -> Vec<(Level, u64)> {
    let there = view.receivers.iter().filter(|(_, count)| **count > 0);
    there.map(|(level, _)| (*level, 0)).collect()
}

fn change_one(view: &View, random: &mut Rng) -> Vec<(Level, u64)> {
    let mut which = random.u64(..view.receivers.values().sum::<u64>().max(1));
    let from = view.receivers.iter().find(|(_, count)| {
        let is_here = which < **count;
        which = which.saturating_sub(**count);
        is_here
    });
    let Some((from, count)) = from else { return Vec::new() };
    let to = draw(random);
    if to == *from {
        return Vec::new();
    }
    let there = view.receivers.get(&to).copied().unwrap_or(0);
    vec![(to, there + 1), (*from, count - 1)]
}

/// Half of all want the worst level, half of the others the next, and so on: what is best at a relay
/// is in the hands of few.
fn draw(random: &mut Rng) -> Level {
    let better = random.u64(..).trailing_ones().min(u32::from(WORST) - 1) as u8;
    Level::new(WORST - better).expect("at least 1")
}
