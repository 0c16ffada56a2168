//! Frames of sound, wherever PES packets cut them.

use bytes::{Buf, Bytes, BytesMut};
use outflow_media::codec::aac::{ADTS_HEADER, AdtsHeader};
use outflow_media::codec::mpeg_audio::FrameHeader;

use crate::clock::TICKS;

/// Cuts a stream of sound into its frames, which have their headers.
#[derive(Debug)]
pub(super) struct Framing {
    header: fn(&[u8]) -> Option<Header>,
    // bounded: less than a frame, of at most 8191 bytes.
    /// What has come of the frame that is not whole.
    rest: BytesMut,
    /// Where the next frame begins; `None` before the first time.
    next: Option<Place>,
    /// It is not known where a frame begins.
    is_lost: bool,
}

/// What the header of a frame says.
#[derive(Debug, Clone, Copy)]
struct Header {
    length: usize,
    samples: u32,
    frequency_hz: u32,
}

/// A number of samples behind a time: ticks are rounded.
#[derive(Debug, Clone, Copy)]
struct Place {
    pts: i64,
    samples: i64,
    frequency_hz: u32,
}

impl Framing {
    /// Of AAC with ADTS headers.
    pub(super) fn adts() -> Self {
        Self::new(|data| {
            let header = AdtsHeader::parse(data)?;
            let (samples, frequency_hz) = (header.samples(), header.config.frequency_hz);
            Some(Header { length: header.length, samples, frequency_hz })
        })
    }

    /// Of MPEG audio.
    pub(super) fn mpeg() -> Self {
        Self::new(|data| {
            let FrameHeader { length, samples, frequency_hz, .. } = FrameHeader::parse(data)?;
            Some(Header { length, samples, frequency_hz })
        })
    }

    fn new(header: fn(&[u8]) -> Option<Header>) -> Self {
        Framing { header, rest: BytesMut::new(), next: None, is_lost: true }
    }

    /// Something is missing in front of what comes next.
    pub(super) fn break_off(&mut self) {
        self.rest.clear();
        (self.next, self.is_lost) = (None, true);
    }

    /// Takes what a PES packet holds, and gives the frames that are whole by it, with their times. The time of the PES
    /// packet is that of the first frame that begins in it (ISO/IEC 13818-1, section 2.4.3.7). Returns whether
    /// something is in it that is no frame; what stands in front of the first frame of all may be the end of one.
    pub(super) fn push(&mut self, data: Bytes, pts: Option<i64>, out: &mut impl FnMut(Bytes, i64)) -> bool {
        let begins_at = self.rest.len();
        let mut left = match begins_at {
            0 => data,
            _ => {
                self.rest.extend_from_slice(&data);
                self.rest.split().freeze()
            }
        };
        let (all, mut pts, mut is_malformed) = (left.len(), pts, false);
        while left.len() >= ADTS_HEADER {
            let Some(header) = self.header_in(&left) else {
                is_malformed |= !self.is_lost;
                self.is_lost = true;
                let sync = left[1..].iter().position(|byte| *byte == 0xff).map_or(left.len(), |at| at + 1);
                left.advance(sync);
                continue;
            };
            if left.len() < header.length {
                break;
            }
            self.is_lost = false;
            if let Some(pts) = pts.take_if(|_| all - left.len() >= begins_at) {
                self.next = Some(Place::at(pts));
            }
            let frame = left.split_to(header.length);
            if let Some(at) = self.step(header) {
                out(frame, at);
            }
        }
        if let Some(pts) = pts.filter(|_| !left.is_empty() && all - left.len() >= begins_at) {
            self.next = Some(Place::at(pts));
        }
        self.rest.extend_from_slice(&left);
        is_malformed
    }

    /// The header that this starts with. Where no frame was in front of it, the next one has to stand behind it, as far
    /// as that has come: bytes of a frame can look like a header.
    fn header_in(&self, left: &[u8]) -> Option<Header> {
        let header = (self.header)(left)?;
        let behind = left.get(header.length..).filter(|behind| behind.len() >= ADTS_HEADER);
        let is_one = !self.is_lost || behind.is_none_or(|behind| (self.header)(behind).is_some());
        is_one.then_some(header)
    }

    /// The time of a frame, and the next one stands behind it.
    fn step(&mut self, header: Header) -> Option<i64> {
        let next = self.next.as_mut()?;
        let at = next.ticks();
        if next.frequency_hz != header.frequency_hz {
            *next = Place { frequency_hz: header.frequency_hz, ..Place::at(at) };
        }
        next.samples += i64::from(header.samples);
        Some(at)
    }
}

impl Place {
    fn at(pts: i64) -> Self {
        Place { pts, samples: 0, frequency_hz: 0 }
    }

    fn ticks(&self) -> i64 {
        self.pts + self.samples * TICKS / i64::from(self.frequency_hz.max(1))
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::codec::aac::AudioSpecificConfig;

    use super::*;

    const CONFIG: AudioSpecificConfig =
        AudioSpecificConfig { object_type: 2, frequency_hz: 44_100, channels: 2, frame_samples: 1024 };

    /// A frame of this number, with its header.
    fn frame(number: u8) -> Vec<u8> {
        let payload = [number; 150];
        [&CONFIG.adts_header(payload.len()).expect("it fits")[..], &payload].concat()
    }

    fn frames(numbers: core::ops::Range<u8>) -> Vec<u8> {
        numbers.flat_map(frame).collect()
    }

    /// The numbers of the frames that come out of PES packets, and their times; whether something in them is none.
    fn pushed(framing: &mut Framing, parts: &[(&[u8], Option<i64>)]) -> (Vec<(u8, i64)>, bool) {
        let (mut out, mut is_malformed) = (Vec::new(), false);
        for (part, pts) in parts {
            is_malformed |= framing.push(Bytes::copy_from_slice(part), *pts, &mut |frame, at| {
                assert!(frame.len() == 157 && frame[8..].iter().all(|byte| *byte == frame[7]));
                out.push((frame[7], at));
            });
        }
        (out, is_malformed)
    }

    #[test]
    fn frames_have_the_time_of_the_packet_in_which_they_begin_wherever_it_is_cut() {
        let all = frames(0..6);
        let times = |from: i64| move |number: i64| from + number * 1024 * 90_000 / 44_100;
        for cut in 1..all.len() {
            let (one, two) = all.split_at(cut);
            let begun = cut.div_ceil(157);
            let (out, is_malformed) =
                pushed(&mut Framing::adts(), &[(one, Some(9_000)), (two, Some(100_000))]);
            let before = (0..begun as i64).map(times(9_000));
            let expected = before.chain((0..6 - begun as i64).map(times(100_000)));
            assert_eq!(out, (0..6).zip(expected).collect::<Vec<_>>(), "{cut}");
            assert!(!is_malformed);
        }
    }

    #[test]
    fn one_that_begins_within_a_frame_waits_for_the_next() {
        let all = frames(0..4);
        for cut in 1..157 {
            let mut framing = Framing::adts();
            let (out, is_malformed) = pushed(&mut framing, &[(&all[cut..], Some(9_000))]);
            assert_eq!(out.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3], "{cut}");
            assert_eq!((out[0].1, is_malformed), (9_000, false));
        }
    }

    #[test]
    fn what_is_between_frames_is_malformed_and_no_frame_is_lost() {
        // What looks like a header is none without another one behind it.
        let junk = [&[0x55; 3], &frame(9)[..20], &[0xff; 5]].concat();
        let all = [frames(0..2), junk, frames(2..4)].concat();
        let mut framing = Framing::adts();
        let (out, is_malformed) = pushed(&mut framing, &[(&all, Some(0)), (&frames(4..5), None)]);
        let numbers: Vec<_> = out.iter().map(|(number, _)| *number).collect();
        assert!(is_malformed && numbers == [0, 1, 2, 3, 4], "{numbers:?}");
        assert_eq!(out[4].1, 4 * 1024 * 90_000 / 44_100, "what has no time goes on");
    }

    #[test]
    fn behind_a_gap_nothing_goes_on() {
        let all = frames(0..4);
        let mut framing = Framing::adts();
        pushed(&mut framing, &[(&all[..200], Some(0))]);
        framing.break_off();
        let parts = [(&all[400..], Some(50_000))];
        assert_eq!(pushed(&mut framing, &parts), (vec![(3, 50_000)], false));
        framing.break_off();
        assert_eq!(pushed(&mut framing, &[(&all, None)]), (vec![], false), "without a time");
    }

    #[test]
    fn frames_of_mpeg_audio_are_cut_by_their_headers() {
        // Layer III, 44.1 kHz, 128 kbit/s, with and without padding.
        let one = |third: u8, length: usize| {
            let mut frame = vec![0x55; length];
            frame[..4].copy_from_slice(&[0xff, 0xfb, third, 0]);
            frame
        };
        let all = [one(0x90, 417), one(0x92, 418), one(0x90, 417)].concat();
        let mut told = Vec::new();
        let is_malformed =
            Framing::mpeg().push(all.into(), Some(0), &mut |frame, at| told.push((frame.len(), at)));
        let ticks = 1152 * 90_000 / 44_100;
        assert_eq!(
            (told, is_malformed),
            (vec![(417, 0), (418, ticks), (417, 2 * 1152 * 90_000 / 44_100)], false)
        );
    }
}
