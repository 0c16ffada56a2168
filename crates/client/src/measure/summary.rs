//! What a measurement found.

use serde::Serialize;

/// What was found, as `outflow watch --json` prints it. Times in milliseconds count from the
/// beginning of connecting; what never happened is `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// `mpeg-ts` or `rtp`.
    pub format: &'static str,
    /// Seconds from the first packet to the end.
    pub duration_s: f64,
    /// Packets, or datagrams of a transport stream.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bits a second, from the first packet on.
    pub rate_bps: u64,
    /// Packets missing: by RTP sequence numbers, or else by continuity counters.
    pub lost: u64,
    /// Share of those expected that are missing, 0 to 1.
    pub loss: f64,
    /// Interarrival jitter (RFC 3550 section 6.4.1) of the main track, of the PCR where there is
    /// no RTP.
    pub jitter_ms: f64,
    /// The longest time without a packet.
    pub longest_gap_ms: f64,
    /// First packet.
    pub first_packet_ms: Option<f64>,
    /// First packet of the first key frame.
    pub first_key_ms: Option<f64>,
    /// Last packet of the first frame that could be decoded.
    pub first_decodable_ms: Option<f64>,
    /// Frames of the main track.
    pub frames: u64,
    /// Those that came whole, and all that they need, too.
    pub decodable_frames: u64,
    /// Key frames.
    pub key_frames: u64,
    /// Mean time from one key frame to the next, by the stream's own clock.
    pub key_interval_ms: Option<f64>,
    /// Continuity errors of a transport stream.
    pub continuity_errors: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Sender reports received.
    pub sender_reports: u64,
    /// Each track by itself.
    pub tracks: Vec<TrackSummary>,
}

/// What was found of one track.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackSummary {
    /// Its encoding, as described.
    pub encoding: String,
    /// Packets received.
    pub packets: u64,
    /// Packets missing.
    pub lost: u64,
    /// Interarrival jitter.
    pub jitter_ms: f64,
}
