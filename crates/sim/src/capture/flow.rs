//! What was recorded: flows, and their packets.

use outflow_media::{Format, Tag, Time};

/// What went from one address to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFlow {
    /// `10.0.0.1:5004 > 10.0.0.2:6000`, or the name of the file.
    pub name: String,
    /// What it is.
    pub kind: FlowKind,
    /// What its packets are, for the relay; `None` of data. Packets that stand alone, because they are none of
    /// that, are of the track behind its tracks.
    pub format: Option<Format>,
    /// What it carries, in words.
    pub carries: String,
    /// Its packets, by their time. There is at least one.
    pub packets: Vec<CapturedPacket>,
    /// Packets of its tracks that could not be read as what they should be, and so stand alone.
    pub not_understood: u64,
    /// Packets of which the capture has only the beginning. Their size is that on the wire.
    pub cut_off: u64,
}

/// What a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// RTP, but not with a transport stream.
    Rtp,
    /// A transport stream, bare or in RTP.
    Ts,
    /// Anything else.
    Data,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it came, since the first packet of all flows.
    pub at: Time,
    /// Bytes of the IP packet, headers included, on the wire.
    pub bytes: usize,
    /// What it means.
    pub tag: Tag,
}
