//! What each packet means: the stream's readers, which give every packet its tag.

use bytes::Bytes;
use outflow_media::image::ppm;
use outflow_media::{Format, Kind, Malformed, Tag};
use outflow_rtp::Reception;
use outflow_rtp::payload::RtpReader;
use outflow_ts::{Found, Programme, TsReader};

use crate::DropReason;
use crate::limits::TRACKS_MAX;

/// The readers of a stream.
#[derive(Debug)]
pub enum Parser {
    /// For a transport stream; with the programme of the source before, if it was restarted.
    Ts(Box<TsReader>, Option<Programme>),
    /// For images; with the number of the next.
    Images(u32),
    /// For opaque datagrams; with the number of the next.
    Data(u32),
    /// For RTP, one a track.
    Rtp(Vec<RtpReader>),
}

/// What layers a track has shown: what its reader needs to number those that come as another one did.
pub type LayersShown = (u8, u8, bool);

impl Parser {
    /// What layers each track has shown.
    pub fn layers_shown(&self) -> Vec<LayersShown> {
        match self {
            Parser::Rtp(readers) => readers.iter().map(RtpReader::layers_shown).collect(),
            Parser::Ts(reader, _) => vec![reader.layers_shown()],
            Parser::Images(_) | Parser::Data(_) => Vec::new(),
        }
    }

    /// Another process has read the stream up to now, and seen these.
    pub fn show_layers(&mut self, shown: &[LayersShown]) {
        match self {
            Parser::Rtp(readers) => {
                readers.iter_mut().zip(shown).for_each(|(reader, shown)| reader.show_layers(*shown));
            }
            Parser::Ts(reader, _) => shown.iter().take(1).for_each(|shown| reader.show_layers(*shown)),
            Parser::Images(_) | Parser::Data(_) => {}
        }
    }

    /// For packets of this format.
    pub fn new(format: &Format) -> Self {
        match format {
            Format::Ts => Parser::Ts(Box::default(), None),
            Format::Images => Parser::Images(0),
            Format::Data => Parser::Data(0),
            Format::Rtp(tracks) => {
                let reader =
                    |(index, track): (usize, &outflow_media::Track)| RtpReader::new(index as u8, track);
                Parser::Rtp(tracks.iter().take(TRACKS_MAX).enumerate().map(reader).collect())
            }
        }
    }

    /// The source begins again, with the same format.
    pub fn restart(&mut self, format: &Format) {
        let before = match self {
            // What never got as far as its programme came in between.
            Parser::Ts(reader, previous) => reader.programme().cloned().or_else(|| previous.take()),
            Parser::Rtp(_) | Parser::Images(_) | Parser::Data(_) => None,
        };
        *self = Parser::new(format);
        if let Parser::Ts(_, previous) = self {
            *previous = before;
        }
    }

    /// The source was silent for so long that it counted as away: whether this packet goes on where it ended.
    /// If not, what came before is not followed by it. Of RTP, [`Receive`](crate::Receive) makes one
    /// source, which always goes on.
    pub fn resume(&mut self, bytes: &[u8]) -> bool {
        match self {
            Parser::Ts(reader, _) => reader.resume(bytes),
            Parser::Rtp(_) | Parser::Images(_) | Parser::Data(_) => true,
        }
    }

    /// Packets that tell decoders of a break (ISO/IEC 13818-1, section 2.4.3.4); for transport
    /// streams whose programme was known before it. `next` is the first packet after it.
    pub fn discontinuity(&mut self, next: &[u8]) -> Option<Bytes> {
        let Parser::Ts(reader, previous) = self else { return None };
        let programme = previous.take().or_else(|| reader.programme().cloned())?;
        Some(outflow_ts::announce_discontinuity(&programme, next))
    }

    /// The tag of one packet of `track`.
    ///
    /// # Errors
    /// It is not what its format says.
    pub fn tag(&mut self, track: u8, bytes: &[u8]) -> Result<Tag, DropReason> {
        let tag = match self {
            Parser::Images(next) => image(bytes).map(|()| image_tag(number(next))),
            Parser::Data(next) => Ok(Tag { kind: Kind::Data, ..image_tag(number(next)) }),
            Parser::Ts(reader, _) => reader.read(bytes),
            Parser::Rtp(readers) => {
                readers.get_mut(usize::from(track)).ok_or(DropReason::UnknownTrack)?.read(bytes)
            }
        };
        tag.map_err(|_| DropReason::Malformed)
    }

    /// The same; and, of a transport stream, adds to `found` what there is to know of each packet in it.
    ///
    /// # Errors
    /// It is not what its format says.
    pub fn tag_into(&mut self, track: u8, bytes: &[u8], found: &mut Vec<Found>) -> Result<Tag, DropReason> {
        match self {
            Parser::Ts(reader, _) => reader.read_into(bytes, found).map_err(|_| DropReason::Malformed),
            Parser::Images(_) | Parser::Data(_) | Parser::Rtp(_) => self.tag(track, bytes),
        }
    }

    /// What a receiver that joins now needs before anything else.
    pub fn preamble(&self) -> Option<Bytes> {
        match self {
            Parser::Ts(reader, _) => reader.preamble(),
            Parser::Rtp(_) | Parser::Images(_) | Parser::Data(_) => None,
        }
    }

    /// Packets that were lost before they came here.
    pub fn lost<'a>(&self, receptions: impl Iterator<Item = &'a Reception>) -> u64 {
        let by_rtp: i64 = receptions.map(Reception::lost).sum();
        match self {
            // In RTP the same loss shows in both counts: the larger one is the truth.
            Parser::Ts(reader, _) => reader.continuity_errors().max(by_rtp.max(0) as u64),
            Parser::Rtp(_) | Parser::Images(_) | Parser::Data(_) => by_rtp.max(0) as u64,
        }
    }

    /// What the stream carries, in words.
    pub fn describe(&self, format: &Format) -> String {
        match (self, format) {
            (Parser::Ts(reader, _), _) => match reader.programme() {
                Some(programme) => format!("MPEG-TS: {}", programme.codec_names().join(", ")),
                None => "MPEG-TS".to_owned(),
            },
            (Parser::Rtp(_), Format::Rtp(tracks)) => {
                let names: Vec<_> = tracks.iter().map(|track| track.encoding.as_str()).collect();
                format!("RTP: {}", names.join(", "))
            }
            (Parser::Images(_), _) | (_, Format::Images) => "PPM images".to_owned(),
            (Parser::Data(_), _) | (_, Format::Data) => "opaque datagrams".to_owned(),
            (Parser::Rtp(_), Format::Ts) => "MPEG-TS".to_owned(),
        }
    }
}

/// The number of the next, which is counted.
fn number(next: &mut u32) -> u32 {
    let frame = *next;
    *next = next.wrapping_add(1);
    frame
}

/// The tag of an image, which needs no other.
pub fn image_tag(frame: u32) -> Tag {
    Tag { frame, kind: Kind::Intra, first: true, last: true, key: true, ..Tag::default() }
}

/// Whether a packet is an image.
fn image(bytes: &[u8]) -> Result<(), Malformed> {
    let wrong = |reason| Malformed { format: "PPM", offset: bytes.len(), reason };
    let header = ppm::Header::parse(bytes)?.ok_or(wrong("it ends within its header"))?;
    if bytes.len() - header.bytes < header.shape.bytes() {
        return Err(wrong("less pixels than its header says"));
    }
    Ok(())
}
