//! The name of a connection in what is sent.

/// What one end calls a connection. The peer puts this id in front of what it sends; it should not be guessed
/// soon, but keeping others out is the protection's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub [u8; ConnectionId::BYTES]);

impl ConnectionId {
    /// As many as SRT and ESP (RFC 4303) take: they are in each packet, and those of live media are short.
    pub const BYTES: usize = 4;
}
