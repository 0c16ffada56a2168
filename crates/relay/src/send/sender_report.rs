//! The clock behind RTCP sender reports (RFC 3550, section 6.4.1): which wall-clock time belongs
//! to which RTP timestamp of a track.

use outflow_media::Time;

use crate::receive::ticks;

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
#[derive(Debug, Clone, Copy)]
pub struct ReportClock {
    clock_rate: u32,
    ntp_at_zero: u64,
    anchor: Option<Anchor>,
    from_source: bool,
}

impl ReportClock {
    /// For a track of this clock rate; `ntp_at_zero` is the NTP time of [`Time::ZERO`].
    pub fn new(clock_rate: u32, ntp_at_zero: u64) -> Self {
        ReportClock { clock_rate, ntp_at_zero, anchor: None, from_source: false }
    }

    /// A packet arrived. Anchors the clock, or anchors it anew if the track's timestamps jumped by
    /// more than a second and the source says nothing itself.
    pub fn packet(&mut self, now: Time, rtp: u32) {
        if self.from_source {
            return;
        }
        let off = match self.at(now) {
            Some(expected) => rtp.wrapping_sub(expected.rtp) as i32,
            None => i32::MAX,
        };
        if off.unsigned_abs() > self.clock_rate {
            self.anchor = Some(Anchor { at: now, ntp: self.ntp(now), rtp });
        }
    }

    /// The source's own report came, its RTP time already that of the receivers.
    pub fn source_report(&mut self, now: Time, ntp: u64, rtp: u32) {
        self.anchor = Some(Anchor { at: now, ntp, rtp });
        self.from_source = true;
    }

    /// The source begins anew.
    pub fn restart(&mut self) {
        self.from_source = false;
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
        clock.packet(Time::from_millis(1_000), 5_000);
        clock.packet(Time::from_millis(1_100), 5_000 + 9_000 + 80);
        let later = clock.at(Time::from_millis(3_000)).expect("anchored");
        assert_eq!((later.ntp, later.rtp), (103 * SECOND_NTP, 5_000 + 180_000));
    }

    #[test]
    fn a_jump_anchors_anew_and_the_source_knows_better() {
        let mut clock = ReportClock::new(90_000, 0);
        clock.packet(Time::ZERO, 5_000);
        clock.packet(Time::from_millis(1_000), 1_000_000);
        assert_eq!(clock.at(Time::from_millis(1_000)).map(|a| a.rtp), Some(1_000_000));
        clock.source_report(Time::from_millis(1_000), 7 * SECOND_NTP, 42);
        clock.packet(Time::from_millis(1_000), 1_000_000);
        assert_eq!(clock.at(Time::from_millis(1_000)).map(|a| (a.ntp, a.rtp)), Some((7 * SECOND_NTP, 42)));
    }
}
