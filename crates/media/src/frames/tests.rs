use super::*;
use crate::codec::{h264, h265, mpeg_video};

/// A slice of H.264: `I` is an IDR picture, `i` an intra one, `P`, `B` a reference, `b` none.
fn h264_slice(letter: char) -> Unit {
    match letter {
        'I' => h264::classify(&[0x65, 0x88]),
        'i' => h264::classify(&[0x41, 0x88]),
        'P' => h264::classify(&[0x41, 0x9a]),
        'p' => h264::classify(&[0x01, 0x9a]),
        'B' => h264::classify(&[0x41, 0x9e]),
        'b' => h264::classify(&[0x01, 0x9e]),
        other => panic!("no such picture: {other}"),
    }
}

fn mpeg_picture(letter: char) -> Unit {
    let kind = "IPB".find(letter).expect("one of I, P, B") as u8 + 1;
    mpeg_video::classify(&[0, 0, kind << 3])
}

fn h265_slice(kind: u8, layer: u8) -> Unit {
    h265::classify(&[kind << 1, layer + 1, 0x80])
}

fn one(frames: &mut Frames, time: Option<u32>, units: &[Unit]) -> Frame {
    frames.begin(time);
    units.iter().for_each(|unit| frames.unit(*unit));
    frames.current()
}

fn distances(frame: Frame) -> Vec<u32> {
    frame.needs.distances().collect()
}

/// The distances needed by each picture of a sequence given as letters.
fn needs_of(units: impl Iterator<Item = Unit>) -> Vec<Vec<u32>> {
    let mut frames = Frames::new();
    units.map(|unit| distances(one(&mut frames, None, &[unit]))).collect()
}

#[test]
fn h264_in_simple_groups() {
    let needs = needs_of("IPPPIP".chars().map(h264_slice));
    assert_eq!(needs, [vec![], vec![1], vec![1], vec![1], vec![], vec![1]]);
}

#[test]
fn h264_with_bidirectional_frames_between_references() {
    let needs = needs_of("IPbbbPbbbI".chars().map(h264_slice));
    let expected: [&[u32]; 10] = [&[], &[1], &[1], &[2], &[3], &[4], &[1], &[2], &[3], &[]];
    assert_eq!(needs, expected);
}

#[test]
fn h264_reference_b_frames_are_followed_and_kinds_tell_what_can_go() {
    let mut frames = Frames::new();
    let kinds: Vec<_> =
        "IPBbbp".chars().map(|l| one(&mut frames, None, &[h264_slice(l)])).map(|f| f.kind).collect();
    use Kind::{Bidirectional, Intra, Predicted};
    assert_eq!(kinds, [Intra, Predicted, Predicted, Bidirectional, Bidirectional, Bidirectional]);
    assert_eq!(needs_of("IPBbb".chars().map(h264_slice))[3..], [vec![1], vec![2]]);
}

#[test]
fn mpeg2_as_the_reference_encoder_writes_it() {
    // Closed first group, then an open one: I P B B B, P B B B, I B B B, P.
    let mut frames = Frames::new();
    let first = one(&mut frames, None, &[Unit::PARAMETERS, Unit::Group { closed: true }, mpeg_picture('I')]);
    assert!(first.key && first.needs.is_nothing());
    let rest: Vec<_> =
        "PBBBPBBB".chars().map(|l| distances(one(&mut frames, None, &[mpeg_picture(l)]))).collect();
    let expected: [&[u32]; 8] = [&[1], &[1], &[2], &[3], &[4], &[1], &[2], &[3]];
    assert_eq!(rest, expected);
    let open = one(&mut frames, None, &[Unit::Group { closed: false }, mpeg_picture('I')]);
    assert!(open.key && open.needs.is_nothing());
    // Leading: the intra picture, and the last reference before it (frame 6 of 10).
    let leading: Vec<_> =
        "BBBP".chars().map(|l| distances(one(&mut frames, None, &[mpeg_picture(l)]))).collect();
    assert_eq!(leading, [vec![1, 5], vec![2, 6], vec![3, 7], vec![4]]);
    assert_eq!(distances(one(&mut frames, None, &[mpeg_picture('B')])), [1], "no longer leading");
}

#[test]
fn leading_frames_of_the_very_first_open_group_need_what_is_not_there() {
    let mut frames = Frames::new();
    one(&mut frames, None, &[mpeg_picture('I')]);
    // Distance 2: the frame in front of the first.
    assert_eq!(distances(one(&mut frames, None, &[mpeg_picture('B')])), [1, 2]);
}

#[test]
fn h264_open_groups_are_key_by_recovery_point_and_presentation_times_tell_leading_frames() {
    let mut frames = Frames::new();
    one(&mut frames, Some(0), &[h264_slice('I')]);
    one(&mut frames, Some(4), &[h264_slice('P')]);
    let open = one(&mut frames, Some(8), &[Unit::Sei { recovery: true }, h264_slice('i')]);
    assert!(open.key && open.needs.is_nothing());
    assert_eq!(open.kind, Kind::Intra);
    let leading_reference = one(&mut frames, Some(6), &[h264_slice('B')]);
    assert_eq!(distances(leading_reference), [1, 2]);
    assert_eq!(distances(one(&mut frames, Some(5), &[h264_slice('b')])), [1, 3]);
    // What follows does not need the leading reference.
    assert_eq!(distances(one(&mut frames, Some(12), &[h264_slice('P')])), [3]);
    assert_eq!(distances(one(&mut frames, Some(10), &[h264_slice('b')])), [1]);
}

#[test]
fn presentation_times_may_wrap() {
    let mut frames = Frames::new();
    one(&mut frames, Some(u32::MAX - 4), &[h264_slice('P')]);
    one(&mut frames, Some(2), &[Unit::PARAMETERS, h264_slice('i')]);
    assert_eq!(distances(one(&mut frames, Some(u32::MAX), &[h264_slice('b')])), [1, 2]);
    assert_eq!(distances(one(&mut frames, Some(3), &[h264_slice('b')])), [2]);
}

#[test]
fn an_unmarked_intra_frame_is_no_key_but_one_with_parameter_sets_is() {
    let mut frames = Frames::new();
    one(&mut frames, None, &[h264_slice('I')]);
    let plain = one(&mut frames, None, &[h264_slice('i')]);
    assert!(!plain.key);
    assert_eq!((plain.kind, distances(plain)), (Kind::Intra, vec![1]));
    assert!(one(&mut frames, None, &[Unit::PARAMETERS, h264_slice('i')]).key);
    assert!(!one(&mut frames, None, &[Unit::PARAMETERS, h264_slice('P')]).key);
}

#[test]
fn a_later_slice_corrects_what_the_first_one_promised() {
    let mut frames = Frames::new();
    one(&mut frames, None, &[h264_slice('I')]);
    // first_mb_in_slice = 1, slice_type = 0.
    let later = h264::classify(&[0x41, 0b0101_0000]);
    let mixed = one(&mut frames, None, &[Unit::PARAMETERS, h264_slice('i'), later]);
    assert_eq!((mixed.kind, mixed.key), (Kind::Predicted, false));
    // A second field does not: an intra field with a predicted one is an intra frame.
    let fields = one(&mut frames, None, &[mpeg_picture('I'), mpeg_picture('P')]);
    assert_eq!((fields.kind, fields.key), (Kind::Intra, true));
}

#[test]
fn intra_refresh_can_be_joined_at_its_recovery_points() {
    let mut frames = Frames::new();
    one(&mut frames, None, &[h264_slice('I')]);
    let refresh = one(&mut frames, None, &[Unit::Sei { recovery: true }, h264_slice('P')]);
    assert_eq!((refresh.kind, refresh.key), (Kind::Predicted, true));
    assert!(refresh.needs.is_nothing());
}

#[test]
fn h265_leading_pictures_after_a_cra() {
    const TRAIL_R: u8 = 1;
    const RADL_N: u8 = 6;
    const RASL_N: u8 = 8;
    const RASL_R: u8 = 9;
    const CRA: u8 = 21;
    let sequence = [20, TRAIL_R, CRA, RASL_R, RASL_N, RADL_N, TRAIL_R];
    let needs = needs_of(sequence.into_iter().map(|kind| h265_slice(kind, 0)));
    let expected: [&[u32]; 7] = [&[], &[1], &[], &[1, 2], &[1, 3], &[3], &[4]];
    assert_eq!(needs, expected);
}

#[test]
fn h265_temporal_layers_need_equal_or_lower_ones() {
    // Layers 0 2 1 2 0 2 1 2, of which the highest are not references.
    let mut frames = Frames::new();
    one(&mut frames, None, &[h265_slice(20, 0)]);
    let mut next = |kind, layer| {
        let frame = one(&mut frames, None, &[h265_slice(kind, layer)]);
        (frame.kind, distances(frame))
    };
    use Kind::{Bidirectional, Predicted};
    assert_eq!(next(2, 2), (Bidirectional, vec![1]));
    assert_eq!(next(3, 1), (Predicted, vec![2]));
    assert_eq!(next(2, 2), (Bidirectional, vec![1]));
    assert_eq!(next(1, 0), (Predicted, vec![4]));
    assert_eq!(next(2, 2), (Bidirectional, vec![1]));
    // Not a reference in its own layer, but one for the layer above.
    assert_eq!(next(2, 1), (Predicted, vec![2]));
    assert_eq!(next(2, 2), (Bidirectional, vec![1]));
}

#[test]
fn frames_are_headers_until_a_slice_is_seen() {
    let mut frames = Frames::new();
    let before = one(&mut frames, None, &[Unit::Delimiter, Unit::PARAMETERS]);
    assert_eq!((before.kind, before.key, before.number), (Kind::Header, false, 1));
    frames.unit(h264_slice('I'));
    assert_eq!((frames.current().kind, frames.current().key), (Kind::Intra, true));
    assert_eq!(frames.current().number, 1);
}

#[test]
fn access_units_end_before_what_can_only_start_one() {
    let mut frames = Frames::new();
    assert!(!frames.ends_before(Unit::Delimiter));
    frames.begin(None);
    assert!(!frames.ends_before(Unit::PARAMETERS));
    frames.unit(h264_slice('P'));
    for unit in [Unit::Delimiter, Unit::PARAMETERS, Unit::Sei { recovery: false }, h264_slice('P')] {
        assert!(frames.ends_before(unit), "{unit:?}");
    }
    assert!(!frames.ends_before(Unit::Other));
    assert!(!frames.ends_before(h264::classify(&[0x41, 0b0101_0000])), "a later slice");
}

#[test]
fn numbers_wrap() {
    let mut frames = Frames { number: u32::MAX - 1, ..Frames::default() };
    one(&mut frames, None, &[h264_slice('I')]);
    let wrapped = one(&mut frames, None, &[h264_slice('P')]);
    assert_eq!((wrapped.number, distances(wrapped)), (0, vec![1]));
}
