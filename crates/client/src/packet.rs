//! What a subscription yields.

use bytes::Bytes;
use outflow_media::Time;
use outflow_rtp::rtcp::SenderReport;

/// One packet as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Index into the format's tracks; 0 for a transport stream.
    pub track: u8,
    /// One RTP packet with its header, or whole transport stream packets, as the format says.
    pub bytes: Bytes,
    /// When it arrived.
    pub arrived: Time,
    /// What its RTP header said, if RTP carried it: of a transport stream too, where the header is
    /// no longer in `bytes`.
    pub rtp: Option<RtpStamp>,
}

/// The numbers of an RTP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtpStamp {
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Synchronization source.
    pub ssrc: u32,
}

/// Something received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// Media.
    Packet(Packet),
    /// What the sender says of a track (RFC 3550 section 6.4.1).
    SenderReport {
        /// The track.
        track: u8,
        /// What it says.
        report: SenderReport,
        /// When it arrived.
        arrived: Time,
    },
    /// What a relay answers to a client that asked it for a level.
    Levels {
        /// The level that it sends, from the next place on where it can change; 1 is the best.
        level: u8,
        /// Bytes a second of each level, the best first, as measured lately.
        rates: Vec<u32>,
        /// When it arrived.
        arrived: Time,
    },
}

/// What was received and not handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rejected {
    /// Neither RTP nor a transport stream, or with another payload type than described.
    pub malformed: u64,
    /// From an address other than the sender's, or on a channel that no track has.
    pub strangers: u64,
}
