//! The clock behind RTCP sender reports (RFC 3550, section 6.4.1): which wall-clock time belongs
//! to which RTP timestamp of a track.

use crate::receive::ticks;
use outflow_media::Time;

/// A moment of which both times are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The moment.
    pub at: Time,
    /// Its NTP time, 32.32 fixed point seconds since 1900.
    pub ntp: u64,
    /// Its RTP timestamp.
    pub rtp: u32,
}

/// Tells NTP and RTP time of any moment, from the source's own reports or, without them, from the
/// arrival of the track's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportClock {
    clock_rate: u32,
    ntp_at_zero: u64,
    anchor: Option<Anchor>,
    from_source: bool,
    /// The source begins again: how its timestamps are rewritten shows with its first packet.
    restarted: bool,
    /// Its report that came before that packet, in its own timestamps.
    held: Option<Anchor>,
}

impl ReportClock {
    /// For a track of this clock rate; `ntp_at_zero` is the NTP time of [`Time::ZERO`].
    pub fn new(clock_rate: u32, ntp_at_zero: u64) -> Self {
        let (anchor, held) = (None, None);
        ReportClock { clock_rate, ntp_at_zero, anchor, from_source: false, restarted: false, held }
    }

    /// A packet arrived. Anchors the clock, or anchors it again if the track's timestamps jumped by
    /// more than a second and the source says nothing itself. `delta` was added to the timestamp. Returns
    /// whether it goes by something else now.
    pub fn packet(&mut self, now: Time, rtp: u32, delta: u32) -> bool {
        self.restarted = false;
        let held = self.held.take();
        let told = held.is_some_and(|held| self.source_report(held.at, held.ntp, held.rtp, delta).is_some());
        if self.from_source {
            return told;
        }
        let off = match self.at(now) {
            Some(expected) => rtp.wrapping_sub(expected.rtp) as i32,
            None => i32::MAX,
        };
        let jumped = off.unsigned_abs() > self.clock_rate;
        if jumped {
            self.anchor = Some(Anchor { at: now, ntp: self.ntp(now), rtp });
        }
        jumped
    }

    /// The source's own report came. `delta` is added to its timestamps for the receivers. Returns
    /// the RTP time that they know, if that is known.
    pub fn source_report(&mut self, now: Time, ntp: u64, rtp: u32, delta: u32) -> Option<u32> {
        if self.restarted {
            self.held = Some(Anchor { at: now, ntp, rtp });
            return None;
        }
        let rtp = rtp.wrapping_add(delta);
        self.anchor = Some(Anchor { at: now, ntp, rtp });
        self.from_source = true;
        Some(rtp)
    }

    /// What it goes by, and whether the source has told that.
    pub fn anchor(&self) -> Option<(Anchor, bool)> {
        self.anchor.map(|anchor| (anchor, self.from_source))
    }

    /// It goes by this from now on.
    pub fn set(&mut self, anchor: Anchor, told: bool) {
        (self.anchor, self.from_source, self.restarted) = (Some(anchor), told, false);
    }

    /// The track has this timestamp at a moment, by a clock that it has in common with others.
    pub fn agree(&mut self, at: Time, rtp: u32) {
        self.set(Anchor { at, ntp: self.ntp(at), rtp }, true);
    }

    /// The same for timestamps to which so much is added.
    pub fn later(self, delta: u32) -> Self {
        let later = |anchor: Anchor| Anchor { rtp: anchor.rtp.wrapping_add(delta), ..anchor };
        ReportClock { anchor: self.anchor.map(later), ..self }
    }

    /// Whether the source began again, and no packet of it came since.
    pub fn is_restarted(&self) -> bool {
        self.restarted
    }

    /// The source begins again.
    pub fn restart(&mut self) {
        self.from_source = false;
        self.restarted = true;
        self.held = None;
    }

    /// Ticks a second of the track's clock.
    pub fn clock_rate(&self) -> u32 {
        self.clock_rate
    }

    /// NTP time of an RTP timestamp near the present; `None` before the first packet.
    pub fn ntp_of(&self, rtp: u32) -> Option<u64> {
        let anchor = self.anchor?;
        let ticks = i64::from(rtp.wrapping_sub(anchor.rtp).cast_signed());
        Some(anchor.ntp.wrapping_add_signed((ticks << 32).checked_div(i64::from(self.clock_rate))?))
    }

    /// NTP and RTP time of `now`; `None` before the first packet.
    pub fn at(&self, now: Time) -> Option<Anchor> {
        let anchor = self.anchor?;
        let passed = now.since(anchor.at);
        let ntp = anchor.ntp.wrapping_add(((passed.as_nanos() << 32) / 1_000_000_000) as u64);
        let rtp = anchor.rtp.wrapping_add(ticks(Time::ZERO + passed, self.clock_rate));
        Some(Anchor { at: now, ntp, rtp })
    }

    fn ntp(&self, now: Time) -> u64 {
        self.ntp_at_zero.wrapping_add(((u128::from(now.as_nanos()) << 32) / 1_000_000_000) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NTP: u64 = 1 << 32;

    #[test]
    fn runs_on_from_the_first_packet() {
        let mut clock = ReportClock::new(90_000, 100 * SECOND_NTP);
        assert_eq!(clock.at(Time::ZERO), None);
        clock.packet(Time::from_millis(1_000), 5_000, 0);
        clock.packet(Time::from_millis(1_100), 5_000 + 9_000 + 80, 0);
        let later = clock.at(Time::from_millis(3_000)).expect("anchored");
        assert_eq!((later.ntp, later.rtp), (103 * SECOND_NTP, 5_000 + 180_000));
    }

    #[test]
    fn a_jump_anchors_again_and_the_source_knows_better() {
        let mut clock = ReportClock::new(90_000, 0);
        clock.packet(Time::ZERO, 5_000, 0);
        clock.packet(Time::from_millis(1_000), 1_000_000, 0);
        assert_eq!(clock.at(Time::from_millis(1_000)).map(|a| a.rtp), Some(1_000_000));
        assert_eq!(clock.source_report(Time::from_millis(1_000), 7 * SECOND_NTP, 40, 2), Some(42));
        clock.packet(Time::from_millis(1_000), 1_000_000, 2);
        assert_eq!(clock.at(Time::from_millis(1_000)).map(|a| (a.ntp, a.rtp)), Some((7 * SECOND_NTP, 42)));
    }

    #[test]
    fn a_report_before_the_first_packet_of_a_restarted_source_waits_for_it() {
        let mut clock = ReportClock::new(90_000, 0);
        clock.packet(Time::ZERO, 5_000, 0);
        clock.restart();
        assert_eq!(clock.source_report(Time::from_millis(500), 9 * SECOND_NTP, 70, 0), None);
        assert_eq!(clock.at(Time::from_millis(500)).map(|a| a.rtp), Some(5_000 + 45_000), "the old timeline");
        clock.packet(Time::from_millis(500), 70 + 50_000, 50_000);
        assert_eq!(clock.at(Time::from_millis(500)).map(|a| (a.ntp, a.rtp)), Some((9 * SECOND_NTP, 50_070)));
    }
}
