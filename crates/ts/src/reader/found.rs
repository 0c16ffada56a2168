//! What a reader found in one packet.

use outflow_media::Content;
use outflow_media::frames::Frame;

/// What there is to know of one packet of a transport stream, for what takes the stream apart behind its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// How many frames of the main stream begin with it.
    pub begun: u32,
    /// The frame that arrives is complete with it, by the length of its PES packet.
    pub ends: bool,
    /// Packets are missing in front of it.
    pub is_behind_gap: bool,
    /// The PID of the main stream, once it is known.
    pub main_pid: Option<u16>,
    /// The frame that arrives, as far as it is known behind this packet.
    pub arriving: Option<Frame>,
    /// What the packet holds beside the main stream.
    pub content: Content,
}

impl Found {
    /// Of a packet that was put in, which no reader saw.
    pub const fn put_in(content: Content) -> Self {
        Found { begun: 0, ends: false, is_behind_gap: false, main_pid: None, arriving: None, content }
    }
}
