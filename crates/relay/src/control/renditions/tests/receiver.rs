//! A receiver of one of several renditions: what it got.

use outflow_rtp::HEADER;

use super::{FRAME_TICKS, SOUND, Shape};
use crate::schedule::SinkKey;

pub(super) struct Receiver {
    pub(super) key: SinkKey,
    has_sound: bool,
    is_coded: bool,
    pub(super) is_there: bool,
    /// This many packets are taken, and then none for this many frame times.
    pub(super) block: Option<(u64, u32)>,
    got: Vec<Got>,
}

/// A packet that it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) is_sound: bool,
    pub(super) rendition: u8,
    pub(super) is_sets: bool,
    pub(super) is_key: bool,
    /// Another rendition comes behind it.
    pub(super) is_left: bool,
    frame: u32,
    index: u8,
    count: u8,
    sequence: u16,
    pub(super) timestamp: u32,
}

impl Receiver {
    pub(super) fn new(key: SinkKey, shape: &Shape) -> Self {
        let Shape { has_sound, is_coded, .. } = *shape;
        Receiver { key, has_sound, is_coded, is_there: true, block: None, got: Vec::new() }
    }

    pub(super) fn take(&mut self, is_main: bool, header: [u8; HEADER], sequence_offset: u16, bytes: &[u8]) {
        let [_, kind, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = header;
        let ssrc = u32::from_be_bytes([c0, c1, c2, c3]);
        let track = u32::from(is_main == self.has_sound && self.has_sound && ssrc & 1 == 1);
        assert_eq!(ssrc & !1, 0x7fff_ff00, "it is always the stream's own; track {track}");
        assert_eq!(kind & 0x7f, if is_main { 96 } else { SOUND }, "the payload types are the first one's");
        let sequence = u16::from_be_bytes([s0, s1]).wrapping_sub(sequence_offset);
        let timestamp = u32::from_be_bytes([t0, t1, t2, t3]);
        let got = match *bytes {
            _ if self.is_coded && !is_main => Got { is_sound: true, ..Got::of(&[0; 6]) },
            [0x78, 0, 2, 0x67, rendition, 0, 2, 0x68, _] => {
                Got { rendition, is_sets: true, ..Got::of(&[0; 6]) }
            }
            [_, _, _, rendition, key, ref rest @ ..] => {
                Got { is_sound: !is_main, rendition, is_key: key == 1, ..Got::of(rest) }
            }
            _ => panic!("{bytes:x?}"),
        };
        self.got.push(Got { sequence, timestamp, ..got });
    }

    /// What was taken last was of an order behind which it leaves a rendition, or not.
    pub(super) fn note_left(&mut self, is_left: bool) {
        if let Some(got) = self.got.last_mut() {
            got.is_left = is_left;
        }
    }

    /// Whole frames without a gap, changes at key frames, and all sound once.
    pub(super) fn check(&self) -> Vec<Got> {
        let sound: Vec<&Got> = self.got.iter().filter(|got| got.is_sound).collect();
        for pair in sound.windows(2) {
            assert_eq!(pair[1].sequence, pair[0].sequence.wrapping_add(1), "all sound once: {pair:?}");
        }
        assert!(sound.iter().all(|got| got.rendition == 0), "of the first rendition");
        self.check_pictures(false)
    }

    /// `has_gaps`: sources were away meanwhile.
    pub(super) fn check_pictures(&self, has_gaps: bool) -> Vec<Got> {
        let video: Vec<&Got> = self.got.iter().filter(|got| !got.is_sound).collect();
        for pair in video.windows(2) {
            assert_eq!(pair[1].sequence, pair[0].sequence.wrapping_add(1), "numbers go on: {pair:?}");
        }
        let pictures: Vec<&&Got> = video.iter().filter(|got| !got.is_sets).collect();
        if let Some(first) = pictures.first() {
            assert!(first.is_key && first.index == 0, "{first:?}");
        }
        for pair in pictures.windows(2) {
            check_step(pair[0], pair[1], has_gaps);
        }
        for pair in video.windows(2).filter(|pair| pair[0].is_sets) {
            let is_begun = pair[1].rendition == pair[0].rendition && pair[1].is_key && pair[1].index == 0;
            assert!(is_begun && pair[0].timestamp == pair[1].timestamp, "sets stand before it: {pair:?}");
        }
        self.got.clone()
    }
}

fn check_step(before: &Got, next: &Got, has_gaps: bool) {
    let pair = (before, next);
    if before.index + 1 < before.count {
        let is_next =
            (next.rendition, next.frame, next.index) == (before.rendition, before.frame, before.index + 1);
        assert!(is_next && next.timestamp == before.timestamp, "frames are whole: {pair:?}");
        return;
    }
    assert_eq!(next.index, 0, "frames are whole: {pair:?}");
    if next.rendition != before.rendition {
        assert!(next.is_key, "changes are at key frames: {pair:?}");
        let step = next.timestamp.wrapping_sub(before.timestamp).cast_signed();
        let is_soon = has_gaps || step < FRAME_TICKS.cast_signed() * 4;
        // Where a frame of one begins while a key frame of the other does, it may be the first by a moment.
        assert!(step >= -FRAME_TICKS.cast_signed() && is_soon, "in time: {pair:?}");
    } else {
        assert_eq!(next.frame, before.frame + 1, "no frame is missing: {pair:?}");
    }
}

impl Got {
    fn of(rest: &[u8]) -> Self {
        let &[f0, f1, f2, f3, index, count] = rest else { panic!("{rest:x?}") };
        Got {
            is_sound: false,
            rendition: 0,
            is_sets: false,
            is_key: false,
            is_left: false,
            frame: u32::from_be_bytes([f0, f1, f2, f3]),
            index,
            count,
            sequence: 0,
            timestamp: 0,
        }
    }
}
