//! What a stream carries: its format, its packets, and how they are numbered.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use outflow_graph::SavedElement;
use outflow_media::{Format, Time, Track};
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{Anchor, ReportClock, SavedReceive};
use outflow_rtp::save::SavedTrack;

/// What came in, as far as receivers still get it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedCarried {
    /// What receivers get.
    #[n(0)]
    pub format: SavedFormat,
    /// How many formats there were before.
    #[n(1)]
    pub turn: u64,
    /// How the source's numbers become those of receivers; nothing in a replica.
    #[n(2)]
    pub receive: Option<SavedReceive>,
    /// Of each track, its sender.
    #[n(3)]
    pub senders: Vec<SavedSender>,
    /// The tables of a transport stream, for its reader to begin with.
    #[cbor(n(4), with = "crate::save::bytes")]
    pub tables: Bytes,
    /// The packets that receivers are owed, and those from the newest key frame on.
    #[n(5)]
    pub packets: Vec<SavedPacket>,
    /// Those of them at which receivers may join, by their index.
    #[n(6)]
    pub keys: Vec<u64>,
    /// How many layers the main track has shown.
    #[n(8)]
    pub layers: u8,
    /// Of each track, what layers it has shown: temporal and spatial ones, and whether there are frames that may be left
    /// out, where its packets say so; else those of any kind, temporal ones, and whether these were announced.
    #[n(10)]
    pub layers_shown: Vec<(u8, u8, bool)>,
    /// What its RTP tracks become as one transport stream, if receivers get that: by element.
    #[n(9)]
    pub to_ts: Option<Vec<SavedElement>>,
    /// Of each track, packets and bytes that there were in all.
    #[n(7)]
    pub passed: Vec<(u64, u64)>,
    /// What its services go on from, by element.
    #[n(11)]
    pub services: Option<Vec<SavedElement>>,
}

/// What is in the packets of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedFormat {
    /// `ts`, `rtp`, `images` or `data`.
    #[n(0)]
    pub kind: String,
    /// The tracks of RTP.
    #[n(1)]
    pub tracks: Vec<SavedTrack>,
}

/// A packet as receivers get it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPacket {
    /// When it came.
    #[n(0)]
    pub arrived_ns: u64,
    /// Its track.
    #[n(1)]
    pub track: u8,
    /// The RTP header of a transport stream's packet.
    #[n(2)]
    pub rtp_header: Option<[u8; 12]>,
    /// The packet.
    #[cbor(n(3), with = "crate::save::bytes")]
    pub bytes: Bytes,
}

/// What sender reports of a track are made of (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSender {
    /// Its SSRC.
    #[n(0)]
    pub ssrc: u32,
    /// A moment of its clock: when, the NTP time, the RTP timestamp.
    #[n(1)]
    pub anchor: Option<(u64, u64, u32)>,
    /// The source has said so.
    #[n(2)]
    pub told: bool,
    /// It began again, and nothing came of it since.
    #[n(3)]
    pub restarted: bool,
}

impl SavedFormat {
    pub(crate) fn of(format: &Format) -> Self {
        let (kind, tracks) = match format {
            Format::Ts => ("ts", &[][..]),
            Format::Rtp(tracks) => ("rtp", &tracks[..]),
            Format::Images => ("images", &[][..]),
            Format::Data => ("data", &[][..]),
        };
        SavedFormat { kind: kind.to_owned(), tracks: tracks.iter().map(SavedTrack::from).collect() }
    }

    /// The format, if it is one that is known here.
    pub(crate) fn format(self) -> Option<Format> {
        match self.kind.as_str() {
            "ts" => Some(Format::Ts),
            "rtp" if (1..=TRACKS_MAX).contains(&self.tracks.len()) => {
                Some(Format::Rtp(self.tracks.into_iter().map(Track::from).collect()))
            }
            "images" => Some(Format::Images),
            "data" => Some(Format::Data),
            _ => None,
        }
    }
}

impl SavedSender {
    pub(crate) fn of((clock, ssrc): (ReportClock, u32)) -> Self {
        let anchor = clock.anchor();
        SavedSender {
            ssrc,
            anchor: anchor.map(|(anchor, _)| (anchor.at.as_nanos(), anchor.ntp, anchor.rtp)),
            told: anchor.is_some_and(|(_, told)| told),
            restarted: clock.is_restarted(),
        }
    }

    /// Its clock; the rate is in ticks a second.
    pub(crate) fn clock(&self, clock_rate: u32, ntp_at_zero: u64) -> ReportClock {
        let mut clock = ReportClock::new(clock_rate, ntp_at_zero);
        if let Some((at, ntp, rtp)) = self.anchor {
            clock.set(Anchor { at: Time::from_nanos(at), ntp, rtp }, self.told);
        }
        if self.restarted {
            clock.restart();
        }
        clock
    }
}
