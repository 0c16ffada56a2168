//! What a rule by which packets are discarded is asked, and what it answers.

use core::fmt::Debug;

use outflow_media::Time;
use outflow_packet::DropReason;

use crate::buffer::{Held, Waiting};
use crate::flow::FlowId;

/// What is discarded at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Unit {
    /// A packet: others of its frame may go.
    #[default]
    Packet,
    /// What still comes of a frame of which a packet was discarded.
    Frame,
}

/// Whether an arriving packet may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does; there is room for it now.
    Wait,
    /// It goes no further.
    Discard(DropReason),
}

/// Decides about the packets of one buffer.
pub(crate) trait Discard: Debug + Send {
    /// At its beginning.
    fn new(unit: Unit) -> Self
    where
        Self: Sized;

    /// What becomes of a packet that arrives at `now` where `free` bytes are free. Asked once a packet, in
    /// their order. Packets that are waiting may be taken out to make room. If it waits, it will stand at the
    /// buffer's next place.
    fn arrives(&mut self, now: Time, packet: &mut Waiting, free: usize, held: &mut dyn Held) -> Verdict;

    /// Others need this many bytes of the room that was lent to this buffer. Packets that wait are taken out.
    fn give_back(&mut self, _now: Time, _bytes: usize, _held: &mut dyn Held) {}

    /// The packet that stood at a place, the first of the buffer, goes no further, because it is too late for it.
    fn expires(&mut self, _packet: &Waiting, _place: u64, _held: &mut dyn Held) {}

    /// The packet that stood at a place, the first of the buffer, has gone.
    fn departs(&mut self, _packet: &Waiting, _place: u64) {}

    /// A flow has ended.
    fn forget(&mut self, _flow: FlowId) {}
}
