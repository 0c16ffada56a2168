//! Packets in groups, and by how much the time between two of them changes on the way: sections 5.1 and 5.2.

use core::time::Duration;

use outflow_media::Time;

/// What is sent within so long is a group, and what arrives within so long of it because it had waited.
const BURST: Duration = Duration::from_millis(5);
const BURST_US: i64 = 5_000;

/// Longest time over which what had waited is one group.
const BURST_US_MAX: i64 = 100_000;

/// Where the time between groups changes by more, a clock has leapt, or the way stood still: that says nothing.
const LEAP_US: i64 = 3_000_000;

/// Two groups, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Apart {
    /// Microseconds between them when they were sent.
    pub(super) sent_us: i64,
    /// Microseconds between them when they arrived.
    pub(super) received_us: i64,
    /// When the later one had arrived, in microseconds of the receiver's clock.
    pub(super) at_us: i64,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    began: Time,
    /// When its last packet was sent.
    sent: Time,
    first_received_us: i64,
    /// When its last packet arrived.
    received_us: i64,
}

impl Group {
    fn new(sent: Time, received_us: i64) -> Self {
        Group { began: sent, sent, first_received_us: received_us, received_us }
    }

    /// Whether a packet belongs to it.
    fn has(&self, sent: Time, received_us: i64) -> bool {
        if sent.since(self.began) <= BURST {
            return true;
        }
        let later = received_us.wrapping_sub(self.received_us);
        let is_nearer = later < micros(sent.since(self.sent));
        let lasts = received_us.wrapping_sub(self.first_received_us);
        is_nearer && (-BURST_US..=BURST_US).contains(&later) && lasts < BURST_US_MAX
    }
}

/// Puts packets into groups.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    before: Option<Group>,
}

impl Groups {
    /// A packet arrived. Answers how far the last two whole groups are apart, if it begins another one. One that was
    /// sent before the present group is passed over.
    pub(super) fn note(&mut self, sent: Time, received_us: i64) -> Option<Apart> {
        let Some(current) = &mut self.current else {
            self.current = Some(Group::new(sent, received_us));
            return None;
        };
        if sent < current.began {
            return None;
        }
        if current.has(sent, received_us) {
            current.sent = current.sent.max(sent);
            // Behind one that it overtook it has come by then, too.
            let later = received_us.wrapping_sub(current.received_us);
            current.received_us = current.received_us.wrapping_add(later.max(0));
            return None;
        }
        let whole = core::mem::replace(current, Group::new(sent, received_us));
        let before = self.before.replace(whole)?;
        let sent_us = micros(whole.sent.since(before.sent));
        let received_us = whole.received_us.wrapping_sub(before.received_us);
        let change = received_us.checked_sub(sent_us)?;
        let says = received_us >= 0 && change.saturating_abs() < LEAP_US;
        says.then_some(Apart { sent_us, received_us, at_us: whole.received_us })
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of packets that were sent and arrived at these microseconds.
    fn told(packets: &[(u64, i64)]) -> Vec<(i64, i64)> {
        let mut groups = Groups::default();
        let apart = packets.iter().filter_map(|(sent, at)| groups.note(Time::from_micros(*sent), *at));
        apart.map(|apart| (apart.sent_us, apart.received_us)).collect()
    }

    #[test]
    fn what_is_sent_within_five_milliseconds_is_one_group() {
        let packets = [(0, 100), (5_000, 5_200), (10_000, 10_300), (14_000, 14_900), (30_000, 30_000)];
        assert_eq!(told(&packets), [(9_000, 9_700)]);
    }

    #[test]
    fn what_waited_and_comes_at_once_is_one_group() {
        // Of a radio link that stood still: three that were sent 10 ms apart come together.
        let packets = [
            (0, 0),
            (10_000, 50_000),
            (20_000, 50_500),
            (30_000, 51_000),
            (60_000, 60_000),
            (90_000, 90_000),
        ];
        assert_eq!(told(&packets), [(30_000, 51_000), (30_000, 9_000)]);
    }

    #[test]
    fn what_was_overtaken_says_nothing_nor_does_a_clock_that_leaps() {
        let packets = [(0, 0), (10_000, 10_000), (3_000, 99_000), (20_000, 20_000), (30_000, 4_000_000)];
        assert_eq!(told(&packets), [(10_000, 10_000), (10_000, 10_000)]);
        let leaps = [(0, 0), (10_000, 4_000_000), (20_000, 10_000), (30_000, i64::MIN), (40_000, i64::MAX)];
        assert_eq!(told(&leaps), []);
    }
}
