//! What a sink that is behind a link has there.

use arrayvec::ArrayVec;
use outflow_link::FlowId;
use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::LinkId;

/// What a sink that is behind a link has there.
#[derive(Debug)]
pub(in super::super) struct Behind {
    pub(super) link: LinkId,
    /// What that is called.
    pub(in super::super) name: String,
    /// The flows of its tracks, from their first packets on.
    pub(super) flows: ArrayVec<(u8, FlowId), TRACKS_MAX>,
    /// Bytes that its packets have on the link besides those of the core.
    pub(super) overhead: usize,
}

impl Behind {
    /// Whether this is the link.
    pub(in super::super) fn is_at(&self, link: LinkId) -> bool {
        self.link == link
    }
}
