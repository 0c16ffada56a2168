//! Which packets of a flow came before, told by RTP source and sequence number.

use outflow_rtp::sequence_distance;

use crate::limits::{FLOWS_MAX, LATE_IN_A_ROW_MAX};

/// Where a packet stands among those of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It is the first with its number.
    First,
    /// Another with its number came before.
    Before,
    /// It is older than what is remembered.
    Late,
}

/// What came of each flow.
#[derive(Debug, Clone)]
pub(super) struct Copies {
    window: u16,
    /// The one that was heard last stands last.
    flows: Vec<Flow>,
}

#[derive(Debug, Clone)]
struct Flow {
    ssrc: u32,
    highest: u16,
    late_in_a_row: u8,
    /// Bit by number, modulo the window.
    seen: Vec<u64>,
}

impl Copies {
    /// Remembers `window` packets of each flow: a power of two, 64 at least.
    pub(super) fn new(window: u16) -> Self {
        Copies { window, flows: Vec::with_capacity(FLOWS_MAX) }
    }

    /// Goes on from what another one remembers.
    pub(super) fn resume(&mut self, before: Copies) {
        if before.window == self.window {
            self.flows = before.flows;
        }
    }

    /// Notes a packet.
    pub(super) fn note(&mut self, ssrc: u32, sequence: u16) -> Came {
        match self.flows.iter().position(|flow| flow.ssrc == ssrc) {
            Some(at) if at + 1 == self.flows.len() => {}
            Some(at) => self.flows[at..].rotate_left(1),
            None => {
                if self.flows.len() == FLOWS_MAX {
                    self.flows.remove(0);
                }
                let seen = vec![0; usize::from(self.window) / 64];
                self.flows.push(Flow { ssrc, highest: sequence.wrapping_sub(1), late_in_a_row: 0, seen });
            }
        }
        let flow = self.flows.last_mut().expect("it was found or put there");
        flow.note(sequence, self.window)
    }
}

impl Flow {
    fn note(&mut self, sequence: u16, window: u16) -> Came {
        let step = sequence_distance(self.highest, sequence);
        if step <= 0 && step.unsigned_abs() >= window && self.late_in_a_row < LATE_IN_A_ROW_MAX {
            self.late_in_a_row += 1;
            return Came::Late;
        }
        let restarted = step.unsigned_abs() >= window;
        self.late_in_a_row = 0;
        if restarted {
            self.seen.fill(0);
        }
        if step > 0 || restarted {
            for skipped in 1..step.clamp(1, window.cast_signed()).cast_unsigned() {
                self.set(sequence.wrapping_sub(skipped), false, window);
            }
            self.highest = sequence;
            self.set(sequence, true, window);
            return Came::First;
        }
        if self.set(sequence, true, window) { Came::Before } else { Came::First }
    }

    /// Sets a bit; returns what it was.
    fn set(&mut self, sequence: u16, seen: bool, window: u16) -> bool {
        let place = sequence % window;
        let (word, bit) = (&mut self.seen[usize::from(place / 64)], 1 << (place % 64));
        let before = *word & bit != 0;
        if seen {
            *word |= bit
        } else {
            *word &= !bit
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(copies: &mut Copies, numbers: &[u16]) -> Vec<Came> {
        numbers.iter().map(|number| copies.note(1, *number)).collect()
    }

    #[test]
    fn copies_are_told_across_the_wrap_and_late() {
        use Came::{Before, First, Late};
        let mut copies = Copies::new(64);
        assert_eq!(
            came(&mut copies, &[65_534, 65_534, 0, 65_535, 65_535, 0]),
            [First, Before, First, First, Before, Before]
        );
        assert_eq!(copies.note(2, 0), First, "of another flow");
        assert_eq!(came(&mut copies, &[70, 8, 8, 6]), [First, First, Before, Late]);
    }

    #[test]
    fn a_flow_that_restarted_is_believed_after_a_while() {
        let mut copies = Copies::new(64);
        copies.note(1, 1000);
        let restarted: Vec<u16> = (100..140).collect();
        let came = came(&mut copies, &restarted);
        assert_eq!(came.iter().filter(|came| **came == Came::Late).count(), usize::from(LATE_IN_A_ROW_MAX));
        assert!(came[usize::from(LATE_IN_A_ROW_MAX)..].iter().all(|came| *came == Came::First));
    }

    #[test]
    fn the_flow_that_was_silent_for_longest_is_forgotten() {
        let mut copies = Copies::new(64);
        (0..FLOWS_MAX as u32).for_each(|ssrc| assert_eq!(copies.note(ssrc, 5), Came::First));
        assert_eq!(copies.note(0, 5), Came::Before);
        copies.note(1_000, 5);
        assert_eq!((copies.note(0, 5), copies.note(1, 5)), (Came::Before, Came::First));
    }
}
