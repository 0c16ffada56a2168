//! Tail-drop, as in a plain queue: what arrives at a full ring is lost to all.

use outflow_media::Time;
use outflow_packet::DropReason;

use super::arrival::{Load, Policy, Verdict};

/// Refuses what does not fit. It knows packets only, not what they depend on.
#[derive(Debug)]
pub(super) struct Tail;

impl Policy for Tail {
    fn new(_seed: u64) -> Self {
        Tail
    }

    fn arrives(&mut self, _now: Time, load: &Load) -> Verdict {
        if load.is_full() { Verdict::Refuse(DropReason::TailDrop) } else { Verdict::Admit }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::owing;
    use super::*;

    #[test]
    fn the_last_packet_that_fits_is_taken_and_the_next_is_not() {
        let mut tail = Tail::new(0);
        assert_eq!(tail.arrives(Time::ZERO, &owing(99_000)), Verdict::Admit);
        assert_eq!(tail.arrives(Time::ZERO, &owing(99_001)), Verdict::Refuse(DropReason::TailDrop));
        assert_eq!(tail.arrives(Time::ZERO, &owing(98_000)), Verdict::Admit, "there is room again");
    }
}
