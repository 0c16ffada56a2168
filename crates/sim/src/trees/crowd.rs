//! Receivers that come, go and change their levels.

use core::time::Duration;

use outflow_routing::Level;
use outflow_routing::tree::StreamId;

use super::network::Network;

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

impl Network {
    /// As many receivers as there are in the crowd come to the relay, each with a level of its own.
    pub fn gather(&mut self, relay: usize, stream: StreamId, crowd: &Crowd) {
        let mut counts = [0; WORST as usize];
        for _ in 0..crowd.receivers {
            counts[usize::from(self.draw().number()) - 1] += 1;
        }
        for (number, count) in (1..).zip(counts) {
            if let Some(level) = Level::new(number).filter(|_| count > 0) {
                self.set_receivers(relay, stream, level, count);
            }
        }
    }

    /// All receivers of the stream leave the relay.
    pub fn scatter(&mut self, relay: usize, stream: StreamId) {
        let view = self.relays[relay].view(stream);
        let there: Vec<_> = view.into_iter().flat_map(|view| &view.receivers).collect();
        let levels: Vec<_> =
            there.into_iter().filter(|(_, count)| **count > 0).map(|(level, _)| *level).collect();
        for level in levels {
            self.set_receivers(relay, stream, level, 0);
        }
    }

    /// From now on receivers come, go and change as this crowd does, or no more.
    pub fn set_crowd(&mut self, crowd: Option<Crowd>) {
        let was = core::mem::replace(&mut self.crowd, crowd);
        if let Some(crowd) = crowd
            && was.is_none()
        {
            for relay in 0..self.relays.len() {
                self.change_again(relay, &crowd);
            }
        }
    }

    fn change_again(&mut self, relay: usize, crowd: &Crowd) {
        // Times between changes of a relay's receivers are exponential.
        let mean = crowd.stay.as_secs_f64() / crowd.receivers.max(1) as f64;
        let wait = -mean * (1.0 - self.random.f64()).ln();
        self.change_after(Duration::from_secs_f64(wait), relay);
    }

    /// One of the receivers at a relay changes its level; now and then, all go or come.
    pub(super) fn change(&mut self, relay: usize) {
        let Some(crowd) = self.crowd else { return };
        let wanted = self.relays[relay].views.iter().filter(|(_, view)| !view.receivers.is_empty());
        let streams: Vec<_> = wanted.map(|(stream, _)| *stream).collect();
        if !streams.is_empty() {
            let stream = streams[self.random.usize(..streams.len())];
            let is_there = self.relays[relay].view(stream).is_some_and(super::relay::View::is_wanted);
            let lasts = if is_there { crowd.presence } else { crowd.absence };
            let changes_each = lasts.as_secs_f64() / crowd.stay.as_secs_f64() * crowd.receivers as f64;
            let is_all = self.random.f64() * changes_each < 1.0;
            match (is_there, is_all) {
                (true, false) => self.change_one(relay, stream),
                (true, true) => self.scatter(relay, stream),
                (false, true) => self.gather(relay, stream, &crowd),
                (false, false) => (),
            }
        }
        self.change_again(relay, &crowd);
    }

    fn change_one(&mut self, relay: usize, stream: StreamId) {
        let Some(view) = self.relays[relay].view(stream) else { return };
        let mut which = self.random.u64(..view.receivers.values().sum::<u64>().max(1));
        let levels = view.receivers.iter().map(|(level, count)| (*level, *count));
        let levels: Vec<_> = levels.collect();
        let from = levels.iter().find(|(_, count)| {
            let is_here = which < *count;
            which = which.saturating_sub(*count);
            is_here
        });
        let Some((from, count)) = from.copied() else { return };
        let to = self.draw();
        if to != from {
            let there = levels.iter().find(|(level, _)| *level == to).map_or(0, |(_, count)| *count);
            self.set_receivers(relay, stream, to, there + 1);
            self.set_receivers(relay, stream, from, count - 1);
        }
    }

    /// Half of all want the worst level, half of the others the next, and so on: what is best at a relay
    /// is in the hands of few.
    fn draw(&mut self) -> Level {
        let better = self.random.u64(..).trailing_ones().min(u32::from(WORST) - 1) as u8;
        Level::new(WORST - better).expect("at least 1")
    }
}
