//! What came of packets that went through something else than the simulator, by the same account.

use outflow_media::Time;

use super::ledger::{Fate, Ledger};
use super::model::Counting;
use super::outcome::FlowOutcome;
use crate::capture::CapturedPacket;

/// The account of a flow that was captured on its way in, where it is known of each packet whether it arrived. As in
/// a run, frames count that begin at `from` or later, from the first on that needs nothing. Packets come in the order
/// in which they were sent.
pub fn account(
    counting: Counting,
    from: Time,
    packets: impl IntoIterator<Item = (CapturedPacket, bool)>,
) -> FlowOutcome {
    let mut ledger = Ledger::new(counting, from);
    for (packet, arrived) in packets {
        let fate = Fate { number: ledger.sent(), sent: packet.at, tag: packet.tag, bytes: packet.bytes };
        ledger.settle(fate, arrived);
    }
    ledger.outcome()
}

#[cfg(test)]
mod tests {
    use outflow_media::{Kind, Needs, Tag};

    use super::*;

    /// Frames of a packet each, 100 ms and 10 bytes apart, each but the first needing the one before it.
    fn packets(lost: u32) -> impl Iterator<Item = (CapturedPacket, bool)> {
        (0..5_u32).map(move |frame| {
            let needs = if frame == 0 { Needs::NOTHING } else { Needs::back(1) };
            let kind = Kind::Predicted;
            let tag = Tag { frame, kind, needs, first: true, last: true, ..Tag::default() };
            let at = Time::from_millis(100 * u64::from(frame));
            (CapturedPacket { at, bytes: 10 * (frame as usize + 1), tag }, frame != lost)
        })
    }

    #[test]
    fn it_counts_what_arrived_and_can_be_used() {
        let outcome = account(Counting::Frames, Time::ZERO, packets(3));
        assert_eq!((outcome.bytes, outcome.good_bytes), (150, 60));
        assert_eq!((outcome.frames, outcome.good_frames), (5, 3));
        let later = account(Counting::Frames, Time::from_millis(100), packets(3));
        assert_eq!((later.bytes, later.good_bytes), (140, 50), "the first does not count");
    }
}
