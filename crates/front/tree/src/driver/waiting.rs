//! Callers that wait for a stream.

use outflow_media::Time;
use outflow_packet::Level;
use tokio::sync::oneshot;

use super::super::input::LinkId;
use super::super::wants::Wanter;

/// A caller that waits for a stream.
pub(super) struct Waiting {
    pub(super) stream: String,
    pub(super) level: Level,
    pub(super) wanter: Wanter,
    pub(super) until: Time,
    pub(super) asker: Asker,
}

/// What waits, and for what.
pub(super) enum Asker {
    /// To be told that packets come.
    Receiver(oneshot::Sender<bool>),
    /// Another relay, to be told that this one has the stream.
    Relay(LinkId, u32),
}
