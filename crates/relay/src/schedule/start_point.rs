//! Where the tracks begin for a sink that joins.

/// Where a track's packets begin for a sink, for the answer to its request (RTP-Info, RFC 2326
/// section 12.33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartPoint {
    /// The track.
    pub track: u8,
    /// RTP sequence number of the first packet.
    pub sequence: u16,
    /// Its RTP timestamp.
    pub timestamp: u32,
}
