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
    Anew,
}

/// The last continuity counter of every PID.
#[derive(Debug)]
pub(super) struct Continuity {
    counters: Box<[u8; PIDS]>,
    errors: u64,
}

impl Continuity {
    pub(super) fn new() -> Self {
        Continuity { counters: Box::new([0; PIDS]), errors: 0 }
    }

    /// Gaps so far.
    pub(super) const fn errors(&self) -> u64 {
        self.errors
    }

    /// Enters the next packet; null packets, which do not count, are not to be given.
    pub(super) fn step(&mut self, packet: &Packet<'_>) -> Step {
        let state = &mut self.counters[usize::from(packet.pid()) % PIDS];
        let (before, now) = (*state, packet.continuity());
        if packet.adaptation().discontinuity() {
            *state = SEEN | now;
            return Step::Anew;
        }
        if before & SEEN == 0 {
            *state = SEEN | now;
            return Step::Next;
        }
        let last = before & 0x0f;
        if !packet.has_payload() {
            // Without a payload the counter stands still.
            if now == last {
                return Step::Next;
            }
        } else if now == (last + 1) & 0x0f {
            *state = SEEN | now;
            return Step::Next;
        } else if now == last && before & TWICE == 0 {
            *state |= TWICE;
            return Step::Again;
        }
        *state = SEEN | now;
        self.errors += 1;
        Step::Gap
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::ts::packet::Header;

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
    fn the_counter_stands_still_without_payload_and_begins_anew_when_it_says_so() {
        let mut counters = Continuity::new();
        let at = |continuity| Header { pid: 99, continuity, ..Header::default() };
        assert_eq!(step(&mut counters, at(5), &[1]), Step::Next);
        assert_eq!(step(&mut counters, at(5), &[]), Step::Next);
        assert_eq!(step(&mut counters, at(6), &[1]), Step::Next);
        assert_eq!(step(&mut counters, Header { discontinuity: true, ..at(1) }, &[]), Step::Anew);
        assert_eq!(step(&mut counters, at(2), &[1]), Step::Next);
        assert_eq!(step(&mut counters, at(4), &[]), Step::Gap);
        assert_eq!(counters.errors(), 1);
    }
}
