//! Layers of H.264, MPEG video and H.265 against models of their encoders, which know what refers to what.

use proptest::prelude::*;

use super::*;
use crate::Tag;
use crate::codec::{h264, h265, mpeg_video};
use crate::testing::{Case, assert_that_layers_are_a_chain, assert_that_levels_can_change};

/// Takes one number after the other from a list, again and again.
struct Choices<'a> {
    list: &'a [u8],
    at: usize,
}

impl Choices<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.at += 1;
        let choice = self.list[self.at % self.list.len()];
        (usize::from(choice) * 7 + self.at) % end.max(1)
    }

    /// One or two of a list.
    fn some(&mut self, of: &[usize]) -> Vec<usize> {
        let mut chosen: Vec<_> =
            (0..1 + self.below(2)).filter_map(|_| of.get(self.below(of.len()))).collect();
        chosen.dedup();
        chosen.into_iter().copied().collect()
    }
}

/// Pictures with what they refer to, as they are decoded.
struct Stream {
    frames: Frames,
    cases: Vec<Case>,
}

impl Stream {
    fn new() -> Self {
        Stream { frames: Frames::new(), cases: Vec::new() }
    }

    fn push(&mut self, time: u32, units: &[Unit], refers: Vec<usize>) -> usize {
        self.frames.begin(Some(time));
        units.iter().for_each(|unit| self.frames.unit(*unit));
        let Frame { number: frame, kind, key, layer, layers, opens, needs } = self.frames.current();
        let tag = Tag { frame, kind, key, layer, layers, opens, needs, ..Tag::default() };
        self.cases.push(Case { tag, refers });
        self.cases.len() - 1
    }
}

/// An encoder of I, P and B pictures: groups that are closed or open, intra pictures that are no key
/// frames, pyramids of B pictures.
struct Pictures {
    stream: Stream,
    slice: fn(char) -> Unit,
    marked: Unit,
    has_pyramid: bool,
    time: u32,
    /// Since the last key frame.
    anchors: Vec<usize>,
}

impl Pictures {
    fn group(&mut self, choices: &mut Choices<'_>) {
        let is_open = choices.below(2) == 0 && !self.anchors.is_empty();
        let leading = if is_open { choices.below(4) as u32 } else { 0 };
        self.time += leading + 1;
        let before = self.anchors.last().copied();
        let key = match is_open {
            true => self.stream.push(self.time, &[self.marked, (self.slice)('i')], vec![]),
            false => self.stream.push(self.time, &[Unit::PARAMETERS, (self.slice)('I')], vec![]),
        };
        self.anchors = vec![key];
        if let Some(before) = before {
            self.between(leading, [before, key], choices);
        }
        for _ in 0..choices.below(5) {
            let count = choices.below(4) as u32;
            self.time += count + 1;
            let (letter, refers) = match choices.below(4) {
                0 if self.has_pyramid => ('i', vec![]),
                _ => ('P', choices.some(&self.anchors[self.anchors.len().saturating_sub(3)..])),
            };
            let earlier = self.anchors[self.anchors.len() - 1];
            let later = self.stream.push(self.time, &[(self.slice)(letter)], refers);
            self.anchors.push(later);
            self.between(count, [earlier, later], choices);
        }
    }

    /// `count` B pictures between two others, which have been decoded.
    fn between(&mut self, count: u32, [earlier, later]: [usize; 2], choices: &mut Choices<'_>) {
        let mut refers = vec![earlier, later];
        let mut times: Vec<u32> = (1..=count).map(|back| self.time - back).collect();
        if self.has_pyramid && count > 1 && choices.below(2) == 0 {
            let middle = times.remove(times.len() / 2);
            refers.push(self.stream.push(middle, &[(self.slice)('B')], refers.clone()));
        }
        for time in times {
            self.stream.push(time, &[(self.slice)('b')], refers.clone());
        }
    }
}

fn h264_slice(letter: char) -> Unit {
    h264::classify(match letter {
        'I' => &[0x65, 0x88],
        'i' => &[0x41, 0x88],
        'P' => &[0x41, 0x9a],
        'B' => &[0x41, 0x9e],
        _ => &[0x01, 0x9e],
    })
}

fn mpeg_picture(letter: char) -> Unit {
    let kind = match letter {
        'I' | 'i' => 1,
        'P' => 2,
        _ => 3,
    };
    mpeg_video::classify(&[0, 0, kind << 3])
}

fn pictures(slice: fn(char) -> Unit, marked: Unit, has_pyramid: bool, list: &[u8]) -> Vec<Case> {
    let (stream, anchors) = (Stream::new(), Vec::new());
    let mut pictures = Pictures { stream, slice, marked, has_pyramid, time: 0, anchors };
    let mut choices = Choices { list, at: 0 };
    (0..6).for_each(|_| pictures.group(&mut choices));
    pictures.stream.cases
}

/// NAL unit types of H.265.
const TRAIL: u8 = 0;
const TSA: u8 = 2;
const STSA: u8 = 4;
const RASL: u8 = 8;
const IDR: u8 = 20;
const CRA: u8 = 21;

/// A picture of H.265 that may be referred to.
#[derive(Debug, Clone, Copy)]
struct Reference {
    at: usize,
    tid: u8,
    /// Not by pictures of its own sub-layer.
    only_above: bool,
}

/// An encoder of temporal sub-layers: pictures of any, with switching points that mean what they say.
struct SubLayers {
    stream: Stream,
    highest: u8,
    /// Since the last entry point, but for leading pictures.
    references: Vec<Reference>,
}

impl SubLayers {
    fn slice(kind: u8, tid: u8) -> Unit {
        h265::classify(&[kind << 1, tid + 1, 0x80])
    }

    fn entry(&mut self, choices: &mut Choices<'_>) {
        let before = core::mem::take(&mut self.references);
        let kind = if before.is_empty() || choices.below(2) == 0 { IDR } else { CRA };
        let sps = h265::classify(&[33 << 1, 1, self.highest << 1]);
        let entry = self.stream.push(0, &[sps, Self::slice(kind, 0)], vec![]);
        self.references.push(Reference { at: entry, tid: 0, only_above: false });
        let mut leading = before;
        leading.extend(&self.references);
        for _ in 0..if kind == CRA { choices.below(4) } else { 0 } {
            let tid = choices.below(usize::from(self.highest) + 1) as u8;
            self.picture(RASL, tid, &mut leading, choices);
        }
    }

    /// A picture that refers to some of those it may, and may itself be referred to.
    fn picture(&mut self, base: u8, tid: u8, known: &mut Vec<Reference>, choices: &mut Choices<'_>) {
        let only_above = choices.below(3) == 0;
        let switches = base == TSA || base == STSA;
        let may = |r: &&Reference| r.tid < tid || (r.tid == tid && !r.only_above && !switches);
        let nearest = known.iter().rev().filter(may).map(|r| r.at).take(4);
        let refers = choices.some(&nearest.collect::<Vec<_>>());
        // What stands behind a switching point refers to nothing of its sub-layer before it.
        match base {
            TSA => known.retain(|r| r.tid < tid),
            STSA => known.iter_mut().filter(|r| r.tid == tid).for_each(|r| r.only_above = true),
            _ => {}
        }
        let kind = base + u8::from(!only_above);
        let at = self.stream.push(0, &[Self::slice(kind, tid)], refers);
        known.push(Reference { at, tid, only_above });
    }

    fn group(&mut self, choices: &mut Choices<'_>) {
        self.entry(choices);
        let mut known = core::mem::take(&mut self.references);
        for _ in 0..choices.below(12) {
            let tid = choices.below(usize::from(self.highest) + 1) as u8;
            let base = if tid == 0 { TRAIL } else { [TRAIL, TRAIL, TSA, STSA][choices.below(4)] };
            self.picture(base, tid, &mut known, choices);
        }
        self.references = known;
    }
}

fn sub_layers(highest: u8, list: &[u8]) -> Vec<Case> {
    let mut encoder = SubLayers { stream: Stream::new(), highest, references: Vec::new() };
    let mut choices = Choices { list, at: 0 };
    (0..6).for_each(|_| encoder.group(&mut choices));
    encoder.stream.cases
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..80)
}

fn wanted() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..6_u8, 1..40)
}

proptest! {
    #[test]
    fn no_level_of_h264_lacks_what_it_needs(list in choices(), wanted in wanted()) {
        let cases = pictures(h264_slice, Unit::Sei { recovery: true }, true, &list);
        assert_that_layers_are_a_chain(&cases);
        assert_that_levels_can_change(&cases, &wanted);
    }

    #[test]
    fn no_level_of_mpeg_video_lacks_what_it_needs(list in choices(), wanted in wanted()) {
        let cases = pictures(mpeg_picture, Unit::Group { closed: false }, false, &list);
        assert_that_layers_are_a_chain(&cases);
        assert_that_levels_can_change(&cases, &wanted);
    }

    #[test]
    fn no_level_of_h265_lacks_what_it_needs(highest in 0..4_u8, list in choices(), wanted in wanted()) {
        let cases = sub_layers(highest, &list);
        assert_that_layers_are_a_chain(&cases);
        assert_that_levels_can_change(&cases, &wanted);
    }
}

#[test]
fn a_base_of_intra_pictures_gets_all_of_them_and_nothing_else() {
    let mut stream = Stream::new();
    for (time, letter) in "IPbiPbP".chars().enumerate() {
        stream.push(time as u32, &[h264_slice(letter)], vec![]);
    }
    assert_eq!(assert_that_levels_can_change(&stream.cases, &[0]), [0, 3]);
    assert_eq!(assert_that_levels_can_change(&stream.cases, &[1]), [0, 1, 3, 4, 6]);
}

#[test]
fn going_up_waits_for_what_opens() {
    // From references to all at the next picture that is none; from intra pictures only at a key frame.
    let mut stream = Stream::new();
    for (time, letter) in "IPbPbIPb".chars().enumerate() {
        stream.push(time as u32, &[h264_slice(letter)], vec![]);
    }
    assert_eq!(
        assert_that_levels_can_change(&stream.cases, &[1, 1, 1, 2, 2, 2, 2, 2]),
        [0, 1, 3, 4, 5, 6, 7]
    );
    assert_eq!(assert_that_levels_can_change(&stream.cases, &[0, 2, 2, 2, 2, 2, 2, 2]), [0, 5, 6, 7]);
}

#[test]
fn sub_layers_are_taken_one_after_the_other_at_switching_points() {
    let mut stream = Stream::new();
    let sps = h265::classify(&[33 << 1, 1, 2 << 1]);
    stream.push(0, &[sps, SubLayers::slice(IDR, 0)], vec![]);
    for (kind, tid) in [(TRAIL + 1, 1), (TRAIL + 1, 2), (TSA + 1, 1), (TSA + 1, 2), (STSA + 1, 1), (STSA, 2)]
    {
        stream.push(0, &[SubLayers::slice(kind, tid)], vec![]);
    }
    let layers: Vec<_> = stream.cases.iter().map(|case| (case.tag.layer, case.tag.opens)).collect();
    // A receiver that took sub-layer 1 at the last switching point lacks what sub-layer 2 may still refer to.
    let expected = [(0, true), (2, false), (3, false), (2, true), (3, true), (2, true), (4, false)];
    assert_eq!(layers, expected);
    assert_eq!(assert_that_levels_can_change(&stream.cases, &[0, 4, 4, 4, 4, 4, 4]), [0, 3, 4, 5]);
}
