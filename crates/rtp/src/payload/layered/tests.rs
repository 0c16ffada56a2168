//! Layers and needs, against a model of scalable encoders.

use outflow_media::format::{Codec, ExtensionKind};
use outflow_media::testing::{
    Case, assert_that_layers_are_a_chain, assert_that_levels_can_change, assert_that_pictures_end,
};
use outflow_media::{Kind, Tag};
use proptest::prelude::*;

use super::model::*;
use super::*;
use crate::payload::RtpReader;

/// What a reader tells of frames of one packet each.
fn cases(mut reader: RtpReader, nodes: &[Node], packet: impl Fn(usize, &Node) -> Vec<u8>) -> Vec<Case> {
    let read = |(at, node): (usize, &Node)| {
        let tag = reader.read(&packet(at, node)).expect("valid");
        assert_eq!((tag.frame, tag.key, tag.first), (at as u32 + 1, node.key, true), "{at}: {node:?}");
        Case { tag, refers: node.refers() }
    };
    nodes.iter().enumerate().map(read).collect()
}

fn assert_levels(cases: &[Case], wanted: &[u8]) {
    assert_that_layers_are_a_chain(cases);
    assert_that_levels_can_change(cases, wanted);
}

/// The tags of each picture.
fn pictures(nodes: &[Node], cases: &[Case]) -> Vec<Vec<Tag>> {
    let both: Vec<_> = nodes.iter().zip(cases).collect();
    let same = both.chunk_by(|one, other| one.0.picture == other.0.picture);
    same.map(|frames| frames.iter().map(|(_, case)| case.tag).collect()).collect()
}

fn list() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..60)
}

fn wanted() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..7_u8, 1..40)
}

const OTHER: ExtensionKind = ExtensionKind::Other(String::new());

proptest! {
    #[test]
    fn no_level_of_av1_lacks_what_it_needs(
        (temporal, spatial) in (1..=3_u8, 1..=3_u8), list in list(), wanted in wanted(),
    ) {
        let nodes = encode(temporal, spatial, Habits::default(), &list);
        let structure = structure(temporal, spatial);
        let read = reader(Codec::Av1, ExtensionKind::DependencyDescriptor);
        let cases = cases(read, &nodes, |at, _| av1_described(&nodes, &structure, at));
        assert_levels(&cases, &wanted);
        assert_that_pictures_end(&pictures(&nodes, &cases));
        for Case { tag, refers } in &cases {
            prop_assert_eq!(tag.layers, temporal + spatial - 1);
            let near = refers.iter().map(|at| tag.frame - 1 - *at as u32).filter(|distance| *distance <= 32);
            let needs = near.fold(Needs::NOTHING, |needs, distance| needs.and(Needs::back(distance)));
            prop_assert_eq!(tag.needs, needs, "as told");
        }
    }

    #[test]
    fn no_level_of_av1_without_descriptors_lacks_what_it_needs(
        (temporal, spatial) in (1..=3_u8, 1..=3_u8), list in list(), wanted in wanted(),
    ) {
        let nodes = encode(temporal, spatial, Habits::default(), &list);
        let read = reader(Codec::Av1, OTHER);
        let cases = cases(read, &nodes, |at, node| av1_units(node, at, (temporal, spatial)));
        assert_levels(&cases, &wanted);
        prop_assert!(cases.iter().all(|case| case.tag.layers == temporal + spatial - 1));
    }

    #[test]
    fn no_level_of_vp9_lacks_what_it_needs(
        (temporal, spatial) in (1..=3_u8, 1..=3_u8), list in list(), wanted in wanted(),
    ) {
        let habits = Habits { resets: true, ..Habits::default() };
        let nodes = encode(temporal, spatial, habits, &list);
        let cases = cases(reader(Codec::Vp9, OTHER), &nodes, |at, _| vp9_flexible(&nodes, at));
        assert_levels(&cases, &wanted);
        assert_that_pictures_end(&pictures(&nodes, &cases));
    }

    #[test]
    fn no_level_of_vp8_lacks_what_it_needs(temporal in 1..=4_u8, list in list(), wanted in wanted()) {
        let habits = Habits { syncs: true, discards: true, resets: false };
        let nodes = encode(temporal, 1, habits, &list);
        let cases = cases(reader(Codec::Vp8, OTHER), &nodes, |at, node| vp8_packet(node, at, temporal > 1));
        assert_levels(&cases, &wanted);
    }

    #[test]
    fn no_level_of_marked_frames_lacks_what_it_needs(
        (temporal, spatial) in (1..=3_u8, 1..=3_u8), list in list(), wanted in wanted(),
    ) {
        let habits = Habits { syncs: true, discards: true, resets: true };
        let nodes = encode(temporal, spatial, habits, &list);
        let read = reader(Codec::Srtp { video: true }, ExtensionKind::FrameMarking);
        let cases = cases(read, &nodes, |at, node| marked(node, at));
        assert_levels(&cases, &wanted);
    }
}

/// Layer, and whether it opens, of each tag.
fn layers(tags: &[Tag]) -> Vec<(u8, bool)> {
    tags.iter().map(|tag| (tag.layer, tag.opens)).collect()
}

fn tags(mut reader: RtpReader, packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<Tag> {
    packets.into_iter().map(|packet| reader.read(&packet).expect("valid")).collect()
}

#[test]
fn temporal_layers_of_av1_open_behind_frames_at_which_one_can_switch() {
    let structure = three_layers();
    let order = [0, 3, 2, 3, 1, 3, 2, 3];
    let packets = (0..).zip(order).map(|(number, of)| av1_packet(&structure, of, number, number == 0));
    let read = tags(reader(Codec::Av1, ExtensionKind::DependencyDescriptor), packets);
    let group = [(0, false), (2, true), (1, true), (2, true)];
    assert_eq!(layers(&read[1..]), [&group[1..], &group].concat());
    assert_eq!((read[0].layer, read[0].layers, read[0].key), (0, 3, true));
    use Kind::{Bidirectional, Intra, Predicted};
    assert_eq!([0, 1, 2, 4].map(|at| read[at].kind), [Intra, Bidirectional, Predicted, Predicted]);
    // A receiver of the base alone that wants all takes one layer after the other.
    let cases: Vec<_> = read.iter().map(|tag| Case { tag: *tag, refers: vec![] }).collect();
    assert_eq!(assert_that_levels_can_change(&cases, &[0, 0, 2, 2, 2, 2, 2, 2]), [0, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn numbers_of_av1_follow_those_of_the_stream() {
    let structure = three_layers();
    let mut reader = reader(Codec::Av1, ExtensionKind::DependencyDescriptor);
    let mut read = |of: u8, number: u16| reader.read(&av1_packet(&structure, of, number, of == 0)).unwrap();
    assert_eq!(read(0, 65_534).frame, 1);
    // What lies between was filtered out on its way here.
    let base = read(1, 2);
    assert_eq!((base.frame, base.needs), (5, Needs::back(4)));
    let late = read(0, 65_534);
    assert_eq!((late.frame, late.key, late.first), (1, true, false), "a late packet of the first frame");
    assert_eq!(read(1, 6).frame, 9);
    assert_eq!(read(0, 40_000).frame, 10, "another source");
}

#[test]
fn a_layer_does_not_open_where_it_needs_what_lower_ones_were_before_they_opened() {
    // The last frame of T2 lets all that can decode it go on. It refers to the frame of T1 before the last of
    // T1, from which on T1 alone can be taken.
    let list = [0, 24, 102, 48, 231, 94, 6];
    let nodes = encode(3, 1, Habits::default(), &list);
    let refers: Vec<_> = nodes.iter().map(|node| (node.temporal, node.refers())).collect();
    assert_eq!(refers[2..5], [(1, vec![0]), (1, vec![0]), (2, vec![3, 2])]);
    let structure = structure(3, 1);
    let read = reader(Codec::Av1, ExtensionKind::DependencyDescriptor);
    let cases = cases(read, &nodes, |at, _| av1_described(&nodes, &structure, at));
    assert!(cases[3].tag.opens && !cases[4].tag.opens, "{cases:?}");
    assert_levels(&cases, &[0, 0, 0, 1, 2, 2, 2]);
}

#[test]
fn descriptors_without_their_structure_are_not_needed() {
    let structure = three_layers();
    let unknown = av1_packet(&structure, 3, 7, false);
    let mut reader = reader(Codec::Av1, ExtensionKind::DependencyDescriptor);
    let tag = reader.read(&unknown).unwrap();
    assert_eq!((tag.frame, tag.layer, tag.layers, tag.key), (1, 0, 1, false));
    let broken = packet(8, 8, Some(&[0x80, 0]), &[0x10, 6 << 3, 0x30]);
    assert_eq!(reader.read(&broken).unwrap_err().format, "dependency descriptor");
}

#[test]
fn fragments_of_av1_belong_to_the_frame_that_began() {
    let mut reader = reader(Codec::Av1, OTHER);
    // A temporal delimiter, a sequence header and the begin of a frame; two fragments; another frame.
    let begin = [0x78, 1, 2 << 3, 3, 1 << 3, 0, 0, 6 << 3, 0x10, 7];
    let mut read = |at: usize, picture: usize, payload: &[u8]| {
        let tag = reader.read(&packet(at, picture, None, payload)).unwrap();
        (tag.frame, tag.kind, tag.first, tag.key)
    };
    assert_eq!(read(0, 0, &begin), (1, Kind::Intra, true, true));
    assert_eq!(read(1, 0, &[0xd0, 7, 7]), (1, Kind::Intra, false, true));
    assert_eq!(read(2, 0, &[0x90, 7, 7]), (1, Kind::Intra, false, true));
    assert_eq!(read(3, 1, &[0x10, 6 << 3, 0x30]), (2, Kind::Predicted, true, false));
    // The packet with its start was lost.
    assert_eq!(read(5, 2, &[0x90, 7, 7]), (3, Kind::Predicted, false, false));
    assert_eq!(
        read(6, 3, &[0x18, 1 << 3, 0, 0]),
        (4, Kind::Intra, true, true),
        "a header, and its frame later"
    );
    assert_eq!(read(7, 3, &[0x10, 6 << 3, 0x10]), (4, Kind::Intra, false, true));
    assert!(reader.read(&packet(8, 4, None, &[0x20, 9, 1])).is_err(), "an element beyond the end");
}

#[test]
fn vp9_refers_to_what_its_group_says() {
    let packets = (0..8).map(|at| vp9_of_group(at, 125 + at as u16));
    let read = tags(reader(Codec::Vp9, OTHER), packets);
    let needs: Vec<Vec<u32>> = read.iter().map(|tag| tag.needs.distances().collect()).collect();
    assert_eq!(needs, [&[][..], &[1], &[2], &[1, 2], &[4], &[1], &[2], &[1, 2]]);
    assert!(read.iter().all(|tag| tag.layers == 3));
    // Behind a frame at which one can switch up, the layers above open, each by its next frame.
    let opens = [(0, true), (2, false), (1, false), (2, true), (0, false), (2, false), (1, false), (2, true)];
    assert_eq!(layers(&read), opens);
}

#[test]
fn temporal_layers_that_show_later_shift_what_is_above_them() {
    // T0, T2 and T1 of two spatial layers, of which the first picture tells nothing but the spatial ones.
    let node = |picture: usize, spatial: u8, temporal: u8| Node {
        picture,
        spatial,
        temporal,
        key: picture == 0 && spatial == 0,
        inter: if picture == 0 { vec![] } else { vec![usize::from(spatial)] },
        below: (spatial > 0).then_some(2 * picture),
        ..Node::default()
    };
    let temporal = [0, 2, 1];
    let nodes: Vec<_> = (0..6).map(|at| node(at / 2, at as u8 % 2, temporal[at / 2])).collect();
    let mut reader = reader(Codec::Vp9, OTHER);
    let mut read = |at: usize| reader.read(&vp9_flexible(&nodes, at)).unwrap();
    let tags: Vec<_> = (0..6).map(&mut read).collect();
    let told = |tag: &Tag| (tag.layer, tag.layers, tag.grown, tag.adds);
    let expected = [(0, 1, 0, false), (1, 2, 0, true), (2, 4, 2, false), (3, 4, 0, true), (1, 4, 0, false)];
    assert_eq!(tags.iter().take(5).map(told).collect::<Vec<_>>(), expected);
    assert_eq!(told(&read(1)), (3, 4, 0, true), "late: by the number that its layer has now");
}

#[test]
fn vp8_without_layers_has_one_of_what_is_no_reference() {
    let frame = |key, discardable| Node { key, discardable, ..Node::default() };
    let nodes = [frame(true, false), frame(false, true), frame(false, false), frame(false, true)];
    let packets = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| vp8_packet(&Node { picture: at, ..node.clone() }, at, false));
    let read = tags(reader(Codec::Vp8, OTHER), packets);
    assert_eq!(layers(&read), [(0, true), (1, true), (0, false), (1, true)]);
    assert_eq!(read[2].needs, Needs::back(2));
    assert_eq!([0, 1, 3].map(|at| read[at].layers), [1, 2, 2]);
}

#[test]
fn packets_that_are_not_marked_are_data_until_one_is() {
    let mut reader = reader(Codec::Other { video: true }, ExtensionKind::FrameMarking);
    let mut read = |at: usize, picture: usize, extension: Option<&[u8]>| {
        let tag = reader.read(&packet(at, picture, extension, b"x")).unwrap();
        (tag.frame, tag.kind, tag.key, tag.first, tag.layer)
    };
    assert_eq!(read(0, 0, None), (1, Kind::Data, true, true, 0));
    assert_eq!(read(1, 1, Some(&[0xa0])), (2, Kind::Intra, true, true, 0));
    assert_eq!(read(2, 1, None), (2, Kind::Intra, true, false, 0), "as the others of its frame");
    assert_eq!(read(3, 2, Some(&[0x90])), (3, Kind::Bidirectional, false, true, 1));
    assert_eq!(read(4, 3, None), (4, Kind::Predicted, false, false, 0));
}
