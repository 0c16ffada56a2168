//! Why a viewer has not taken a packet.

use outflow_packet::DropReason;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undelivered {
    /// There is no room now: it is to be offered again.
    Later,
    Dropped(DropReason),
}
