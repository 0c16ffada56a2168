//! What makes packets out of what comes in from a stream's source: it is received, and parsed.

use bytes::Bytes;
use outflow_media::{Content, Format, Tag, Time};
use outflow_packet::receive::TurnBy;
use outflow_packet::{DropReason, Incoming, LayersShown, Packet, Parsed, Parser, Receive, SavedReceive};
use outflow_ts::Found;

/// Receives packets, and parses them.
#[derive(Debug)]
pub(super) struct Intake {
    receive: Receive,
    parser: Parser,
    /// How many layers the source has shown to another process, whose reader has seen more of it.
    layers: u8,
}

/// A packet that was received and parsed.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) bytes: Bytes,
    /// Its track in what receivers get.
    pub(super) track: u8,
    tag: Tag,
    /// It goes on from what came before the source was away, if that was.
    pub(super) goes_on: bool,
}

/// A packet of a stream that has `least` layers, though the others may not come: none is new when it comes.
pub(super) fn with_layers(tag: &mut Tag, least: u8) {
    if tag.layers <= least && tag.layers > 0 {
        (tag.layers, tag.grown) = (least, 0);
    }
}

impl Intake {
    /// For a source that declares one format, where receivers get another. `ssrc` is that of a transport stream
    /// that goes out by RTP.
    pub(super) fn new(declared: &Format, format: &Format, ssrc: u32) -> Self {
        Intake { receive: Receive::new(declared, ssrc), parser: Parser::new(format), layers: 0 }
    }

    /// For a source that another process has received up to now, with a reader that has read what came last.
    /// It has seen this number of layers.
    pub(super) fn restore(format: &Format, saved: &SavedReceive, (parser, layers): (Parser, u8)) -> Self {
        Intake { receive: Receive::restore(format, saved), parser, layers }
    }

    /// What of it goes on in another process.
    pub(super) fn save(&self) -> SavedReceive {
        self.receive.save()
    }

    /// The tables of a transport stream, as they are now.
    pub(super) fn tables(&self) -> Option<Bytes> {
        self.parser.preamble()
    }

    /// What layers each track has shown.
    pub(super) fn layers_shown(&self) -> Vec<LayersShown> {
        self.parser.layers_shown()
    }

    /// A source begins its turn, with packets of the same format as before.
    pub(super) fn restart(&mut self, declared: &Format, format: &Format, by: TurnBy) {
        self.receive.restart(declared, by);
        self.parser.restart(format);
        self.layers = 0;
    }

    /// Takes a packet that came in. Its reader puts what it found in a datagram of a transport stream into
    /// `found`. The source was away before, or not; it has `least` layers, though the others may not come.
    pub(super) fn take(
        &mut self,
        now: Time,
        (track, incoming): (u8, Incoming),
        (format, is_back, least): (&Format, bool, u8),
        found: &mut Vec<Found>,
    ) -> Result<Came, DropReason> {
        let bytes = self.receive.take(now, track, incoming)?;
        let track = if matches!(format, Format::Rtp(_)) { track } else { 0 };
        let goes_on = !is_back || self.parser.resume(&bytes);
        let mut tag = self.parser.tag_into(track, &bytes, found)?;
        if track == format.main_track() {
            with_layers(&mut tag, least.max(self.layers));
        }
        Ok(Came { bytes, track, tag, goes_on })
    }

    /// A packet that was taken goes on. Its sequence number follows that of a discontinuity that was announced
    /// before.
    pub(super) fn finish(&mut self, now: Time, came: Came) -> Parsed {
        let Came { bytes, tag, .. } = came;
        let rtp_header = self.receive.rtp_header(now);
        let preamble = if tag.key { self.parser.preamble() } else { None };
        Parsed { packet: Packet { bytes, tag, arrived: now }, rtp_header, preamble, found: None }
    }

    /// What tells decoders that a transport stream does not go on from what came, in front of its next packets.
    pub(super) fn discontinuity(&mut self, now: Time, next: &[u8]) -> Option<Parsed> {
        let bytes = self.parser.discontinuity(next)?;
        let rtp_header = self.receive.rtp_header(now);
        let tag = Tag { content: Content::Tables, ..Tag::default() };
        let packet = Packet { bytes, tag, arrived: now };
        Some(Parsed { packet, rtp_header, preamble: None, found: None })
    }

    /// What is added to the timestamps of a track.
    pub(super) fn timestamp_delta(&self, track: u8) -> u32 {
        self.receive.timestamp_delta(track)
    }

    /// Packets that were lost before they came here.
    pub(super) fn lost(&self) -> u64 {
        self.parser.lost(self.receive.receptions())
    }

    /// Interarrival jitter of the first track that comes by RTP, in seconds.
    pub(super) fn jitter_s(&self) -> f64 {
        self.receive.receptions().next().map_or(0.0, |reception| reception.jitter().as_secs_f64())
    }

    /// What comes, in words.
    pub(super) fn describe(&self, format: &Format) -> String {
        self.parser.describe(format)
    }
}
