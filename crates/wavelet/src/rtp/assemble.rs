//! From packets to codestreams, as far as they came.

use bytes::Bytes;
use outflow_rtp::RtpHeader;
use outflow_rtp::payload::depacketize::reorder::{Pushed, Reorder};
use outflow_rtp::payload::jpeg2000::{Header, MainHeader};

use crate::codestream::Codestream;
use crate::limits::CODESTREAM_BYTES_MAX;

/// A frame of which at least one packet came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Its layers from the base up to the first that is not all there; `None` if that is the base.
    pub codestream: Option<Codestream>,
    /// Packets of it that came in time.
    pub packets: u64,
    /// Their payloads' bytes.
    pub bytes: u64,
    /// Whether a packet was missing before its end. Frames that were sent with fewer layers have no gap.
    pub gap: bool,
}

/// What came so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames with one layer or more.
    pub frames: u64,
    /// Frames of which packets came, but no whole layer. Those of which nothing came are not known here:
    /// [`Timeline`](super::Timeline) finds them.
    pub lost: u64,
    /// Frames that ended at a gap.
    pub gaps: u64,
    /// Packets.
    pub packets: u64,
    /// Packets behind a gap, of no use.
    pub useless: u64,
    /// Packets that came after their place was given up, and duplicates.
    pub late: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Main headers that got lost, and were known.
    pub recovered: u64,
}

/// Puts frames together from packets.
///
/// Packets go in in the order of arrival; those that are a few places early
/// ([`REORDER_PACKETS_MAX`](outflow_rtp::limits::REORDER_PACKETS_MAX)) wait for their turn. Each frame is
/// told once, when its last packet has come or it is known that it does not. What it holds is bounded by
/// [`CODESTREAM_BYTES_MAX`] and that window.
#[derive(Debug, Default)]
pub struct Assembler {
    reorder: Reorder,
    building: Building,
    counts: Counts,
}

impl Assembler {
    /// Takes a packet, header included, and tells the frames that end before it or with it.
    pub fn handle(&mut self, packet: Bytes, mut tell: impl FnMut(Assembled)) {
        self.counts.packets += 1;
        let Ok(header) = RtpHeader::new_checked(&packet) else {
            self.counts.malformed += 1;
            return;
        };
        let (ssrc, sequence) = (header.ssrc(), header.sequence());
        if self.building.ssrc.is_some_and(|before| before != ssrc) {
            self.flush(&mut tell);
            self.building = Building::default();
        }
        self.building.ssrc = Some(ssrc);
        let Assembler { reorder, building, counts } = self;
        let pushed = reorder.push(sequence, packet, |packet, gap| {
            building.packet(&packet, gap, counts, &mut tell);
        });
        if pushed == Pushed::Late {
            self.counts.late += 1;
        }
    }

    /// Tells what is there; what comes next begins again. For the end of a stream, or a pause in it.
    pub fn flush(&mut self, mut tell: impl FnMut(Assembled)) {
        let Assembler { reorder, building, counts } = self;
        reorder.flush(|packet, gap| building.packet(&packet, gap, counts, &mut tell));
        building.end(counts, &mut tell);
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// The frame whose turn it is.
#[derive(Debug, Default)]
struct Building {
    ssrc: Option<u32>,
    frame: Option<Frame>,
    /// The timestamp of the last frame that ended.
    ended: Option<u32>,
    /// The last main header that came, and its number.
    main_header: Option<(u8, Vec<u8>)>,
}

#[derive(Debug)]
struct Frame {
    timestamp: u32,
    /// The codestream, without gaps.
    bytes: Vec<u8>,
    packets: u64,
    received: u64,
    gap: bool,
}

impl Building {
    fn packet(
        &mut self,
        packet: &Bytes,
        missing: bool,
        counts: &mut Counts,
        tell: &mut dyn FnMut(Assembled),
    ) {
        let parsed = RtpHeader::new_checked(packet).and_then(|rtp| Ok((Header::parse(rtp.payload())?, rtp)));
        let Ok(((header, bytes), rtp)) = parsed else {
            counts.malformed += 1;
            return;
        };
        let timestamp = rtp.timestamp();
        if self.frame.as_ref().is_some_and(|frame| frame.timestamp != timestamp) {
            // Its end got lost; or it was left out on purpose, and then nothing is missing in between.
            self.note_gap(missing);
            self.end(counts, tell);
        }
        if self.ended == Some(timestamp) {
            counts.late += 1;
            return;
        }
        let frame = self.frame.get_or_insert_with(|| Frame::new(timestamp));
        frame.packets += 1;
        frame.received += rtp.payload().len() as u64;
        if frame.bytes.is_empty() && header.offset > 0 {
            counts.recovered += u64::from(frame.recover(&header, self.main_header.as_ref()));
        }
        if header.offset as usize == frame.bytes.len() && !frame.gap {
            frame.add(bytes);
            if matches!(header.main_header, MainHeader::Whole | MainHeader::End) && header.main_header_id != 0
            {
                self.main_header = Some((header.main_header_id, frame.bytes.clone()));
            }
        } else {
            frame.gap = true;
            counts.useless += 1;
        }
        if rtp.marker() {
            self.end(counts, tell);
        }
    }

    fn note_gap(&mut self, missing: bool) {
        if let Some(frame) = &mut self.frame {
            frame.gap |= missing;
        }
    }

    fn end(&mut self, counts: &mut Counts, tell: &mut dyn FnMut(Assembled)) {
        let Some(Frame { timestamp, bytes, packets, received, gap }) = self.frame.take() else { return };
        self.ended = Some(timestamp);
        let codestream = Codestream::of_beginning(bytes).ok();
        counts.gaps += u64::from(gap);
        match codestream {
            Some(_) => counts.frames += 1,
            None => counts.lost += 1,
        }
        tell(Assembled { timestamp, codestream, packets, bytes: received, gap });
    }
}

impl Frame {
    fn new(timestamp: u32) -> Self {
        Frame { timestamp, bytes: Vec::new(), packets: 0, received: 0, gap: false }
    }

    /// Puts the main header where it should be, if it is the one that is known (RFC 5372, section 2).
    fn recover(&mut self, header: &Header, known: Option<&(u8, Vec<u8>)>) -> bool {
        let fits = known.filter(|(id, main_header)| {
            *id == header.main_header_id && main_header.len() == header.offset as usize
        });
        if let Some((_, main_header)) = fits {
            self.bytes.extend_from_slice(main_header);
        }
        fits.is_some()
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= CODESTREAM_BYTES_MAX {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.gap = true;
        }
    }
}
