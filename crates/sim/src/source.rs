//! A live source: H.264 access units as RTP packets.

use bytes::{BufMut, Bytes, BytesMut};
use outflow_media::{Format, Time, Track};
use outflow_rtp::PlainHeader;

use crate::scenario::SourceModel;

const CLOCK_RATE: u32 = 90_000;
const PAYLOAD_TYPE: u8 = 96;
const SSRC: u32 = 0x5107_CA57;

/// Makes frame after frame.
pub(crate) struct Source {
    model: SourceModel,
    frame: u64,
    sequence: u16,
}

impl Source {
    pub(crate) fn new(model: SourceModel) -> Self {
        Source { model, frame: 0, sequence: 0 }
    }

    pub(crate) fn format() -> Format {
        Format::Rtp(vec![Track {
            payload_type: PAYLOAD_TYPE,
            fmtp: "packetization-mode=1".to_owned(),
            ..Track::h264()
        }])
    }

    /// When the next frame is.
    pub(crate) fn due(&self) -> Time {
        Time::from_nanos(self.frame * 1_000_000_000 / u64::from(self.model.frames_per_second))
    }

    /// Frames from that which came at `first` up to the newest.
    pub(crate) fn frames_since(&self, first: Time) -> u64 {
        // Times are rounded down to whole nanoseconds.
        let before = (first.as_nanos() * u64::from(self.model.frames_per_second)).div_ceil(1_000_000_000);
        self.frame.saturating_sub(before)
    }

    /// The packets of the next frame.
    pub(crate) fn frame(&mut self, rng: &mut fastrand::Rng) -> Vec<Bytes> {
        let key = self.frame.is_multiple_of(u64::from(self.model.gop_frames));
        let mean = if key { self.model.key_frame_bytes } else { self.model.frame_bytes };
        let factor = 1.0 + self.model.size_spread * (2.0 * rng.f64() - 1.0);
        let size = ((mean as f64 * factor) as usize).max(1);
        let timestamp = (self.frame * u64::from(CLOCK_RATE) / u64::from(self.model.frames_per_second)) as u32;
        self.frame += 1;
        let count = size.div_ceil(self.model.packet_bytes);
        let mut packets = Vec::with_capacity(count + 1);
        if key {
            // A sequence parameter set goes first; receivers may begin there.
            packets.push(self.packet(timestamp, false, &[0x67, 0x42, 0x00, 0x1f], 0));
        }
        for part in 0..count {
            let (start, end) = (part == 0, part + 1 == count);
            let header = fragment_header(key, start, end);
            let bytes = if end { size - part * self.model.packet_bytes } else { self.model.packet_bytes };
            packets.push(self.packet(timestamp, end, &header, bytes));
        }
        packets
    }

    fn packet(&mut self, timestamp: u32, marker: bool, start: &[u8], filler: usize) -> Bytes {
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let header =
            PlainHeader { marker, payload_type: PAYLOAD_TYPE, sequence, timestamp, ssrc: SSRC }.emit();
        let mut packet = BytesMut::with_capacity(header.len() + start.len() + filler);
        packet.put_slice(&header);
        packet.put_slice(start);
        packet.put_bytes(0xA5, filler);
        packet.freeze()
    }
}

/// FU indicator and header of a slice, and the slice header's first bits (RFC 6184, section 5.8).
fn fragment_header(key: bool, start: bool, end: bool) -> [u8; 3] {
    let (indicator, kind) = if key { (0x7c, 5) } else { (0x5c, 1) };
    // first_mb_in_slice 0 (the bit 1), then slice_type 2 (I, the bits 011) or 0 (P, the bit 1).
    let slice = if key { 0b1011_0000 } else { 0b1100_0000 };
    [indicator, u8::from(start) << 7 | u8::from(end) << 6 | kind, slice]
}

#[cfg(test)]
mod tests {
    use outflow_media::Kind;
    use outflow_rtp::payload::RtpReader;

    use super::*;

    #[test]
    fn its_frames_are_read_as_what_they_are() {
        let model = SourceModel {
            frames_per_second: 25,
            gop_frames: 4,
            key_frame_bytes: 5_000,
            frame_bytes: 2_000,
            size_spread: 0.0,
            packet_bytes: 1_000,
        };
        let Format::Rtp(tracks) = Source::format() else { unreachable!("it is RTP") };
        let mut reader = RtpReader::new(0, &tracks[0]);
        let mut source = Source::new(model);
        let mut rng = fastrand::Rng::with_seed(1);
        for frame in 0..8_u32 {
            let tags: Vec<_> =
                source.frame(&mut rng).iter().map(|packet| reader.read(packet).expect("readable")).collect();
            let key = frame % 4 == 0;
            assert_eq!(tags.len(), if key { 6 } else { 2 });
            assert!(tags.iter().all(|tag| tag.frame == tags[0].frame));
            assert_eq!(tags.iter().any(|tag| tag.key), key, "frame {frame}");
            assert!(tags[0].first && tags[tags.len() - 1].last);
            let expected = if key { Kind::Intra } else { Kind::Predicted };
            assert_eq!(tags[tags.len() - 1].kind, expected);
        }
    }
}
