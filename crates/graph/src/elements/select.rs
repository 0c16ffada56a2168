//! Which packets are meant: what elements share that match packets.

use outflow_media::{Codec, Kind, Tag, Track};
use outflow_packet::TrackMask;

use crate::{Form, Item, Opt, Settings};

/// Kinds of frames, as they are written; in the order of [`Kind`].
pub(super) const WORDS: &[&str] = &["header", "intra", "predicted", "bidirectional", "enhancement", "data"];

// The options that say which packets are meant. A packet is meant if it is all that is given.

/// By kind of frame.
pub(super) const KINDS: Opt = Opt::new(
    "kinds",
    Form::Words(WORDS),
    None,
    "Frames of these kinds; parameter sets in front of a frame are of its kind.",
);

/// By track.
pub(super) const TRACKS: Opt =
    Opt::new("tracks", Form::Numbers(0, 31), None, "Packets of these tracks, the first is 0.");

/// By layer.
pub(super) const LAYER: Opt = Opt::new(
    "layer",
    Form::Whole(0, 127),
    None,
    "Frames of this layer or a lower one, 0 is the base; a frame is judged by its first packet.",
);

/// By RTP payload type.
pub(super) const PAYLOAD_TYPES: Opt =
    Opt::new("payload_types", Form::Numbers(0, 127), None, "Packets with these RTP payload types.");

/// By RTP source.
pub(super) const SSRCS: Opt =
    Opt::new("ssrcs", Form::Numbers(0, u32::MAX as u64), None, "Packets of these RTP sources (SSRC).");

/// Which packets are meant.
#[derive(Debug, Clone, Default)]
pub(super) struct Select {
    kinds: Option<u8>,
    tracks: Option<TrackMask>,
    layer: Option<u8>,
    payload_types: Option<u128>,
    ssrcs: Option<Vec<u32>>,
}

impl Select {
    /// As it is given; what is not given matches all.
    pub(super) fn new(settings: &Settings) -> Self {
        let kind = |word: &String| WORDS.iter().position(|kind| kind == word);
        Select {
            kinds: settings
                .texts("kinds")
                .map(|words| words.iter().filter_map(kind).fold(0, |mask, at| mask | 1 << at)),
            tracks: settings.numbers("tracks").map(|tracks| mask(&tracks)),
            layer: settings.whole("layer").map(|layer| layer as u8),
            payload_types: settings
                .numbers("payload_types")
                .map(|types| types.iter().fold(0, |mask, number| mask | 1 << (number & 127))),
            ssrcs: settings.numbers("ssrcs").map(|ssrcs| ssrcs.iter().map(|ssrc| *ssrc as u32).collect()),
        }
    }

    /// Whether nothing is given, so that every packet is meant.
    pub(super) fn is_all(&self) -> bool {
        let Select { kinds, tracks, layer, payload_types, ssrcs } = self;
        kinds.is_none() && tracks.is_none() && layer.is_none() && payload_types.is_none() && ssrcs.is_none()
    }

    /// Whether a packet is meant.
    pub(super) fn matches(&self, item: &Item) -> bool {
        let Tag { track, kind, layer, .. } = item.packet.tag;
        self.kinds.is_none_or(|kinds| kinds >> place(kind) & 1 == 1)
            && self.tracks.is_none_or(|tracks| tracks.has(track))
            && self.layer.is_none_or(|most| layer <= most)
            && self.matches_header(item)
    }

    fn matches_header(&self, item: &Item) -> bool {
        if self.payload_types.is_none() && self.ssrcs.is_none() {
            return true;
        }
        let Some(header) = item.header() else { return false };
        let [_, kind, .., a, b, c, d] = *header;
        self.payload_types.is_none_or(|types| types >> (kind & 127) & 1 == 1)
            && self.ssrcs.as_ref().is_none_or(|ssrcs| ssrcs.contains(&u32::from_be_bytes([a, b, c, d])))
    }
}

/// The place of a kind in [`WORDS`].
pub(super) fn place(kind: Kind) -> usize {
    match kind {
        Kind::Header => 0,
        Kind::Intra => 1,
        Kind::Predicted => 2,
        Kind::Bidirectional => 3,
        Kind::Enhancement => 4,
        Kind::Data => 5,
    }
}

/// Whether a track is asked for and its RTP packets can be changed.
pub(super) fn can_be_changed(asked: TrackMask, index: usize, track: &Track) -> bool {
    asked.has(index as u8) && !track.codec.is_srtp() && track.codec != Codec::Mp2t
}

/// A set of tracks as it is given.
pub(super) fn mask(tracks: &[u64]) -> TrackMask {
    tracks.iter().fold(TrackMask::NONE, |mask, track| mask.with(TrackMask::only(*track as u8)))
}
