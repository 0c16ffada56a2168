//! Sequence numbers without the packets that were left out.

use super::tally::Tally;

/// Closes the gaps that packets leave in the sequence numbers of a track when they are left out. What was lost before
/// leaves its gap: nothing is known of it, and its receiver is to see that. Packets that come late, or once more, get
/// the number that they would have had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    left_out: Tally,
}

impl Closed {
    /// Goes on from the newest number, how many were left out, and which of the last 64 were: bit 0 is the newest.
    pub const fn resume(newest: Option<u16>, left_out: u16, recent: u64) -> Self {
        Closed { left_out: Tally::resume(newest, left_out, recent) }
    }

    /// Whether a packet of this number is newer than all before.
    pub const fn is_new(&self, sequence: u16) -> bool {
        self.left_out.is_new(sequence)
    }

    /// The number that a packet gets; nothing if it is left out, now or when it came first.
    pub const fn next(&mut self, sequence: u16, is_taken: bool) -> Option<u16> {
        match self.left_out.comes(sequence, !is_taken) {
            (before, false) if is_taken => Some(sequence.wrapping_sub(before)),
            _ => None,
        }
    }
}
