//! The contract's types as they cross the boundary; `wit/plugin.wit` says what they mean.

use std::sync::Arc;

use outflow_graph::{Message, TrackTime};
use outflow_media::{Codec, Format, Tag, Time, Track as MediaTrack};
use wasmtime::component::{ComponentType, Lift, Lower, flags};

#[derive(ComponentType, Lower, Debug)]
#[component(record)]
pub(crate) struct Track {
    codec: &'static str,
    encoding: String,
    fmtp: String,
    #[component(name = "clock-rate")]
    clock_rate: u32,
    channels: u8,
    video: bool,
}

#[derive(ComponentType, Lower, Debug)]
#[component(variant)]
pub(crate) enum Input {
    #[component(name = "ts")]
    Ts,
    #[component(name = "rtp")]
    Rtp(Vec<Track>),
    #[component(name = "images")]
    Images,
}

#[derive(ComponentType, Lift, Debug, Clone, Copy, PartialEq, Eq)]
#[component(variant)]
pub(crate) enum Payload {
    #[component(name = "none")]
    None,
    #[component(name = "head")]
    Head(u32),
    #[component(name = "all")]
    All,
    #[component(name = "parts")]
    Parts(u32),
}

#[derive(ComponentType, Lift, Debug, Clone, Copy)]
#[component(record)]
pub(crate) struct Setup {
    pub(crate) payload: Payload,
}

#[derive(ComponentType, Lower, Debug, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Kind {
    #[component(name = "header")]
    Header,
    #[component(name = "intra")]
    Intra,
    #[component(name = "predicted")]
    Predicted,
    #[component(name = "bidirectional")]
    Bidirectional,
    #[component(name = "enhancement")]
    Enhancement,
    #[component(name = "data")]
    Data,
}

/// What the source tells.
#[derive(ComponentType, Lift, Lower, Debug, Clone, Copy)]
#[component(variant)]
pub(crate) enum Notice {
    #[component(name = "clock")]
    Clock(Clock),
    #[component(name = "restart")]
    Restart,
}

#[derive(ComponentType, Lift, Lower, Debug, Clone, Copy)]
#[component(record)]
pub(crate) struct Clock {
    track: u8,
    ntp: u64,
    rtp: u32,
    at: u64,
    told: bool,
}

impl From<Message> for Notice {
    fn from(message: Message) -> Self {
        match message {
            Message::Clock(TrackTime { track, ntp, rtp, at, told }) => {
                Notice::Clock(Clock { track, ntp, rtp, at: at.as_nanos(), told })
            }
            Message::Break => Notice::Restart,
        }
    }
}

impl From<Notice> for Message {
    fn from(told: Notice) -> Self {
        match told {
            Notice::Clock(Clock { track, ntp, rtp, at, told }) => {
                Message::Clock(TrackTime { track, ntp, rtp, at: Time::from_nanos(at), told })
            }
            Notice::Restart => Message::Break,
        }
    }
}

flags! {
    Marks {
        #[component(name = "first")]
        const FIRST;
        #[component(name = "last")]
        const LAST;
        #[component(name = "key")]
        const KEY;
    }
}

#[derive(ComponentType, Lower, Debug, Clone, Copy)]
#[component(record)]
pub(crate) struct Packet {
    arrived: u64,
    offset: u32,
    length: u32,
    size: u32,
    frame: u32,
    track: u8,
    kind: Kind,
    layer: u8,
    marks: Marks,
    needs: u32,
}

/// What goes into a call to `work`. The records come back for the next.
pub(crate) type Packets = Arc<Vec<Packet>>;

#[derive(ComponentType, Lift, Debug, Clone, Copy)]
#[component(record)]
pub(crate) struct Edit {
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) after: u32,
}

#[derive(ComponentType, Lift, Debug, Clone, Copy)]
#[component(record)]
pub(crate) struct Action {
    pub(crate) packet: u32,
    pub(crate) port: u8,
    pub(crate) edit: Option<Edit>,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct Chosen {
    pub(crate) actions: Vec<Action>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(ComponentType, Lift, Debug)]
#[component(variant)]
pub(crate) enum Answer {
    #[component(name = "pass")]
    Pass,
    #[component(name = "only")]
    Only(Chosen),
}

impl Packet {
    /// A packet of `size` bytes, `length` of which begin at `offset` of the batch's.
    pub(crate) fn new(tag: &Tag, arrived: Time, offset: usize, length: usize, size: usize) -> Self {
        let mut marks = Marks::empty();
        for (is, mark) in [(tag.first, Marks::FIRST), (tag.last, Marks::LAST), (tag.key, Marks::KEY)] {
            if is {
                marks |= mark;
            }
        }
        Packet {
            arrived: arrived.as_nanos(),
            // A batch is smaller than the memory of its element, which 32 bits address.
            offset: offset as u32,
            length: length as u32,
            size: size as u32,
            frame: tag.frame,
            track: tag.track,
            kind: tag.kind.into(),
            layer: tag.layer,
            marks,
            needs: tag.needs.mask(),
        }
    }
}

impl From<outflow_media::Kind> for Kind {
    fn from(kind: outflow_media::Kind) -> Self {
        match kind {
            outflow_media::Kind::Header => Kind::Header,
            outflow_media::Kind::Intra => Kind::Intra,
            outflow_media::Kind::Predicted => Kind::Predicted,
            outflow_media::Kind::Bidirectional => Kind::Bidirectional,
            outflow_media::Kind::Enhancement => Kind::Enhancement,
            outflow_media::Kind::Data => Kind::Data,
        }
    }
}

impl From<&Format> for Input {
    fn from(format: &Format) -> Self {
        match format {
            // No element takes opaque datagrams.
            Format::Ts | Format::Data => Input::Ts,
            Format::Images => Input::Images,
            Format::Rtp(tracks) => Input::Rtp(tracks.iter().map(Track::from).collect()),
        }
    }
}

impl From<&MediaTrack> for Track {
    fn from(track: &MediaTrack) -> Self {
        Track {
            codec: codec(&track.codec),
            encoding: track.encoding.clone(),
            fmtp: track.fmtp.clone(),
            clock_rate: track.clock_rate,
            channels: track.channels,
            video: track.codec.is_video(),
        }
    }
}

fn codec(codec: &Codec) -> &'static str {
    match codec {
        Codec::H264 { .. } => "h264",
        Codec::H265 { .. } => "h265",
        Codec::MpegVideo => "mpeg-video",
        Codec::Aac { .. } => "aac",
        Codec::Opus => "opus",
        Codec::MpegAudio => "mpeg-audio",
        Codec::Mp2t => "mp2t",
        Codec::RawVideo(_) => "raw-video",
        Codec::Jpeg2000 => "jpeg2000",
        Codec::Av1 => "av1",
        Codec::Vp9 => "vp9",
        Codec::Vp8 => "vp8",
        Codec::Srtp { .. } => "srtp",
        Codec::Other { .. } => "other",
    }
}
