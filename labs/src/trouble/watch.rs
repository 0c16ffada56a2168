//! What viewers notice of faults, and what health says meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::figures::rounded;
use crate::media::wall_nanos;
use crate::trouble::audience::Viewer;
use crate::trouble::fault::{CATCH_UP, Fault, Trouble};
use crate::trouble::health::Lie;
use crate::trouble::scene::{STREAMS, Scene};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long `/healthz` may take.
const HEALTH_WITHIN: Duration = Duration::from_secs(1);

/// What goes on while faults are watched: what this does each time that it is called, a few times a second.
pub(crate) type Life<'l> = dyn FnMut(&mut Scene<'_>) -> Result<()> + 'l;

/// What came of faults.
#[derive(Debug, Default)]
pub struct Noticed {
    /// Packets lost by viewers that the faults do not concern.
    pub lost: u64,
    /// The longest time for which one of them got none.
    pub gap: Duration,
    /// Of those that they concern, and how many there are.
    own_lost: u64,
    own_gap: Duration,
    concerned: usize,
    /// How long it took until all of them were up with their source.
    back: Duration,
    /// The most memory that the relay had.
    rss: u64,
    /// The first time that health did not tell the truth.
    lie: Option<Lie>,
    /// How much the faults have done: datagrams, connections, guesses.
    done: u64,
    /// All is as it was: the relay lives, and every viewer is up with its source.
    pub is_well: bool,
}

impl Noticed {
    /// All is well so far.
    pub fn nothing() -> Self {
        Self { is_well: true, ..Self::default() }
    }

    /// Takes in what came of further faults.
    pub fn add(&mut self, other: &Noticed) {
        self.lost += other.lost;
        self.gap = self.gap.max(other.gap);
        self.rss = self.rss.max(other.rss);
        self.lie = self.lie.take().or_else(|| other.lie.clone());
        self.is_well &= other.is_well;
    }

    /// As they are told.
    pub fn figures(&self) -> Value {
        let ms = |gap: Duration| rounded(gap.as_secs_f64() * 1e3);
        let mut figures = json!({
            "lost": self.lost,
            "gap_ms": ms(self.gap),
            "rss_mb": rounded(self.rss as f64 / 1e6),
            "health_true": self.lie.is_none(),
            "recovered": self.is_well,
        });
        if let Some(lie) = &self.lie {
            figures["health_lie"] = lie.figures();
        }
        if self.done > 0 {
            figures["done"] = json!(self.done);
        }
        if self.concerned > 0 {
            figures["concerned"] = json!(self.concerned);
            figures["own_lost"] = json!(self.own_lost);
            figures["own_gap_ms"] = json!(ms(self.own_gap));
            figures["back_ms"] = json!(ms(self.back));
        }
        figures
    }
}

/// Has faults happen for a while, and looks what viewers notice until they have caught up.
pub(crate) fn measure(
    scene: &mut Scene<'_>,
    faults: &[&Fault],
    time: Duration,
    life: &mut Life<'_>,
) -> Result<Noticed> {
    let mut watch = Watch::begin(scene, faults)?;
    let until = Instant::now() + time;
    let mut troubles: Vec<(&str, Box<dyn Trouble>)> = Vec::new();
    for fault in faults {
        match (fault.begin)(scene) {
            Ok(trouble) => troubles.push((fault.name, trouble)),
            Err(_) if !scene.relay.process().alive() => {}
            Err(error) => return Err(error.context(fault.name)),
        }
    }
    while Instant::now() < until {
        for (name, trouble) in &mut troubles {
            let went_on = trouble.go_on(scene);
            or_relay_is_gone(scene, name, went_on, ())?;
        }
        life(scene)?;
        watch.look(scene)?;
        std::thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
    for (name, trouble) in troubles.into_iter().rev() {
        let undone = trouble.undo(scene);
        watch.noticed.done += or_relay_is_gone(scene, name, undone, 0)?;
    }
    watch.end(scene, faults.iter().map(|fault| fault.back_within).max().unwrap_or_default())
}

/// What cannot be done because the relay is gone shows in what viewers lose.
fn or_relay_is_gone<T>(scene: &mut Scene<'_>, name: &str, result: Result<T>, otherwise: T) -> Result<T> {
    if result.is_err() && !scene.relay.process().alive() {
        return Ok(otherwise);
    }
    result.with_context(|| name.to_owned())
}

/// What was seen so far.
struct Watch {
    /// When the faults began.
    began: Instant,
    viewers: Vec<Seen>,
    /// When anything came of each stream to viewers that are not concerned; `None` if all are concerned.
    flowed: [Option<Instant>; STREAMS.len()],
    noticed: Noticed,
}

/// Of one viewer.
struct Seen {
    viewer: Viewer,
    is_concerned: bool,
    lost: u64,
    gap: Duration,
    newest: u32,
    is_gone: bool,
}

impl Seen {
    /// How much of this many sent has not come yet.
    fn behind(&self, sent: u32) -> u64 {
        u64::from(sent.saturating_sub(self.newest + 1))
    }
}

impl Watch {
    fn begin(scene: &Scene<'_>, faults: &[&Fault]) -> Result<Self> {
        let meters = scene.audience.split()?;
        let viewers = scene.viewers.iter().zip(meters).map(|(viewer, meter)| Seen {
            viewer: *viewer,
            is_concerned: faults.iter().any(|fault| fault.concerns.viewer(viewer)),
            lost: 0,
            gap: Duration::ZERO,
            newest: meter.newest().unwrap_or_default(),
            is_gone: meter.ended.is_some(),
        });
        let viewers: Vec<Seen> = viewers.collect();
        let flowed = std::array::from_fn(|stream| {
            let is_watched = |seen: &Seen| seen.viewer.stream == stream && !seen.is_concerned;
            viewers.iter().any(is_watched).then(Instant::now)
        });
        Ok(Self { began: Instant::now(), viewers, flowed, noticed: Noticed::nothing() })
    }

    /// Asks for health, and takes what viewers have got.
    fn look(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        let (at, answer) = (self.began.elapsed(), scene.relay.answer("GET", "/healthz", HEALTH_WITHIN));
        let (meters, now) = (scene.audience.split()?, wall_nanos());
        for (seen, meter) in self.viewers.iter_mut().zip(meters) {
            seen.lost += meter.lost.max(meter.rtp_lost);
            seen.gap = seen.gap.max(meter.longest_gap(now));
            seen.newest = meter.newest().unwrap_or(seen.newest);
            seen.is_gone |= meter.ended.is_some();
            if let Some(flowed) = &mut self.flowed[seen.viewer.stream]
                && meter.datagrams > 0
                && !seen.is_concerned
            {
                *flowed = Instant::now();
            }
        }
        let still = self.flowed.iter().flatten().map(Instant::elapsed).max().unwrap_or_default();
        let lie = Lie::of(at, &answer, still, scene.relay.process().alive());
        self.noticed.lie = self.noticed.lie.take().or(lie);
        self.noticed.rss = self.noticed.rss.max(scene.relay.resident().unwrap_or(0));
        Ok(())
    }

    /// Waits until viewers have all that was sent.
    fn end(mut self, scene: &mut Scene<'_>, back_within: Duration) -> Result<Noticed> {
        let (sent, over) = (scene.sent(), Instant::now());
        let lags = |seen: &Seen| !seen.is_gone && seen.behind(sent[seen.viewer.stream]) > 0;
        loop {
            std::thread::sleep(LOOK_EVERY);
            self.look(scene)?;
            let others_may = over.elapsed() < CATCH_UP;
            let may = |seen: &Seen| if seen.is_concerned { over.elapsed() < back_within } else { others_may };
            if !self.viewers.iter().any(|seen| lags(seen) && may(seen)) {
                break;
            }
        }
        self.noticed.back = over.elapsed();
        let mut noticed = self.noticed;
        noticed.is_well = scene.relay.process().alive() && scene.senders.iter().all(Option::is_some);
        for seen in &self.viewers {
            let behind = seen.behind(sent[seen.viewer.stream]);
            noticed.is_well &= behind == 0 && !seen.is_gone;
            let (lost, gap) = match seen.is_concerned {
                true => (&mut noticed.own_lost, &mut noticed.own_gap),
                false => (&mut noticed.lost, &mut noticed.gap),
            };
            *lost += seen.lost + behind;
            *gap = (*gap).max(seen.gap);
            noticed.concerned += usize::from(seen.is_concerned);
        }
        Ok(noticed)
    }
}
