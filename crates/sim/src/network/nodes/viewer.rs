//! A receiver of RTP: what comes, what is missing, and which frames can be decoded.

use outflow_media::{Format, Tag, Time};
use outflow_packet::Parser;
use outflow_packet::gmc::Mark;
use outflow_rtp::RtpHeader;

use super::Figures;

/// Of one stream. What is missing is told by sequence numbers: those that go on are not, whatever was left out on the way.
/// After a loss, frames that need others cannot be decoded until one comes that needs none.
#[derive(Debug)]
pub(super) struct Viewer {
    parser: Parser,
    joined: Time,
    first: Option<Time>,
    /// The sequence number that comes next.
    next: Option<u16>,
    timestamp: Option<u32>,
    /// Of the frame that is coming: it is whole so far, it needs no other one, layers of it.
    is_whole: bool,
    is_key: bool,
    layers: u8,
    /// Frames that need others can be decoded.
    is_unbroken: bool,
    packets: u64,
    bytes: u64,
    missing: u64,
    old: u64,
    frames: u64,
    decodable: u64,
    /// Of all frames.
    layers_seen: u64,
}

impl Viewer {
    /// One that has asked for the stream now.
    pub(super) fn new(now: Time, format: &Format) -> Self {
        Viewer {
            parser: Parser::new(format),
            joined: now,
            first: None,
            next: None,
            timestamp: None,
            is_whole: false,
            is_key: false,
            layers: 0,
            is_unbroken: false,
            packets: 0,
            bytes: 0,
            missing: 0,
            old: 0,
            frames: 0,
            decodable: 0,
            layers_seen: 0,
        }
    }

    /// A packet of RTP has come. One that came before, or comes too late, is counted and left out.
    pub(super) fn handle(&mut self, now: Time, packet: &[u8]) {
        let Ok(header) = RtpHeader::new_checked(packet) else { return };
        let ahead = self.next.map_or(0, |next| header.sequence().wrapping_sub(next));
        if ahead >= 1 << 15 {
            self.old += 1;
            return;
        }
        self.first.get_or_insert(now);
        self.next = Some(header.sequence().wrapping_add(1));
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.missing += u64::from(ahead);
        let tag = self.parser.tag(0, packet).unwrap_or_default();
        if self.timestamp != Some(header.timestamp()) {
            self.begin(header.timestamp(), ahead == 0 && tag.first);
        }
        self.is_whole &= ahead == 0;
        self.is_unbroken &= ahead == 0;
        self.take(packet, &tag);
        if header.marker() {
            self.end();
        }
    }

    fn begin(&mut self, timestamp: u32, is_whole: bool) {
        // The one before has no end.
        self.end();
        self.timestamp = Some(timestamp);
        (self.is_whole, self.is_key, self.layers) = (is_whole, false, 0);
    }

    fn take(&mut self, packet: &[u8], tag: &Tag) {
        let mark = Mark::read(packet);
        let layer = mark.map_or(tag.layer, |mark| mark.layer);
        self.layers = self.layers.max(layer + 1);
        self.is_key |= tag.key;
    }

    fn end(&mut self) {
        if self.layers == 0 {
            return;
        }
        let is_good = self.is_whole && (self.is_key || self.is_unbroken);
        self.is_unbroken = is_good;
        self.frames += 1;
        self.decodable += u64::from(is_good);
        self.layers_seen += u64::from(core::mem::take(&mut self.layers));
    }

    /// What came of it.
    pub(super) fn figures(&self, figures: &mut Figures) {
        let share = |of: u64, all: u64| if all == 0 { 0.0 } else { of as f64 / all as f64 };
        let joined = self.first.map(|first| first.since(self.joined).as_secs_f64() * 1e3);
        figures.extend(joined.map(|ms| ("join_ms", ms)));
        figures.extend([
            ("packets", self.packets as f64),
            ("bytes", self.bytes as f64),
            ("missing", self.missing as f64),
            ("frames", self.frames as f64),
            ("decodable_pct", 100.0 * share(self.decodable, self.frames)),
            ("layers", share(self.layers_seen, self.frames)),
        ]);
    }
}
