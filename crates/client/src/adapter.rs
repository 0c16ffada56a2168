//! Adapts the level of a subscription. No I/O, no clock.

use core::fmt;

use outflow_adapt::{Adaptation, Arrival, Reason, Resources};
use outflow_media::{Format, Time};
use serde::Serialize;

use crate::{Packet, Received, RtpStamp};

/// Changes that are remembered; later ones are counted alone.
const CHANGES_MAX: usize = 1000;

/// A level that was asked for, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// The level before.
    pub from: u8,
    /// The level that was asked for.
    pub to: u8,
    /// Why.
    pub why: Reason,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {} instead of {}: {}", self.to, self.from, self.why)
    }
}

/// Watches what is received, and says what to ask for.
///
/// What [`Subscription::recv`](crate::Subscription::recv) yields goes to [`received`](Adapter::received); what
/// [`decide`](Adapter::decide) says then goes to
/// [`Subscription::ask_level`](crate::Subscription::ask_level). The first wish makes the relay tell what each
/// level costs; before that nothing can be decided.
#[derive(Debug)]
pub struct Adapter {
    adaptation: Adaptation,
    main: u8,
    timeline: Timeline,
    /// The number that is to come next.
    expected: Option<(u32, u16)>,
    /// Bytes a second of each level, the best first.
    rates: Vec<u64>,
    /// The level that was asked for last.
    asked: Option<u8>,
    /// The level that the relay says it sends.
    granted: Option<u8>,
    changes: Vec<Change>,
    total: u64,
}

/// The numbers of an adapter, as `outflow watch --json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdapterSummary {
    /// The level that the relay sends; 1 is the best.
    pub level: Option<u8>,
    /// Bits a second of each level, the best first.
    pub rates_bps: Vec<u64>,
    /// Levels that were asked for after the first one.
    pub changes: u64,
    /// The first of these, at most a thousand.
    pub decisions: Vec<DecisionSummary>,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DecisionSummary {
    /// Milliseconds since the time that others count from.
    pub at_ms: f64,
    /// The level before.
    pub from: u8,
    /// The level that was asked for.
    pub to: u8,
    /// Why, as a word.
    pub reason: &'static str,
    /// Why, as a sentence.
    pub why: String,
}

/// RTP timestamps as times: they wrap, and those of B pictures go back.
#[derive(Debug)]
struct Timeline {
    clock_rate: u32,
    /// Ticks since some time before the first, and the timestamp that they stand for.
    newest: Option<(u64, u32)>,
}

impl Timeline {
    /// Ticks before the first timestamp: earlier ones may follow.
    const BEFORE: u64 = 1 << 32;

    fn at(&mut self, timestamp: u32) -> Time {
        let (ticks, known) = self.newest.unwrap_or((Self::BEFORE, timestamp));
        let step = i64::from(timestamp.wrapping_sub(known).cast_signed());
        let ticks = ticks.saturating_add_signed(step);
        self.newest = Some((ticks, timestamp));
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.clock_rate.max(1));
        Time::from_nanos(nanos as u64)
    }
}

impl Adapter {
    /// Adapts a stream of this format; the relay is asked for the ideal level to begin with.
    pub fn new(format: &Format, adaptation: Adaptation) -> Self {
        let main = format.main_track();
        let clock_rate = if *format == Format::Ts { 90_000 } else { format.clock_rate(main) };
        Adapter {
            adaptation,
            main,
            timeline: Timeline { clock_rate, newest: None },
            expected: None,
            rates: Vec::new(),
            asked: None,
            granted: None,
            changes: Vec::new(),
            total: 0,
        }
    }

    /// Something was received.
    pub fn received(&mut self, received: &Received) {
        match received {
            Received::Packet(packet) if packet.track == self.main => self.packet(packet),
            Received::Levels { level, rates, .. } => {
                self.granted = Some(*level);
                self.rates = rates.iter().map(|rate| u64::from(*rate)).collect();
            }
            Received::Packet(_) | Received::SenderReport { .. } => {}
        }
    }

    fn packet(&mut self, packet: &Packet) {
        let Some(stamp) = packet.rtp else { return };
        let Some(lost) = self.lost(stamp) else { return };
        let media = self.timeline.at(stamp.timestamp);
        let arrival = Arrival { media, bytes: packet.bytes.len(), lost };
        self.adaptation.arrived(packet.arrived, arrival);
    }

    /// How many are missing before this one; `None` if it comes late.
    fn lost(&mut self, stamp: RtpStamp) -> Option<u16> {
        let expected = self.expected.filter(|(ssrc, _)| *ssrc == stamp.ssrc).map(|(_, expected)| expected);
        let missing = expected.map_or(0, |expected| stamp.sequence.wrapping_sub(expected).cast_signed());
        if missing < 0 {
            return None;
        }
        self.expected = Some((stamp.ssrc, stamp.sequence.wrapping_add(1)));
        Some(missing.unsigned_abs())
    }

    /// Notes what the machine has, a few times a second.
    pub fn resources(&mut self, now: Time, resources: Resources) {
        let levels = u8::try_from(self.rates.len()).unwrap_or(u8::MAX);
        self.adaptation.resources(now, resources, levels);
    }

    /// The level to ask for now, if that is another one than before.
    pub fn decide(&mut self, now: Time) -> Option<u8> {
        let Some(from) = self.asked else {
            self.asked = Some(self.adaptation.ideal());
            return self.asked;
        };
        let decision = self.adaptation.decide(now, &self.rates, from)?;
        self.asked = Some(decision.level);
        self.total += 1;
        if self.changes.len() < CHANGES_MAX {
            self.changes.push(Change { at: now, from, to: decision.level, why: decision.why });
        }
        self.asked
    }

    /// When it wants to decide even if nothing comes.
    pub fn due(&self) -> Option<Time> {
        self.adaptation.due()
    }

    /// The changes so far, at most a thousand.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// What was found; times count from `zero`.
    pub fn summary(&self, zero: Time) -> AdapterSummary {
        let decision = |change: &Change| DecisionSummary {
            at_ms: change.at.since(zero).as_micros() as f64 / 1000.0,
            from: change.from,
            to: change.to,
            reason: change.why.as_str(),
            why: change.why.to_string(),
        };
        AdapterSummary {
            level: self.granted,
            rates_bps: self.rates.iter().map(|rate| rate * 8).collect(),
            changes: self.total,
            decisions: self.changes.iter().map(decision).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_adapt::Gradient;

    use super::*;

    fn packet(sequence: u16, timestamp: u32, ms: u64) -> Received {
        let rtp = Some(RtpStamp { sequence, timestamp, ssrc: 1 });
        let bytes = Bytes::from_static(&[0; 1000]);
        Received::Packet(Packet { track: 0, bytes, arrived: Time::from_millis(ms), rtp })
    }

    fn levels(level: u8) -> Received {
        Received::Levels { level, rates: vec![30_000, 20_000, 10_000], arrived: Time::ZERO }
    }

    fn adapter() -> Adapter {
        let adaptation = Adaptation::new(Box::new(Gradient::default()), 1);
        Adapter::new(&Format::Ts, adaptation)
    }

    #[test]
    fn packets_that_wait_on_the_way_make_it_ask_for_less() {
        let mut adapter = adapter();
        assert_eq!(adapter.decide(Time::ZERO), Some(1), "so that the relay tells what levels cost");
        assert_eq!(adapter.decide(Time::ZERO), None);
        adapter.received(&levels(1));
        for i in 0..100 {
            // On time for two seconds, then at half the pace.
            let late = u64::from(i).saturating_sub(60) * 33;
            adapter.received(&packet(i, u32::from(i) * 3000, u64::from(i) * 33 + late));
            if let Some(level) = adapter.decide(Time::from_millis(u64::from(i) * 33 + late)) {
                assert!(level > 1 && i > 60, "level {level} at {i}");
                let summary = adapter.summary(Time::from_millis(1000));
                assert_eq!((summary.changes, summary.level), (1, Some(1)));
                assert_eq!((summary.decisions[0].to, summary.decisions[0].reason), (level, "delayed"));
                assert!(summary.decisions[0].at_ms > 980.0, "{summary:?}");
                assert!(
                    adapter.changes()[0].to_string().starts_with(&format!("level {level} instead of 1: "))
                );
                return;
            }
        }
        panic!("nothing was asked for");
    }

    #[test]
    fn timestamps_wrap_and_go_back() {
        let mut timeline = Timeline { clock_rate: 90_000, newest: None };
        let first = timeline.at(u32::MAX - 2999);
        assert_eq!(timeline.at(3000).since(first).as_micros(), 66_666);
        assert_eq!(timeline.at(0).since(first).as_micros(), 33_333);
    }

    #[test]
    fn late_packets_are_not_lost_and_another_source_begins_again() {
        let mut adapter = adapter();
        let stamp = |sequence, ssrc| RtpStamp { sequence, timestamp: 0, ssrc };
        let numbers = [(65_535, 1), (2, 1), (1, 1), (3, 1), (500, 2), (501, 2)];
        let lost = numbers.map(|(sequence, ssrc)| adapter.lost(stamp(sequence, ssrc)));
        assert_eq!(lost, [Some(0), Some(2), None, Some(0), Some(0), Some(0)]);
    }
}
