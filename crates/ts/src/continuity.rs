//! Whether packets are missing: the continuity counters of all PIDs (ISO/IEC 13818-1 section
//! 2.4.3.3).

use super::packet::{PIDS, Packet};

/// Marks a counter that was seen; its value is in the lower four bits.
const SEEN: u8 = 0x80;
/// Marks a counter whose packet was already sent twice, which is all that is allowed.
const TWICE: u8 = 0x40;

/// How a packet follows the one before it on its PID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// As it should, or it is the first.
    Next,
    /// It is the same once more.
    Again,
    /// Packets are missing before it.
    Gap,
    /// It says itself that it does not follow.
    Break,
}

/// The last packet of a PID, as far as it matters for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Last {
    /// Its counter and the marks above.
    state: u8,
    /// Its last bytes: another packet with the same counter does not end like this one.
    tail: [u8; 3],
}

impl Last {
    fn of(packet: &Packet<'_>) -> Self {
        let tail = packet.bytes().last_chunk().copied().unwrap_or_default();
        Last { state: SEEN | packet.continuity(), tail }
    }
}

/// The last continuity counter of every PID.
#[derive(Debug)]
pub(super) struct Continuity {
    last: Box<[Last; PIDS]>,
    errors: u64,
}

impl Continuity {
    pub(super) fn new() -> Self {
        Continuity { last: Box::new([Last::default(); PIDS]), errors: 0 }
    }

    /// Gaps so far.
    pub(super) const fn errors(&self) -> u64 {
        self.errors
    }

    /// The stream broke off: what comes next does not follow what came before.
    pub(super) fn break_off(&mut self) {
        self.last.fill(Last::default());
    }

    /// Whether a packet is the next one of its PID, of which there were some before.
    pub(super) fn goes_on(&self, packet: &Packet<'_>) -> bool {
        let last = self.last[usize::from(packet.pid()) % PIDS].state;
        last & SEEN != 0 && packet.continuity() == (last + u8::from(packet.has_payload())) & 0x0f
    }

    /// Enters the next packet; null packets, which do not count, are not to be given.
    pub(super) fn step(&mut self, packet: &Packet<'_>) -> Step {
        let entry = &mut self.last[usize::from(packet.pid()) % PIDS];
        let (before, now) = (*entry, Last::of(packet));
        let (seen, last) = (before.state & SEEN != 0, before.state & 0x0f);
        let is_discontinuity = packet.adaptation().discontinuity();
        if seen && !is_discontinuity && !packet.has_payload() && packet.continuity() == last {
            // Without a payload the counter stands still.
            return Step::Next;
        }
        *entry = now;
        if is_discontinuity {
            return Step::Break;
        }
        if !seen || (packet.has_payload() && packet.continuity() == (last + 1) & 0x0f) {
            return Step::Next;
        }
        // Not by the counter alone: 16 packets may be missing, or the stream has begun again.
        if packet.has_payload() && now == before {
            entry.state |= TWICE;
            return Step::Again;
        }
        self.errors += 1;
        Step::Gap
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::packet::Header;

    fn step(continuity: &mut Continuity, header: Header, mut payload: &[u8]) -> Step {
        let mut out = BytesMut::new();
        header.emit(&mut out, &mut payload);
        continuity.step(&Packet::new_checked(&out).unwrap())
    }

    #[test]
    fn gaps_are_told_from_what_is_allowed() {
        let mut counters = Continuity::new();
        let at = |continuity| Header { pid: 99, continuity, ..Header::default() };
        let mut full = |header| step(&mut counters, header, &[1; 184]);
        assert_eq!(full(at(14)), Step::Next);
        assert_eq!(full(at(15)), Step::Next);
        assert_eq!(full(at(0)), Step::Next);
        assert_eq!(full(at(0)), Step::Again);
        assert_eq!(full(at(0)), Step::Gap, "three times the same");
        assert_eq!(full(at(1)), Step::Next);
        assert_eq!(full(at(3)), Step::Gap);
        assert_eq!(full(Header { pid: 98, ..at(7) }), Step::Next, "another PID");
        assert_eq!(counters.errors(), 2);
    }

    #[test]
    fn another_packet_with_the_same_counter_is_not_the_same_once_more() {
        let mut counters = Continuity::new();
        let header = Header { pid: 99, continuity: 7, ..Header::default() };
        assert_eq!(step(&mut counters, header, &[1; 184]), Step::Next);
        assert_eq!(step(&mut counters, header, &[2; 184]), Step::Gap);
        assert_eq!(step(&mut counters, header, &[2; 184]), Step::Again);
        let next = Header { continuity: 8, ..header };
        let goes_on = |counters: &Continuity, header: Header| {
            let mut out = BytesMut::new();
            header.emit(&mut out, &mut &[3; 184][..]);
            counters.goes_on(&Packet::new_checked(&out).unwrap())
        };
        assert_eq!([header, next].map(|header| goes_on(&counters, header)), [false, true]);
        counters.break_off();
        assert!(!goes_on(&counters, next));
        assert_eq!(step(&mut counters, header, &[2; 184]), Step::Next);
        assert_eq!(counters.errors(), 1);
    }

    #[test]
    fn the_counter_stands_still_without_payload_and_begins_again_when_it_says_so() {
        let mut counters = Continuity::new();
        let at = |continuity| Header { pid: 99, continuity, ..Header::default() };
        assert_eq!(step(&mut counters, at(5), &[1]), Step::Next);
        assert_eq!(step(&mut counters, at(5), &[]), Step::Next);
        assert_eq!(step(&mut counters, at(6), &[1]), Step::Next);
        assert_eq!(step(&mut counters, Header { discontinuity: true, ..at(1) }, &[]), Step::Break);
        assert_eq!(step(&mut counters, at(2), &[1]), Step::Next);
        assert_eq!(step(&mut counters, at(4), &[]), Step::Gap);
        assert_eq!(counters.errors(), 1);
    }
}
