//! One RTP source for the receivers, however often the real one is restarted.

use outflow_media::Time;

use super::ticks;
use crate::limits::{SAME_CLOCK, SSRC_SILENCE};

/// Maps SSRC, sequence numbers and timestamps of the present sender to those of the first sender.
///
/// As long as no sender restarts, nothing is rewritten.
#[derive(Debug)]
pub struct Continuity {
    pub(super) clock_rate: u32,
    /// The sender now, and when it last sent.
    pub(super) current: Option<(u32, Time)>,
    pub(super) restarted: Option<TurnBy>,
    pub(super) ssrc_out: u32,
    pub(super) sequence_delta: u16,
    pub(super) timestamp_delta: u32,
    pub(super) last_sequence: u16,
    pub(super) last_timestamp: u32,
}

/// How a source begins a new turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnBy {
    /// By itself: its clock may be another one.
    Source,
    /// By another relay that hands it on, as others may: as long as it is the same one, its timestamps stay what
    /// they are, by which all of them know its packets.
    Relay,
}

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It passes as it is.
    AsIs,
    /// It passes with these header fields.
    Rewrite {
        /// SSRC for the receivers.
        ssrc: u32,
        /// Sequence number for the receivers.
        sequence: u16,
        /// Timestamp for the receivers.
        timestamp: u32,
    },
    /// Another sender than the one that is active: it does not pass.
    Foreign,
}

impl Continuity {
    /// For a track with this clock rate.
    pub fn new(clock_rate: u32) -> Self {
        Continuity {
            clock_rate,
            current: None,
            restarted: None,
            ssrc_out: 0,
            sequence_delta: 0,
            timestamp_delta: 0,
            last_sequence: 0,
            last_timestamp: 0,
        }
    }

    /// The next packet begins a new turn of the source, whatever its SSRC.
    pub fn restart(&mut self, by: TurnBy) {
        self.restarted = Some(by);
    }

    /// Judges a packet by its header fields.
    pub fn pass(&mut self, now: Time, ssrc: u32, sequence: u16, timestamp: u32) -> Passage {
        match self.current {
            None => {
                self.ssrc_out = ssrc;
                self.last_sequence = sequence;
            }
            Some((current, _)) if self.is_handed_on(current == ssrc, timestamp) => self.renumber(sequence),
            Some((_, last)) if self.restarted.is_some() => self.adopt(now, last, sequence, timestamp),
            Some((current, _)) if current == ssrc => {}
            Some((_, last)) if now.since(last) < SSRC_SILENCE => return Passage::Foreign,
            Some((_, last)) => self.adopt(now, last, sequence, timestamp),
        }
        self.restarted = None;
        self.current = Some((ssrc, now));
        let sequence_out = sequence.wrapping_add(self.sequence_delta);
        let timestamp_out = timestamp.wrapping_add(self.timestamp_delta);
        if sequence_out.wrapping_sub(self.last_sequence) < 0x8000 {
            self.last_sequence = sequence_out;
            self.last_timestamp = timestamp_out;
        }
        if ssrc == self.ssrc_out && self.sequence_delta == 0 && self.timestamp_delta == 0 {
            return Passage::AsIs;
        }
        Passage::Rewrite { ssrc: self.ssrc_out, sequence: sequence_out, timestamp: timestamp_out }
    }

    /// Lets a new sender go on where the last one ended, with the time between them.
    fn adopt(&mut self, now: Time, last: Time, sequence: u16, timestamp: u32) {
        let pause = ticks(now, self.clock_rate).wrapping_sub(ticks(last, self.clock_rate)).max(1);
        self.renumber(sequence);
        self.timestamp_delta = self.last_timestamp.wrapping_add(pause).wrapping_sub(timestamp);
    }

    fn renumber(&mut self, sequence: u16) {
        self.sequence_delta = self.last_sequence.wrapping_add(1).wrapping_sub(sequence);
    }

    /// Whether this begins a turn by another relay, of the source that was there before.
    fn is_handed_on(&self, is_same: bool, timestamp: u32) -> bool {
        let out = timestamp.wrapping_add(self.timestamp_delta);
        let apart = out.wrapping_sub(self.last_timestamp).cast_signed().unsigned_abs();
        let is_near = u64::from(apart) <= SAME_CLOCK.as_secs() * u64::from(self.clock_rate);
        self.restarted == Some(TurnBy::Relay) && is_same && is_near
    }

    /// What is added to the sender's timestamps.
    pub fn timestamp_delta(&self) -> u32 {
        self.timestamp_delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sender_passes_as_it_is() {
        let mut c = Continuity::new(90_000);
        for (i, seq) in [65534_u16, 65535, 0, 1].into_iter().enumerate() {
            let now = Time::from_millis(40 * i as u64);
            assert_eq!(c.pass(now, 7, seq, 3600 * i as u32), Passage::AsIs);
        }
    }

    #[test]
    fn a_second_sender_waits_until_the_first_is_silent_and_then_goes_on_from_it() {
        let mut c = Continuity::new(90_000);
        c.pass(Time::ZERO, 7, 100, 1_000);
        assert_eq!(c.pass(Time::from_millis(100), 8, 5, 99), Passage::Foreign);
        let later = Time::from_millis(1_000);
        let rewrite = Passage::Rewrite { ssrc: 7, sequence: 101, timestamp: 91_000 };
        assert_eq!(c.pass(later, 8, 5, 99), rewrite);
        let next = Passage::Rewrite { ssrc: 7, sequence: 102, timestamp: 94_600 };
        assert_eq!(c.pass(later, 8, 6, 99 + 3_600), next);
        assert_eq!(c.pass(later, 7, 101, 1_000), Passage::Foreign);
    }

    #[test]
    fn an_announced_restart_is_adopted_at_once() {
        let mut c = Continuity::new(48_000);
        c.pass(Time::ZERO, 7, 100, 1_000);
        c.restart(TurnBy::Source);
        let rewrite = Passage::Rewrite { ssrc: 7, sequence: 101, timestamp: 1_480 };
        assert_eq!(c.pass(Time::from_millis(10), 7, 4_000, 77), rewrite);
    }

    #[test]
    fn what_other_relays_hand_on_keeps_the_timestamps_of_its_source() {
        let begun = || {
            let mut c = Continuity::new(48_000);
            c.pass(Time::ZERO, 7, 100, 100_000);
            c.restart(TurnBy::Relay);
            c
        };
        let later = Time::from_millis(4_000);
        // It begins with its newest key frame, which was before.
        let again = Passage::Rewrite { ssrc: 7, sequence: 101, timestamp: 52_000 };
        assert_eq!(begun().pass(later, 7, 9, 52_000), again);
        let ahead = Passage::Rewrite { ssrc: 7, sequence: 101, timestamp: 292_000 };
        assert_eq!(begun().pass(later, 7, 9, 292_000), ahead);
        // Another source, or one whose clock is another one.
        let follows = Passage::Rewrite { ssrc: 7, sequence: 101, timestamp: 292_000 };
        assert_eq!(begun().pass(later, 8, 9, 52_000), follows);
        assert_eq!(begun().pass(later, 7, 9, 0x8000_0000), follows);
    }
}
