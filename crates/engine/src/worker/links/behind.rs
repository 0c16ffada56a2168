//! What a sink that is behind a link has there.

use arrayvec::ArrayVec;
use outflow_link::FlowId;
use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::LinkId;

/// What a sink that is behind a link has there.
#[derive(Debug)]
pub(in super::super) struct Behind {
    /// It may be no more: its number is never given again.
    pub(super) link: LinkId,
    /// The flows of its tracks, from their first packets on.
    pub(super) flows: ArrayVec<(u8, FlowId), TRACKS_MAX>,
    /// Bytes that its packets have on the link besides those of the core.
    pub(super) overhead: usize,
}
