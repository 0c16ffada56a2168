//! A receiver of RTP: what comes, what is missing, and which frames can be decoded.

use outflow_media::{Format, Tag, Time};
use outflow_packet::Parser;
use outflow_packet::gmc::Mark;
use outflow_rtp::RtpHeader;

use super::Figures;
use super::reorder::Reorder;

/// Of one stream. What is missing is told by sequence numbers: those that go on are not, whatever was left out on the way.
/// After a loss, frames that need others cannot be decoded until one comes that needs none. What comes in the midst of a
/// frame, before the first one that begins, is no frame.
#[derive(Debug)]
pub(super) struct Viewer {
    parser: Parser,
    joined: Time,
    first: Option<Time>,
    order: Reorder<Vec<u8>>,
    /// A frame has begun since it was wanted.
    has_begun: bool,
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
            order: Reorder::default(),
            has_begun: false,
            timestamp: None,
            is_whole: false,
            is_key: false,
            layers: 0,
            is_unbroken: false,
            packets: 0,
            bytes: 0,
            missing: 0,
            frames: 0,
            decodable: 0,
            layers_seen: 0,
        }
    }

    /// A packet of RTP has come. It waits for those before it, for a while. One that came before, or comes too late, is
    /// left out.
    pub(super) fn handle(&mut self, now: Time, packet: &[u8]) {
        let Ok(header) = RtpHeader::new_checked(packet) else { return };
        self.first.get_or_insert(now);
        if self.order.pass(header.sequence()) {
            return self.take(0, packet);
        }
        self.order.put(now, header.sequence(), packet.to_vec());
        while let Some((missing, packet)) = self.order.take(now) {
            self.take(missing, &packet);
        }
    }

    /// The next packet, and how many are missing in front of it.
    fn take(&mut self, missing: u64, packet: &[u8]) {
        let Ok(header) = RtpHeader::new_checked(packet) else { return };
        self.packets += 1;
        self.bytes += packet.len() as u64;
        self.missing += missing;
        let mark = Mark::read(packet);
        let tag = match mark {
            Some(mark) => Tag { layer: mark.layer, first: mark.first, key: mark.opens_all, ..Tag::default() },
            None => self.parser.tag(0, packet).unwrap_or_default(),
        };
        self.has_begun |= tag.first || missing > 0;
        if !self.has_begun {
            return;
        }
        // What is missing may be of the frame before, or of this one.
        self.is_whole &= missing == 0;
        self.is_unbroken &= missing == 0;
        if self.timestamp != Some(header.timestamp()) {
            self.begin(header.timestamp(), missing == 0 && tag.first);
        }
        self.layers = self.layers.max(tag.layer + 1);
        self.is_key |= tag.key;
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

    /// It is not wanted for a while: what is left out until it goes on is not missing.
    pub(super) fn pause(&mut self) {
        while let Some((missing, packet)) = self.order.take_any() {
            self.take(missing, &packet);
        }
        self.end();
        (self.order, self.has_begun) = (Reorder::default(), false);
    }

    /// What came of it.
    pub(super) fn figures(&self, figures: &mut Figures) {
        Viewer::figures_of(core::iter::once(self), figures);
    }

    /// What came of several together; `join_ms` is the longest.
    pub(super) fn figures_of<'v>(all: impl Iterator<Item = &'v Viewer> + Clone, figures: &mut Figures) {
        let sum = |of: fn(&Viewer) -> u64| all.clone().map(of).sum::<u64>() as f64;
        let frames = sum(|viewer| viewer.frames);
        let joined = all.clone().filter_map(|viewer| Some(viewer.first?.since(viewer.joined))).max();
        figures.extend(joined.map(|joined| ("join_ms", joined.as_secs_f64() * 1e3)));
        figures.extend([
            ("packets", sum(|viewer| viewer.packets)),
            ("bytes", sum(|viewer| viewer.bytes)),
            ("missing", sum(|viewer| viewer.missing)),
            ("frames", frames),
            ("decodable_pct", 100.0 * sum(|viewer| viewer.decodable) / frames.max(1.0)),
            ("layers", sum(|viewer| viewer.layers_seen) / frames.max(1.0)),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Track;
    use outflow_rtp::PlainHeader;

    use super::*;
    use crate::scenario::SourceModel;
    use crate::source::Source;

    /// Two seconds of packets: a key frame each second, in 9 packets with a parameter set, others in two.
    fn packets() -> Vec<Vec<u8>> {
        let model = SourceModel {
            frames_per_second: 10,
            gop_frames: 10,
            key_frame_bytes: 8_000,
            frame_bytes: 2_000,
            size_spread: 0.0,
            packet_bytes: 1_000,
        };
        let (mut source, mut rng) = (Source::new(model), fastrand::Rng::with_seed(1));
        (0..20).flat_map(|_| source.frame(&mut rng)).map(|packet| packet.to_vec()).collect()
    }

    /// What comes of packets, a millisecond apart.
    fn seen(packets: &[Vec<u8>]) -> Figures {
        let mut viewer = Viewer::new(Time::ZERO, &Format::Rtp(vec![Track::h264()]));
        for (packet, ms) in packets.iter().zip(5..) {
            viewer.handle(Time::from_millis(ms), packet);
        }
        viewer.pause();
        let mut figures = Figures::new();
        viewer.figures(&mut figures);
        figures
    }

    #[test]
    fn what_comes_is_counted_and_what_is_missing_ends_decoding_until_a_key_frame() {
        let mut packets = packets();
        let all = seen(&packets);
        assert_eq!((all["frames"], all["decodable_pct"], all["join_ms"]), (20.0, 100.0, 5.0), "{all:?}");
        assert_eq!(all["missing"], 0.0);
        // One of the second frame: nine cannot be decoded, and the second key frame can.
        packets.remove(10);
        let some = seen(&packets);
        assert_eq!((some["missing"], some["frames"], some["decodable_pct"]), (1.0, 20.0, 55.0), "{some:?}");
    }

    #[test]
    fn what_comes_before_the_first_frame_that_begins_is_no_frame() {
        // Frames of two layers that say so, a packet each.
        let packet = |number: u16| {
            let (frame, layer) = (number / 2, (number % 2) as u8);
            let timestamp = 3_000 * u32::from(frame);
            let header =
                PlainHeader { marker: layer == 1, payload_type: 96, sequence: number, timestamp, ssrc: 1 };
            let is_first = layer == 0;
            let tag = Tag { layer, layers: 2, first: is_first, opens: is_first, ..Tag::default() };
            let mark = Mark::of(&tag, is_first).expect("it has layers");
            mark.write(&header.emit(), &[7; 100]).expect("there is room")
        };
        let all: Vec<_> = (0..20).map(packet).collect();
        for (from, frames) in [(0, 10.0), (1, 9.0), (2, 9.0)] {
            let seen = seen(&all[from..]);
            let of = (seen["frames"], seen["decodable_pct"], seen["layers"], seen["missing"]);
            assert_eq!(of, (frames, 100.0, 2.0, 0.0), "{from}");
            assert_eq!(seen["packets"], (20 - from) as f64, "all that came is counted");
        }
    }
}
