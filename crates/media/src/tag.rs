//! What one packet means: the tag that the filter, the buffers, the priorities and the
//! simulator all read.

use crate::Time;

/// What kind of frame a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
    /// Parameter sets, sequence headers, program tables: needed by all that follows.
    Header,
    /// Coded without reference to other frames.
    Intra,
    /// Coded with reference to earlier frames, and itself a reference.
    Predicted,
    /// Nothing else needs it (a non-reference B or P frame).
    Bidirectional,
    /// Improves a frame that is already decodable without it.
    Enhancement,
    /// Audio, subtitles, and whatever the reader does not understand: stands alone.
    #[default]
    Data,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Header, Kind::Intra, Kind::Predicted, Kind::Bidirectional, Kind::Enhancement, Kind::Data];
}

/// What a packet of [`Kind::Data`] holds, as far as its reader knows. Where it holds several, as a datagram of a
/// transport stream may, the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Content {
    /// Nothing: null packets.
    Stuffing,
    /// What is not known, or something else than is told apart here.
    #[default]
    Opaque,
    /// Audio.
    Sound,
    /// Program tables, or a clock reference.
    Tables,
}

/// Which earlier frames of the same track a frame needs, directly.
///
/// Bit `i` stands for the frame whose number is smaller by `i + 1`. A frame is decodable when
/// all the frames that it needs are, so direct needs are enough to follow a chain back to the
/// last key frame. Needs that reach back further than 32 frames cannot be written down; readers
/// name the nearest reference in the chain instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Needs(u32);

impl Needs {
    /// Needs nothing: decoding can start here.
    pub const NOTHING: Needs = Needs(0);

    /// Needs the frame whose number is smaller by `distance` (1 to 32; others are clamped).
    pub const fn back(distance: u32) -> Self {
        let d = if distance < 1 {
            1
        } else if distance > 32 {
            32
        } else {
            distance
        };
        Needs(1 << (d - 1))
    }

    /// The same, but nothing if that is further back than can be written down: another frame in its place
    /// might be of a higher layer.
    pub const fn reaching(distance: u32) -> Self {
        if distance > 32 { Needs::NOTHING } else { Needs::back(distance) }
    }

    /// The needs of both.
    pub const fn and(self, other: Needs) -> Self {
        Needs(self.0 | other.0)
    }

    /// Whether nothing is needed.
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// The mask itself: bit `i` set means "needs the frame `i + 1` before".
    pub const fn mask(self) -> u32 {
        self.0
    }

    /// The distances of the needed frames, nearest first.
    pub fn distances(self) -> impl Iterator<Item = u32> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let distance = left.trailing_zeros() + 1;
            left &= left.checked_sub(1)?;
            Some(distance)
        })
    }
}

/// What one packet means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// Number of the frame (access unit) within its track, counting up by one a frame, wrapping. Of codecs
    /// with spatial layers, a frame is that of one of them. Where a stream numbers its frames itself (AV1's
    /// dependency descriptor), numbers of those that did not come are left out.
    pub frame: u32,
    /// The track: index into the stream's [`Format`](crate::Format). All of a transport stream
    /// is track 0, because its packets share datagrams and continuity counters.
    pub track: u8,
    /// Kind of the frame. Fragments carry the kind of their frame.
    pub kind: Kind,
    /// What a packet of [`Kind::Data`] holds; of all others [`Content::Opaque`].
    pub content: Content,
    /// Quality layer, 0 is the base; 7 bits are used.
    ///
    /// Layers are in one order: a receiver of those from 0 up to any one of them can decode what it has,
    /// because nothing needs a packet of a higher layer. With `n` of them, level `q` (1 is the best, `n`
    /// the base alone) takes the layers 0 to `n - q`. What they are depends on the codec:
    ///
    /// | codec | layers, the base first |
    /// |---|---|
    /// | H.264 | intra pictures; other references; pictures that are no references |
    /// | MPEG video | I; P; B |
    /// | H.265 | entry points (IRAP); one a temporal sub-layer; those of the highest that are no references |
    /// | AV1, VP9 | one a temporal layer of the lowest spatial one; one for each further spatial layer |
    /// | VP8 | one a temporal layer; without those, references and others |
    /// | others, marked (RFC 9626) | as AV1; and, above all, what may be left out |
    /// | JPEG 2000 | those of the codestream, by the priority of its packets (RFC 5372); all in every frame |
    /// | others, and all audio | one |
    ///
    /// Parameter sets, and what comes of a frame before it shows what it is, are of layer 0. Packets of a
    /// transport stream are of layer 0, because its datagrams mix frames; `outflow_ts::TsFrames` tells them apart.
    pub layer: u8,
    /// How many layers the track has, as far as it was known when the packet came: what the stream
    /// declares, or what its codec has at most. It does not shrink while the stream stays the same. 0 and
    /// 1 mean that there is nothing to choose.
    pub layers: u8,
    /// A receiver of all lower layers can take the layer of this packet, too, from this frame on. A key
    /// frame that opens its layer opens all layers at once. One that does not is of an open group: behind it
    /// may come frames whose [`needs`](Self::needs) reach past it (leading pictures), and the first that is
    /// none of these opens all layers. When in doubt it is false, and a key frame is to be waited for.
    ///
    /// To *take* a layer is to have had all its frames since the last key frame, or since one that opened
    /// it. Layers may be empty: one of which there was no frame since the last key frame is taken, too.
    pub opens: bool,
    /// This frame shows that there are this many more temporal layers, its own the highest of them: what
    /// was above has numbers higher by that from here on. A receiver of all that was below misses nothing.
    pub grown: u8,
    /// This packet holds the first bytes of its frame.
    pub first: bool,
    /// Its frame is a further one of the same picture: a higher spatial layer. A receiver of less goes on to
    /// the end of the picture, where the RTP marker stands for what it took of it.
    pub adds: bool,
    /// This packet holds the last bytes of its frame, as far as the format lets one know.
    pub last: bool,
    /// Of a picture of several layers, this packet holds the last bytes for receivers of layers up to this,
    /// and at least the packet's own: for them the RTP marker stands here. `None` where that is not known, and
    /// at the end of the whole picture, which the packet's own marker tells.
    pub ends: Option<u8>,
    /// This packet shows that decoding can start at its frame. It may stand behind the frame's
    /// first packet (an access unit delimiter, say, comes before the parameter sets).
    pub key: bool,
    /// The frames of the same track that this one needs.
    pub needs: Needs,
    /// Until when the packet is useful, if that is known.
    pub deadline: Option<Time>,
}

impl Tag {
    /// Whether the packet is no part of the frame whose number it has, but stands between the packets of it: what
    /// a transport stream has beside its main stream.
    pub const fn stands_between(&self) -> bool {
        matches!(self.kind, Kind::Data) && !self.first && !self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_name_frames_by_distance() {
        let needs = Needs::back(1).and(Needs::back(4));
        assert_eq!(needs.distances().collect::<Vec<_>>(), [1, 4]);
        assert!(!needs.is_nothing());
        assert!(Needs::NOTHING.is_nothing());
        assert_eq!(Needs::back(0), Needs::back(1));
        assert_eq!(Needs::back(99), Needs::back(32));
        assert_eq!(Needs::reaching(32), Needs::back(32));
        assert!(Needs::reaching(33).is_nothing());
    }
}
