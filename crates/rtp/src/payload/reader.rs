//! What one RTP packet means.

mod quality;

use outflow_media::codec::{Unit, h264 as h264_codec, h265 as h265_codec};
use outflow_media::format::{Codec, ExtensionKind, Track};
use outflow_media::frames::{Frame, Frames};
use outflow_media::{Content, Kind, Malformed, Needs, Tag};
pub use quality::PrioritiesRead;
use quality::Quality;

use super::layered::{Av1, Layered, Marked, PacketFrame, Vp8, Vp9};
use super::{Piece, h264, h265, mpeg};
use crate::limits::{LATE_PACKETS_MAX, REMEMBERED_FRAMES};
use crate::{RtpHeader, sequence_distance};

const LATE: i16 = -LATE_PACKETS_MAX.cast_signed();
/// Bytes of a fragment that are looked at: slice headers and recovery points are shorter.
const LOOKED_AT: usize = 64;

/// How the payload of a track is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    H264,
    H265 {
        order_numbers: bool,
    },
    MpegVideo,
    /// A frame goes on until the marker.
    Aac,
    MpegAudio,
    /// Every packet is a frame.
    Packet,
    /// Every timestamp is a frame.
    Timestamp,
    /// The same, and each packet names its layer.
    Jpeg2000,
    /// The same, of packets whose padding cannot be read either.
    Encrypted,
}

impl Payload {
    pub(super) fn of(track: &Track) -> Self {
        match &track.codec {
            Codec::H264 { .. } => Payload::H264,
            Codec::H265 { .. } => Payload::H265 { order_numbers: has_order_numbers(&track.fmtp) },
            Codec::MpegVideo => Payload::MpegVideo,
            Codec::Aac { .. } => Payload::Aac,
            Codec::MpegAudio => Payload::MpegAudio,
            Codec::Opus => Payload::Packet,
            Codec::Srtp { .. } => Payload::Encrypted,
            Codec::Jpeg2000 => Payload::Jpeg2000,
            Codec::Mp2t | Codec::RawVideo(_) | Codec::Av1 | Codec::Vp9 | Codec::Vp8 | Codec::Other { .. } => {
                Payload::Timestamp
            }
        }
    }

    const fn has_needs(self) -> bool {
        matches!(self, Payload::H264 | Payload::H265 { .. } | Payload::MpegVideo)
    }
}

/// Whether packets of a track say their layer by their priority, at a fixed place (RFC 5372, section 3).
pub fn has_priorities(track: &Track) -> bool {
    Payload::of(track) == Payload::Jpeg2000 && quality::has_layers(&track.fmtp)
}

/// A frame as far as its packets went.
#[derive(Debug, Clone, Copy)]
struct Known {
    timestamp: u32,
    frame: Frame,
}

/// Tells what the RTP packets of one track mean, one after the other.
///
/// An access unit is what shares a timestamp; where a sender does not change it, a marker and the
/// start of a picture behind it are enough. Packets that come late are told the frame that they
/// belong to, and change nothing.
#[derive(Debug)]
pub struct RtpReader {
    track: u8,
    payload: Payload,
    /// Of what is no picture, or cannot be read as one.
    content: Content,
    frames: Frames,
    quality: Quality,
    layered: Option<Box<Layered>>,
    highest: Option<u16>,
    timestamp: Option<u32>,
    /// The last packet ended its frame.
    ended: bool,
    remembered: [Option<Known>; REMEMBERED_FRAMES],
}

impl RtpReader {
    /// A reader of the track that stands at `track_index` in its format.
    pub fn new(track_index: u8, track: &Track) -> Self {
        RtpReader {
            track: track_index,
            payload: Payload::of(track),
            content: if track.codec.is_video() { Content::Opaque } else { Content::Sound },
            frames: frames(&track.codec),
            quality: Quality::of(&track.fmtp),
            layered: layered(track).map(Box::new),
            highest: None,
            timestamp: None,
            ended: false,
            remembered: [None; REMEMBERED_FRAMES],
        }
    }

    /// Goes on with a track of JPEG 2000 that was read this far. Its frames are numbered from the beginning.
    pub fn resume(read: PrioritiesRead) -> Self {
        let (highest, timestamp) = read.newest.unzip();
        RtpReader {
            track: 0,
            payload: Payload::Jpeg2000,
            content: Content::Opaque,
            frames: Frames::new(),
            quality: Quality::resume(&read),
            layered: None,
            highest,
            timestamp,
            ended: false,
            remembered: [None; REMEMBERED_FRAMES],
        }
    }

    /// What layers the track has shown: temporal and spatial ones, and whether there are frames that may be left out,
    /// where its packets say so; else those of any kind, temporal ones, and whether these were announced.
    pub fn layers_shown(&self) -> (u8, u8, bool) {
        self.layered.as_ref().map_or_else(|| self.frames.shown(), |layered| layered.shown())
    }

    /// Another process has read the track up to now, and seen these.
    pub fn show_layers(&mut self, shown: (u8, u8, bool)) {
        match &mut self.layered {
            Some(layered) => layered.show(shown),
            None => self.frames.show(shown),
        }
    }

    /// Reads the next packet, header included.
    pub fn read(&mut self, packet: &[u8]) -> Result<Tag, Malformed> {
        let header = match self.payload {
            Payload::Encrypted => RtpHeader::new_encrypted(packet)?,
            _ => RtpHeader::new_checked(packet)?,
        };
        if self.payload == Payload::Jpeg2000 {
            self.quality.read(header.payload())?;
        }
        let step = self.highest.map_or(1, |highest| sequence_distance(highest, header.sequence()));
        let late = (LATE..=0).contains(&step);
        if let Some(tag) = self.read_layered(&header, late)? {
            if !late {
                self.highest = Some(header.sequence());
            }
            return Ok(tag);
        }
        if late && self.timestamp != Some(header.timestamp()) {
            return Ok(self.late(&header));
        }
        let tag = match self.payload {
            Payload::H264 | Payload::H265 { .. } => self.read_nal_units(&header, late),
            Payload::MpegVideo => self.read_mpeg_video(&header, late),
            _ => self.read_data(&header, late),
        }?;
        if !late {
            self.highest = Some(header.sequence());
        }
        Ok(tag)
    }

    /// Of a packet that describes itself.
    fn read_layered(&mut self, header: &RtpHeader<'_>, late: bool) -> Result<Option<Tag>, Malformed> {
        let before = self.frames.current().number;
        let Some(layered) = self.layered.as_mut().filter(|layered| layered.describes(header)) else {
            return Ok(None);
        };
        let told = layered.read(header, late, before)?;
        let PacketFrame { frame, first, last, ends, grown, adds } = told;
        Ok(Some(Tag { ends, grown, adds, ..self.tag_of(frame, first, last) }))
    }

    fn read_nal_units(&mut self, header: &RtpHeader<'_>, late: bool) -> Result<Tag, Malformed> {
        let payload = self.payload;
        let mut seen = Seen { first: false, any: false };
        let mut tell = |piece: Piece<'_>| {
            let (unit, starts) = classify(payload, piece);
            if !seen.any && !late && self.starts_frame(header.timestamp(), Some(unit)) {
                self.begin(header.timestamp());
                seen.first = starts && !is_later_slice(unit);
            }
            seen.any = true;
            self.frames.unit(unit);
        };
        match payload {
            Payload::H265 { order_numbers } => h265::pieces(header.payload(), order_numbers, &mut tell)?,
            _ => h264::pieces(header.payload(), &mut tell)?,
        }
        if !seen.any && !late && self.starts_frame(header.timestamp(), None) {
            self.begin(header.timestamp());
        }
        Ok(self.tag(header, seen.first, header.marker(), late))
    }

    fn read_mpeg_video(&mut self, header: &RtpHeader<'_>, late: bool) -> Result<Tag, Malformed> {
        let video = mpeg::Video::parse(header.payload())?;
        let starts = video.starts_picture();
        let unit = if starts { Some(Unit::PARAMETERS) } else { None };
        let begins = !late && self.starts_frame(header.timestamp(), unit);
        if begins {
            self.begin(header.timestamp());
        }
        video.units(|unit| self.frames.unit(unit));
        Ok(self.tag(header, begins && starts, header.marker(), late))
    }

    fn read_data(&mut self, header: &RtpHeader<'_>, late: bool) -> Result<Tag, Malformed> {
        let timestamp = header.timestamp();
        let same = self.timestamp == Some(timestamp);
        let (begins, last) = match self.payload {
            Payload::Packet => (true, true),
            Payload::MpegAudio => (!same || mpeg::Audio::parse(header.payload())?.offset == 0, true),
            Payload::Aac => (!same || self.ended, header.marker()),
            _ => (!same, header.marker()),
        };
        if begins && !late {
            self.begin(timestamp);
        }
        Ok(Tag { ends: self.quality.ends(), ..self.tag(header, begins && !late, last, late) })
    }

    fn starts_frame(&self, timestamp: u32, unit: Option<Unit>) -> bool {
        self.timestamp != Some(timestamp)
            || (self.ended && unit.is_some_and(|unit| self.frames.ends_before(unit)))
    }

    fn begin(&mut self, timestamp: u32) {
        if let Some(ended) = self.timestamp {
            let known = Known { timestamp: ended, frame: self.frames.current() };
            self.remembered[known.frame.number as usize % REMEMBERED_FRAMES] = Some(known);
        }
        self.frames.begin(Some(timestamp));
        self.timestamp = Some(timestamp);
    }

    fn tag(&mut self, header: &RtpHeader<'_>, first: bool, last: bool, late: bool) -> Tag {
        if !late {
            self.ended = last;
        }
        let frame = self.frames.current();
        if self.payload.has_needs() {
            return self.tag_of(frame, first, header.marker());
        }
        self.tag_of(self.data(frame), first, last)
    }

    fn tag_of(&self, frame: Frame, first: bool, last: bool) -> Tag {
        Tag {
            frame: frame.number,
            track: self.track,
            kind: frame.kind,
            content: if frame.kind == Kind::Data { self.content } else { Content::Opaque },
            layer: frame.layer,
            layers: frame.layers,
            opens: frame.opens,
            first,
            last,
            ends: None,
            key: frame.key,
            needs: frame.needs,
            grown: 0,
            adds: false,
            deadline: None,
        }
    }

    /// A packet of a frame that another one followed: of the frame with its timestamp, or else of
    /// the oldest one in mind.
    fn late(&self, header: &RtpHeader<'_>) -> Tag {
        let known = || self.remembered.iter().flatten();
        let current = self.frames.current();
        let frame = known()
            .find(|k| k.timestamp == header.timestamp())
            .or_else(|| known().max_by_key(|k| current.number.wrapping_sub(k.frame.number)))
            .map_or(current, |k| k.frame);
        let frame = if self.payload.has_needs() { frame } else { self.data(frame) };
        self.tag_of(frame, false, header.marker())
    }

    /// A frame that needs nothing and is needed by nothing; its packet may be of a higher layer.
    fn data(&self, frame: Frame) -> Frame {
        Frame {
            kind: Kind::Data,
            key: true,
            layer: self.quality.layer(),
            layers: self.quality.layers(),
            opens: true,
            needs: Needs::NOTHING,
            ..frame
        }
    }
}

/// What was seen of a packet while its units are told.
struct Seen {
    first: bool,
    any: bool,
}

/// How a track whose packets describe themselves is read.
fn layered(track: &Track) -> Option<Layered> {
    match &track.codec {
        Codec::Av1 => Some(Layered::new(Av1::new(track.extension(&ExtensionKind::DependencyDescriptor)))),
        Codec::Vp9 => Some(Layered::new(Vp9::default())),
        Codec::Vp8 => Some(Layered::new(Vp8)),
        Codec::RawVideo(_) | Codec::Srtp { video: true } | Codec::Other { video: true } => {
            track.extension(&ExtensionKind::FrameMarking).map(|id| Layered::new(Marked::new(id)))
        }
        _ => None,
    }
}

/// Before the first frame, with what the description tells of those to come.
fn frames(codec: &Codec) -> Frames {
    let mut frames = Frames::new();
    if let Codec::H265 { vps, sps, .. } = codec {
        for set in [vps, sps].into_iter().flatten() {
            frames.unit(h265_codec::classify(set));
        }
    }
    frames
}

/// The unit of a piece, and whether the piece holds its start.
pub(super) fn classify(payload: Payload, piece: Piece<'_>) -> (Unit, bool) {
    let read = |data: &[u8]| match payload {
        Payload::H265 { .. } => h265_codec::classify(data),
        _ => h264_codec::classify(data),
    };
    match piece {
        Piece::Whole(unit) => (read(unit), true),
        Piece::Fragment { header, first: false, .. } => (read(header.bytes()), false),
        Piece::Fragment { header, data, first: true, .. } => {
            let mut start = [0; LOOKED_AT];
            let bytes = header.bytes().iter().chain(data);
            let length = start.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
            (read(&start[..length]), true)
        }
    }
}

/// Whether the unit is a slice that is not the first of its picture.
fn is_later_slice(unit: Unit) -> bool {
    matches!(unit, Unit::Slice(slice) if !slice.starts_picture)
}

/// Whether `a=fmtp` of H.265 says that payloads have decoding order numbers
/// (RFC 7798 section 7.1, `sprop-max-don-diff`).
fn has_order_numbers(fmtp: &str) -> bool {
    fmtp.split(';')
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("sprop-max-don-diff"))
        .and_then(|(_, value)| value.trim().parse::<u32>().ok())
        .is_some_and(|difference| difference > 0)
}

#[cfg(test)]
mod tests;
