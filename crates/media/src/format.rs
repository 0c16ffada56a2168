//! What a stream carries: one transport stream, RTP tracks with their codecs, or images.

use bytes::Bytes;

use crate::image::Shape;

/// The URI of AV1's dependency descriptor.
pub const DEPENDENCY_DESCRIPTOR: &str =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";
const FRAME_MARKING: &str = "urn:ietf:params:rtp-hdrext:framemarking";

/// What a stream's packets are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// MPEG-TS: a packet's bytes are a whole number of 188-byte transport packets
    /// (ISO/IEC 13818-1), whatever carried them here.
    Ts,
    /// RTP: a packet's bytes are one RTP packet (RFC 3550), header included. The index of a track
    /// is [`Tag::track`](crate::Tag::track).
    Rtp(Vec<Track>),
    /// Uncompressed images: a packet's bytes are one PPM or PGM image, all of it.
    Images,
    /// Opaque datagrams, each standing for itself: passed on as they are.
    Data,
}

/// One RTP media of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// What its payload is coded with.
    pub codec: Codec,
    /// RTP payload type, 0 to 127.
    pub payload_type: u8,
    /// Ticks a second of the RTP timestamp.
    pub clock_rate: u32,
    /// Audio channels, 0 if the description does not say.
    pub channels: u8,
    /// `a=fmtp` parameters as described, without the payload type; empty if there are none.
    pub fmtp: String,
    /// `a=rtpmap` encoding name as described, for example `H264`; its case is kept.
    pub encoding: String,
    /// Header extensions that its packets may have, as `a=extmap` binds them (RFC 8285 section 5).
    pub extensions: Vec<ExtensionMap>,
}

/// Which header extension the elements with an identifier are (RFC 8285 section 5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionMap {
    /// The local identifier, 1 to 255.
    pub id: u8,
    /// What the elements are.
    pub kind: ExtensionKind,
    /// The direction in which they are sent, as described (`sendonly`, say); empty if not given.
    pub direction: String,
    /// What is said behind the URI; mostly empty.
    pub attributes: String,
}

/// What elements of header extensions are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionKind {
    /// AV1's dependency descriptor, which other codecs may have, too (AV1 RTP specification, appendix A).
    DependencyDescriptor,
    /// RFC 9626.
    FrameMarking,
    /// Anything else, by its URI.
    Other(String),
}

impl ExtensionKind {
    /// The kind that this URI names.
    pub fn of(uri: &str) -> Self {
        match uri {
            DEPENDENCY_DESCRIPTOR => ExtensionKind::DependencyDescriptor,
            FRAME_MARKING => ExtensionKind::FrameMarking,
            other => ExtensionKind::Other(other.to_owned()),
        }
    }

    /// The URI that names it.
    pub fn uri(&self) -> &str {
        match self {
            ExtensionKind::DependencyDescriptor => DEPENDENCY_DESCRIPTOR,
            ExtensionKind::FrameMarking => FRAME_MARKING,
            ExtensionKind::Other(uri) => uri,
        }
    }
}

impl Track {
    /// A transport stream in RTP with its static payload type (RFC 3551, section 6).
    pub fn mp2t() -> Self {
        Track {
            codec: Codec::Mp2t,
            payload_type: 33,
            clock_rate: 90_000,
            channels: 0,
            fmtp: String::new(),
            encoding: "MP2T".to_owned(),
            extensions: Vec::new(),
        }
    }

    /// The track of an H.264 camera by RTP (RFC 6184), of the first dynamic payload type; its parameter sets come in
    /// its packets.
    pub fn h264() -> Self {
        Track {
            codec: Codec::H264 { sps: None, pps: None },
            payload_type: 96,
            encoding: "H264".to_owned(),
            ..Track::mp2t()
        }
    }

    /// What it is, for people: "video AV1", "PCMU".
    pub fn name(&self) -> String {
        match (self.codec.is_video(), self.encoding.as_str()) {
            (_, "") => format!("payload type {}", self.payload_type),
            (true, encoding) => format!("video {encoding}"),
            (false, encoding) => encoding.to_owned(),
        }
    }

    /// The identifier of the elements of this kind.
    pub fn extension(&self, kind: &ExtensionKind) -> Option<u8> {
        self.extensions.iter().find(|map| map.kind == *kind).map(|map| map.id)
    }
}

/// How a track is coded, with what a decoder needs to know beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codec {
    /// RFC 6184; parameter sets from `sprop-parameter-sets`, without start codes.
    H264 {
        /// Sequence parameter set, if described.
        sps: Option<Bytes>,
        /// Picture parameter set, if described.
        pps: Option<Bytes>,
    },
    /// RFC 7798; parameter sets from `sprop-vps`, `sprop-sps`, `sprop-pps`.
    H265 {
        /// Video parameter set, if described.
        vps: Option<Bytes>,
        /// Sequence parameter set, if described.
        sps: Option<Bytes>,
        /// Picture parameter set, if described.
        pps: Option<Bytes>,
    },
    /// MPEG-1 or MPEG-2 video elementary stream, RFC 2250 section 3.
    MpegVideo,
    /// AAC in `mpeg4-generic`, RFC 3640 (AAC-hbr).
    Aac {
        /// AudioSpecificConfig from `config=`.
        config: Bytes,
        /// Bits of AU-size in an AU header.
        size_length: u8,
        /// Bits of AU-Index in the first AU header.
        index_length: u8,
        /// Bits of AU-Index-delta in the following AU headers.
        index_delta_length: u8,
    },
    /// RFC 7587.
    Opus,
    /// MPEG-1/2 audio, RFC 2250 section 3.5.
    MpegAudio,
    /// Transport stream in RTP, RFC 2250 section 2. Streams with such a track become
    /// [`Format::Ts`] on receipt.
    Mp2t,
    /// Uncompressed video, RFC 4175; its size and pixels, if they are such as can be worked on.
    RawVideo(Option<Shape>),
    /// RFC 5371.
    Jpeg2000,
    /// AV1 RTP specification 1.0.
    Av1,
    /// RFC 9628.
    Vp9,
    /// RFC 7741.
    Vp8,
    /// Encrypted on its way here (RFC 3711): nothing but its header can be read.
    Srtp {
        /// Whether it is a picture.
        video: bool,
    },
    /// Anything else: relayed as it is, every packet standing for itself.
    Other {
        /// Whether `m=` said video.
        video: bool,
    },
}

impl Codec {
    /// Whether a picture comes out of it.
    pub const fn is_video(&self) -> bool {
        matches!(
            self,
            Codec::H264 { .. }
                | Codec::H265 { .. }
                | Codec::MpegVideo
                | Codec::Mp2t
                | Codec::RawVideo(_)
                | Codec::Jpeg2000
                | Codec::Av1
                | Codec::Vp9
                | Codec::Vp8
                | Codec::Srtp { video: true }
                | Codec::Other { video: true }
        )
    }

    /// Whether only its headers can be read (RFC 3711).
    pub const fn is_srtp(&self) -> bool {
        matches!(self, Codec::Srtp { .. })
    }
}

impl Format {
    /// The number of tracks: a transport stream counts as one.
    pub fn tracks(&self) -> usize {
        match self {
            Format::Ts | Format::Images | Format::Data => 1,
            Format::Rtp(tracks) => tracks.len(),
        }
    }

    /// An RTP track, by its number.
    pub fn track(&self, track: u8) -> Option<&Track> {
        match self {
            Format::Rtp(tracks) => tracks.get(usize::from(track)),
            Format::Ts | Format::Images | Format::Data => None,
        }
    }

    /// Ticks a second of a track's RTP timestamps; what is not RTP gets those of video.
    pub fn clock_rate(&self, track: u8) -> u32 {
        self.track(track).map_or(90_000, |track| track.clock_rate)
    }

    /// The track at whose key frames a receiver joins: the first video, or track 0.
    pub fn main_track(&self) -> u8 {
        match self {
            Format::Ts | Format::Images | Format::Data => 0,
            Format::Rtp(tracks) => {
                let video = tracks.iter().position(|t| t.codec.is_video()).unwrap_or(0);
                u8::try_from(video).unwrap_or(0)
            }
        }
    }
}
