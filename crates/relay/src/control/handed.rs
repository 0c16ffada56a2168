//! What the owner of a stream hands to its replicas.

use outflow_media::Format;
use outflow_packet::{Parsed, ReportClock};

use crate::schedule::Counters;

/// What a replica is handed, in order.
#[derive(Debug, Clone)]
pub enum Handed {
    /// What the packets from now on are. `turn` tells a new format from the same one said again.
    Format {
        /// What receivers get.
        format: Format,
        /// How many formats there were before.
        turn: u64,
    },
    /// What a track's sender reports say from now on.
    Clock(TrackClock),
    /// The next packet.
    Packet(Parsed),
    /// The source is away; with its next packet it is back.
    Away,
    /// What comes now does not go on from what came before: no sink joins there any more.
    Break,
    /// This many packets of a track got lost on the way to the replica.
    Missed {
        /// The track.
        track: u8,
        /// How many.
        packets: u64,
    },
}

/// What is to be given when a replica begins.
#[derive(Debug, Clone)]
pub struct Joining {
    /// For the replicas that were there: what came before.
    pub before: Vec<Handed>,
    /// For the new one: how things stand, with the packets from the newest key frame on.
    pub introduction: Vec<Handed>,
}

/// What sender reports of a track are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackClock {
    /// The track.
    pub track: u8,
    /// Its times.
    pub clock: ReportClock,
    /// Its sender.
    pub ssrc: u32,
    /// Packets and bytes before the next one.
    pub passed: Counters,
}
