//! Packets that are sent to find out what a way carries.

use core::time::Duration;

use outflow_media::Time;

use crate::limits::{PROBE_FOR, PROBE_PACKETS_LEAST, PROBE_PACKETS_MAX, TRIAL_FOR, TRIAL_STEP};

/// When to send them. What they are is not decided here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling {
    kind: Kind,
    next: Time,
    /// Of each of them.
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// This number of packets more, one after the other.
    Probe { left: u64, every: Duration },
    /// As many as are needed beside what is sent anyway.
    Trial { began: Time, bps: u64, sent: u64 },
}

impl Filling {
    /// A probe at this rate, and how many packets it has.
    pub(super) fn probe(now: Time, bps: u64, bytes: usize) -> (Self, u64) {
        let every =
            Duration::from_nanos(bytes as u64 * 8_000_000_000 / bps.max(1)).max(Duration::from_nanos(1));
        let packets = (PROBE_FOR.as_nanos() / every.as_nanos()) as u64;
        let left = packets.clamp(PROBE_PACKETS_LEAST, PROBE_PACKETS_MAX);
        (Filling { kind: Kind::Probe { left, every }, next: now, bytes }, left)
    }

    /// A trial at this rate, and when its last packets go.
    pub(super) fn trial(now: Time, bps: u64, bytes: usize) -> (Self, Time) {
        (Filling { kind: Kind::Trial { began: now, bps, sent: 0 }, next: now, bytes }, now + TRIAL_FOR)
    }

    /// A packet is sent, of these or another one: its bytes.
    pub(super) fn sent(&mut self, bytes: usize) {
        if let Kind::Trial { sent, .. } = &mut self.kind {
            *sent += bytes as u64;
        }
    }

    /// How many are due now.
    pub(super) fn due(&mut self, now: Time) -> u64 {
        if now < self.next {
            return 0;
        }
        match &mut self.kind {
            Kind::Probe { left, every } => {
                let mut due = 0;
                while *left > 0 && self.next <= now {
                    (due, *left, self.next) = (due + 1, *left - 1, self.next + *every);
                }
                due
            }
            Kind::Trial { began, bps, sent } => {
                self.next = now + TRIAL_STEP;
                let passed = (now.since(*began) + TRIAL_STEP).min(TRIAL_FOR);
                let wanted = (u128::from(*bps) * passed.as_nanos() / 8_000_000_000) as u64;
                (wanted.saturating_sub(*sent) / self.bytes.max(1) as u64).min(PROBE_PACKETS_MAX)
            }
        }
    }

    /// When the next are due; none if that is all.
    pub(super) fn next(&self) -> Option<Time> {
        let is_over = match self.kind {
            Kind::Probe { left, .. } => left == 0,
            Kind::Trial { began, .. } => self.next >= began + TRIAL_FOR,
        };
        (!is_over).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_millis(1000);

    /// When packets are due, where it is asked each time that it says.
    fn all(filling: &mut Filling, beside: usize) -> Vec<(u64, u64)> {
        let (mut now, mut all) = (START, Vec::new());
        loop {
            let due = filling.due(now);
            all.push((now.since(START).as_micros() as u64, due));
            (0..due).for_each(|_| filling.sent(1000));
            filling.sent(beside);
            let Some(next) = filling.next() else { return all };
            assert!(next > now);
            now = next;
        }
    }

    #[test]
    fn packets_of_a_probe_go_at_its_rate() {
        let (mut probe, packets) = Filling::probe(START, 8_000_000, 1000);
        assert_eq!(packets, 20);
        let due = all(&mut probe, 0);
        assert_eq!(due, (0..20).map(|number| (1000 * number, 1)).collect::<Vec<_>>());
        assert_eq!(Filling::probe(START, 1, 1000).1, PROBE_PACKETS_LEAST);
        assert_eq!(Filling::probe(START, u64::MAX, 1000).1, PROBE_PACKETS_MAX);
    }

    #[test]
    fn a_trial_fills_up_what_is_sent() {
        for (beside, expected) in [(0, 500), (3_000, 200), (10_000, 0)] {
            let (mut trial, ends) = Filling::trial(START, 8_000_000, 1000);
            assert_eq!(ends, START + TRIAL_FOR);
            let due = all(&mut trial, beside);
            let packets = due.iter().map(|(_, due)| due).sum::<u64>();
            assert!(packets.abs_diff(expected) <= 5, "{packets} beside {beside}");
            assert!(due.last().is_some_and(|(at, _)| *at < TRIAL_FOR.as_micros() as u64));
        }
    }
}
