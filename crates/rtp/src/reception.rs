//! What a receiver knows of one source: loss, reordering, jitter (RFC 3550 section 6.4 and
//! appendix A).

use core::time::Duration;

use outflow_media::Time;

use super::sequence_distance;
use crate::limits::{LATE_PACKETS_MAX, LOST_PACKETS_MAX};
use crate::rtcp::ReportBlock;
use crate::save::SavedReception;

const DROPOUT: i16 = LOST_PACKETS_MAX.cast_signed();
const MISORDER: i16 = LATE_PACKETS_MAX.cast_signed();

/// Where a packet stands among those that came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Behind all others; `lost` packets are missing in front of it.
    Next {
        /// How many sequence numbers were left out.
        lost: u16,
    },
    /// Reordered, or a duplicate.
    Late,
    /// Far from all others: it counts only if its successor follows.
    Stray,
    /// The second in a row from a new stream of numbers: the source began again.
    Restart,
}

/// Follows the packets of one source. The report blocks that it makes are those of RFC 3550
/// section 6.4.1.
#[derive(Debug, Clone)]
pub struct Reception {
    ssrc: u32,
    clock_rate: u32,
    started: bool,
    highest: u16,
    cycles: u32,
    base: u32,
    /// The sequence number behind the last stray one.
    expected_stray: Option<u16>,
    received: u64,
    transit: Option<u32>,
    /// In ticks, times 16.
    jitter: u32,
    expected_before: u64,
    received_before: u64,
    /// Middle 32 bits of the last sender report's NTP time, and when it came.
    sender_report: Option<(u32, Time)>,
}

impl Reception {
    /// A source whose timestamps tick `clock_rate` times a second.
    pub fn new(ssrc: u32, clock_rate: u32) -> Self {
        Reception {
            ssrc,
            clock_rate,
            started: false,
            highest: 0,
            cycles: 0,
            base: 0,
            expected_stray: None,
            received: 0,
            transit: None,
            jitter: 0,
            expected_before: 0,
            received_before: 0,
            sender_report: None,
        }
    }

    /// What goes on in another process.
    pub fn save(&self) -> Option<SavedReception> {
        self.started.then(|| SavedReception {
            ssrc: self.ssrc,
            highest: self.highest(),
            base: self.base,
            received: self.received,
            transit: self.transit,
            jitter: self.jitter,
            reported: (self.expected_before, self.received_before),
            sender_report: self.sender_report.map(|(ntp, at)| (ntp, at.as_nanos())),
        })
    }

    /// Goes on from what another process has saved, with timestamps that tick `clock_rate` times a second.
    pub fn restore(saved: SavedReception, clock_rate: u32) -> Self {
        let (expected_before, received_before) = saved.reported;
        Reception {
            ssrc: saved.ssrc,
            clock_rate,
            started: true,
            highest: saved.highest as u16,
            cycles: saved.highest >> 16,
            base: saved.base,
            expected_stray: None,
            // What a peer or a relay can reach: sums of these fit their types.
            received: saved.received.min(1 << 48),
            transit: saved.transit,
            jitter: saved.jitter.min(1 << 30),
            expected_before,
            received_before,
            sender_report: saved.sender_report.map(|(ntp, at)| (ntp, Time::from_nanos(at))),
        }
    }

    /// The source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// A packet came.
    pub fn packet(&mut self, sequence: u16, timestamp: u32, now: Time) -> Placement {
        let placement = self.place(sequence);
        if placement != Placement::Stray {
            self.received += 1;
            self.measure_jitter(timestamp, now);
        }
        placement
    }

    /// A sender report of the source came, with this NTP time.
    pub fn sender_report(&mut self, ntp: u64, now: Time) {
        self.sender_report = Some(((ntp >> 16) as u32, now));
    }

    /// The highest sequence number, extended by how often it wrapped.
    pub fn highest(&self) -> u32 {
        self.cycles << 16 | u32::from(self.highest)
    }

    /// Packets received, duplicates included.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Packets expected from the first and the highest sequence number.
    pub fn expected(&self) -> u64 {
        if self.started { u64::from(self.highest().wrapping_sub(self.base)) + 1 } else { 0 }
    }

    /// Packets expected less those received; duplicates make it smaller, below zero even.
    pub fn lost(&self) -> i64 {
        self.expected().cast_signed() - self.received.cast_signed()
    }

    /// Interarrival jitter in ticks.
    pub fn jitter_ticks(&self) -> u32 {
        self.jitter >> 4
    }

    /// Interarrival jitter as time.
    pub fn jitter(&self) -> Duration {
        let nanos = u64::from(self.jitter_ticks()) * 1_000_000_000;
        Duration::from_nanos(nanos.checked_div(u64::from(self.clock_rate)).unwrap_or(0))
    }

    /// A report block on what came since the last one.
    pub fn report(&mut self, now: Time) -> ReportBlock {
        let expected = self.expected().saturating_sub(self.expected_before);
        let received = self.received.saturating_sub(self.received_before);
        self.expected_before = self.expected();
        self.received_before = self.received;
        let lost = expected.saturating_sub(received);
        let fraction = (lost << 8).checked_div(expected).unwrap_or(0).min(255);
        let (lsr, dlsr) = self.sender_report.map_or((0, 0), |(ntp, at)| {
            let since = now.since(at).as_nanos() * 65_536 / 1_000_000_000;
            (ntp, u32::try_from(since).unwrap_or(u32::MAX))
        });
        ReportBlock {
            ssrc: self.ssrc,
            fraction_lost: fraction as u8,
            lost: self.lost().clamp(-0x80_0000, 0x7f_ffff) as i32,
            highest: self.highest(),
            jitter: self.jitter_ticks(),
            lsr,
            dlsr,
        }
    }

    /// Appendix A.1, without the probation of new sources: the sender is agreed on before.
    fn place(&mut self, sequence: u16) -> Placement {
        if !self.started {
            self.restart(sequence);
            return Placement::Next { lost: 0 };
        }
        let step = sequence_distance(self.highest, sequence);
        if (1..DROPOUT).contains(&step) {
            if sequence < self.highest {
                self.cycles = self.cycles.wrapping_add(1) & 0xffff;
            }
            self.highest = sequence;
            self.expected_stray = None;
            Placement::Next { lost: step.unsigned_abs() - 1 }
        } else if (-MISORDER..=0).contains(&step) {
            Placement::Late
        } else if self.expected_stray == Some(sequence) {
            self.restart(sequence);
            Placement::Restart
        } else {
            self.expected_stray = Some(sequence.wrapping_add(1));
            Placement::Stray
        }
    }

    fn restart(&mut self, sequence: u16) {
        self.started = true;
        self.highest = sequence;
        self.cycles = 0;
        self.base = u32::from(sequence);
        self.expected_stray = None;
        self.received = 0;
        self.expected_before = 0;
        self.received_before = 0;
        self.transit = None;
    }

    /// Appendix A.8.
    fn measure_jitter(&mut self, timestamp: u32, now: Time) {
        let ticks = u128::from(now.as_nanos()) * u128::from(self.clock_rate) / 1_000_000_000;
        let transit = (ticks as u32).wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let difference = transit.wrapping_sub(before).cast_signed().unsigned_abs();
            // A leap of the timestamps would otherwise be seen in the jitter for ever.
            let difference = difference.min(self.clock_rate);
            self.jitter = self.jitter.saturating_add(difference).saturating_sub((self.jitter + 8) >> 4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(sequences: impl IntoIterator<Item = u16>) -> (Reception, Vec<Placement>) {
        let mut reception = Reception::new(7, 90_000);
        let placements = sequences.into_iter().map(|s| reception.packet(s, 0, Time::ZERO)).collect();
        (reception, placements)
    }

    #[test]
    fn loss_is_counted_across_a_wrap() {
        let (mut reception, placements) = received([65_533, 65_534, 1, 2]);
        assert_eq!(placements[2], Placement::Next { lost: 2 });
        assert_eq!(reception.highest(), 0x1_0002);
        assert_eq!((reception.expected(), reception.received(), reception.lost()), (6, 4, 2));
        let report = reception.report(Time::ZERO);
        assert_eq!((report.ssrc, report.lost, report.fraction_lost), (7, 2, 85));
        assert_eq!(reception.report(Time::ZERO).fraction_lost, 0, "nothing since the last report");
    }

    #[test]
    fn reordered_packets_and_duplicates_are_late_and_not_lost() {
        let (reception, placements) = received([10, 12, 11, 12]);
        use Placement::{Late, Next};
        assert_eq!(placements, [Next { lost: 0 }, Next { lost: 1 }, Late, Late]);
        assert_eq!(reception.lost(), -1);
    }

    #[test]
    fn a_source_that_begins_again_is_followed_and_a_stray_packet_is_not() {
        let (reception, placements) = received([10, 30_000, 11, 50_000, 50_001, 50_002]);
        use Placement::{Next, Restart, Stray};
        let expected = [Next { lost: 0 }, Stray, Next { lost: 0 }, Stray, Restart, Next { lost: 0 }];
        assert_eq!(placements, expected);
        assert_eq!((reception.expected(), reception.lost()), (2, 0));
    }

    #[test]
    fn jitter_converges_to_the_mean_deviation() {
        let mut reception = Reception::new(1, 90_000);
        for i in 0..500u32 {
            // Every other packet comes 2 ms late: differences of 180 ticks.
            let at = Time::from_millis(u64::from(i) * 20 + u64::from(i % 2) * 2);
            reception.packet(i as u16, i * 1800, at);
        }
        assert!((175..=181).contains(&reception.jitter_ticks()), "{}", reception.jitter_ticks());
        assert_eq!(reception.jitter().as_micros() / 100, 19);
    }

    #[test]
    fn the_delay_since_the_sender_report_is_told() {
        let (mut reception, _) = received([1]);
        reception.sender_report(0x1122_3344_5566_7788, Time::from_millis(1000));
        let report = reception.report(Time::from_millis(3500));
        assert_eq!((report.lsr, report.dlsr), (0x3344_5566, 5 * 65_536 / 2));
    }

    #[test]
    fn nothing_received_is_nothing_lost() {
        let (mut reception, _) = received([]);
        let report = reception.report(Time::ZERO);
        assert_eq!((report.lost, report.fraction_lost, report.lsr, report.dlsr), (0, 0, 0, 0));
        assert_eq!(Reception::new(1, 0).jitter(), Duration::ZERO);
    }
}
