//! A stream whose packets say what they are.

use outflow_media::{Format, Tag};
use outflow_rtp::payload::Splitter;
use outflow_rtp::{HEADER, RtpHeader};

use super::mark::Mark;
use super::opened::Opened;
use super::tally::Tally;
use crate::{Packet, Parsed};

/// Writes marks into the packets of a stream's main track. One that has no room for its mark is split into two, and the
/// numbers behind it run on.
#[derive(Debug, Clone)]
pub struct Marks {
    /// Nothing of what is encrypted: its headers are signed (RFC 3711, section 3.1).
    main_track: Option<(u8, Splitter)>,
    opened: Opened,
    /// Which packets were split.
    split: Tally,
    /// A packet had no place for it. Where some say what they are and others do not, routers would let through the
    /// others, which are of no use without the rest of their frames: so none says it.
    is_unfit: bool,
}

/// A packet's bytes with its mark, or those of the two that it was split into.
enum Written {
    Whole(Vec<u8>),
    Split([Vec<u8>; 2]),
}

impl Marks {
    /// For packets of this format.
    pub fn new(format: &Format) -> Self {
        let number = format.main_track();
        let track = match format {
            Format::Rtp(tracks) => tracks.get(usize::from(number)),
            Format::Ts | Format::Images | Format::Data => None,
        };
        let open = track.filter(|track| !track.codec.is_srtp());
        let main_track = open.map(|track| (number, Splitter::of(track)));
        let (opened, split, is_unfit) = (Opened::default(), Tally::default(), false);
        Marks { main_track, opened, split, is_unfit }
    }

    /// What comes now does not go on from what came.
    pub fn break_off(&mut self) {
        (self.opened, self.is_unfit) = (Opened::default(), false);
    }

    /// The same packet with its mark, if there is something to say, and a place for it in all packets up to now; in two
    /// parts if it has no room for it otherwise.
    pub fn mark(&mut self, parsed: Parsed) -> impl Iterator<Item = Parsed> + use<> {
        self.parts(parsed).into_iter().flatten()
    }

    fn parts(&mut self, parsed: Parsed) -> [Option<Parsed>; 2] {
        let tag = parsed.packet.tag;
        let header = parsed.packet.rtp_header(&parsed.rtp_header).copied();
        let (Some((track, splitter)), Some(header)) = (self.main_track, header) else {
            return [Some(parsed), None];
        };
        if track != tag.track {
            return [Some(parsed), None];
        }
        let mark = match self.is_unfit {
            true => None,
            false => self.opened.mark(&tag),
        };
        let written = mark.map(|mark| write(mark, splitter, &header, &parsed));
        self.is_unfit |= matches!(written, Some(None));
        let sequence = outflow_rtp::sequence(&header);
        let is_split = matches!(written, Some(Some(Written::Split(_))));
        let (before, was_split) = self.split.comes(sequence, is_split);
        let number = sequence.wrapping_add(before);
        match written.flatten() {
            Some(Written::Whole(bytes)) => [Some(with(parsed, tag, bytes, number)), None],
            Some(Written::Split([one, other])) if was_split => {
                let first = Tag { last: false, ends: None, ..tag };
                let second = Tag { first: false, key: false, grown: 0, ..tag };
                let behind = Parsed { preamble: None, found: None, ..parsed.clone() };
                let behind = with(behind, second, other, number.wrapping_add(1));
                [Some(with(parsed, first, one, number)), Some(behind)]
            }
            // What comes late has one number left: it goes without a mark, as a whole.
            Some(Written::Split(_)) | None => [Some(renumbered(parsed, sequence, number)), None],
        }
    }
}

/// A packet with its mark, in two parts if it has no room for it otherwise.
fn write(mark: Mark, splitter: Splitter, header: &[u8; HEADER], parsed: &Parsed) -> Option<Written> {
    let bytes = &parsed.packet.bytes[..];
    let behind = if parsed.rtp_header[0] != 0 { bytes } else { bytes.get(HEADER..)? };
    mark.write(header, behind).map(Written::Whole).or_else(|| split(mark, splitter, header, behind))
}

fn split(mark: Mark, splitter: Splitter, header: &[u8; HEADER], behind: &[u8]) -> Option<Written> {
    let whole = [header, behind].concat();
    let read = RtpHeader::new_checked(&whole).ok()?;
    let [one, other] = splitter.split(read.payload())?;
    let part = |has_marker, mark: Mark, payload: &[u8]| {
        let mut header = *header;
        outflow_rtp::set_flags(&mut header, has_marker);
        mark.write(&header, &[&whole[HEADER..read.payload_offset()], payload].concat())
    };
    let one = part(false, Mark { ends: None, ..mark }, &one)?;
    let behind = Mark { first: false, grown: 0, opens_all: false, ..mark };
    Some(Written::Split([one, part(read.marker(), behind, &other)?]))
}

/// The packet as it was written, with this number.
fn with(parsed: Parsed, tag: Tag, mut bytes: Vec<u8>, number: u16) -> Parsed {
    outflow_rtp::set_sequence(&mut bytes, number);
    let packet = Packet { bytes: bytes.into(), tag, ..parsed.packet };
    Parsed { packet, rtp_header: [0; HEADER], ..parsed }
}

/// The packet as it is, with this number.
fn renumbered(mut parsed: Parsed, sequence: u16, number: u16) -> Parsed {
    if number != sequence {
        parsed.set_sequence(number);
    }
    parsed
}
