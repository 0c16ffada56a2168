//! A flow as it is sent: packet after packet.

use bytes::Bytes;
use outflow_media::{Tag, Time};

/// A packet that is sent.
#[derive(Debug, Clone)]
pub(in crate::network) struct Emission {
    pub(in crate::network) tag: Tag,
    pub(in crate::network) bytes: usize,
    /// What it holds, if anything looks into it.
    pub(in crate::network) payload: Option<Bytes>,
}

/// Gives packet after packet of a flow, none before the one that came first.
pub(in crate::network) trait Source {
    /// When the next one is sent; `None` when there are no more.
    fn due(&self) -> Option<Time>;

    /// The next one.
    fn next(&mut self) -> Option<Emission>;
}
