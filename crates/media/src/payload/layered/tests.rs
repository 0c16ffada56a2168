//! Layers and needs against a model of scalable encoders, which knows what refers to what.

use proptest::prelude::*;

use super::*;
use crate::format::{Codec, ExtensionKind, ExtensionMap, Track};
use crate::payload::RtpReader;
use crate::payload::{vp8, vp9};
use crate::rtp::PlainHeader;
use crate::rtp::dependency::{self, Descriptor, Indication, Structure};
use crate::rtp::frame_marking::{self, FrameMarking};
use crate::testing::{Case, assert_that_layers_are_a_chain, assert_that_levels_can_change};
use crate::{Kind, Tag};

/// The identifier of the header extension in use.
const EXTENSION: u8 = 5;

/// A frame, with all that it truly is.
#[derive(Debug, Clone, Default)]
struct Node {
    picture: usize,
    spatial: u8,
    temporal: u8,
    key: bool,
    /// Frames of its spatial layer in other pictures that it refers to.
    inter: Vec<usize>,
    /// The frame below that it refers to.
    below: Option<usize>,
    syncs: bool,
    discardable: bool,
}

impl Node {
    fn refers(&self) -> Vec<usize> {
        self.inter.iter().copied().chain(self.below).collect()
    }
}

/// What an encoder does now and then.
#[derive(Debug, Clone, Copy, Default)]
struct Habits {
    /// Frames of higher temporal layers that refer to the base alone, behind which nothing refers to
    /// what was of these layers before.
    syncs: bool,
    /// Frames to which none refers.
    discards: bool,
    /// Behind frames of higher spatial layers that refer to no other picture, nothing of that layer refers
    /// to what was of it before.
    resets: bool,
}

/// Pictures of so many temporal and spatial layers, decided on by a list of numbers.
fn encode(temporal: u8, spatial: u8, habits: Habits, list: &[u8]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    // Those that may be referred to, by spatial layer.
    let mut known: Vec<Vec<usize>> = vec![Vec::new(); usize::from(spatial)];
    for (picture, choice) in list.iter().enumerate() {
        let choice = usize::from(*choice);
        let key = picture == 0 || choice % 16 == 15;
        let tid = if key { 0 } else { (choice / 3) as u8 % temporal };
        if key {
            known.iter_mut().for_each(Vec::clear);
        }
        let mut below = None;
        for sid in 0..spatial {
            let own = &mut known[usize::from(sid)];
            let syncs = habits.syncs && tid > 0 && choice % 5 == 0;
            let may = |at: &&usize| nodes[**at].temporal <= if syncs { 0 } else { tid };
            let near: Vec<usize> = own.iter().rev().filter(may).copied().take(3).collect();
            let skipped = (choice / 5 % 2).min(near.len().saturating_sub(1));
            let mut inter: Vec<usize> = near.iter().copied().skip(skipped).take(1 + choice % 2).collect();
            if syncs {
                inter = near.first().copied().into_iter().collect();
            }
            let alone = sid > 0 && (choice + usize::from(sid)) % 4 == 0 || near.is_empty();
            if alone {
                inter.clear();
            }
            if syncs && !alone {
                own.retain(|at| nodes[*at].temporal < tid);
            }
            if alone && sid > 0 && tid == 0 && habits.resets {
                own.clear();
            }
            let needs_below = below.filter(|_| alone || choice / 7 % 2 == 0);
            let discardable = habits.discards && !key && choice % 3 == 0 && sid + 1 == spatial;
            let node = Node {
                picture,
                spatial: sid,
                temporal: tid,
                key: key && sid == 0,
                inter,
                below: needs_below,
                syncs: syncs && !alone,
                discardable,
            };
            below = Some(nodes.len());
            if !discardable {
                own.push(nodes.len());
            }
            nodes.push(node);
        }
    }
    nodes
}

/// One packet: a header, an element of a header extension perhaps, and a payload.
fn packet(at: usize, picture: usize, extension: Option<&[u8]>, payload: &[u8]) -> Vec<u8> {
    let (sequence, timestamp) = (at as u16, 3000 * picture as u32);
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 1 };
    let mut packet = header.emit().to_vec();
    if let Some(value) = extension {
        let mut elements = vec![EXTENSION, value.len() as u8];
        elements.extend(value);
        elements.resize(elements.len().next_multiple_of(4), 0);
        packet[0] |= 0x10;
        packet.extend([0x10, 0x00, 0x00, (elements.len() / 4) as u8]);
        packet.extend(elements);
    }
    packet.extend(payload);
    packet
}

fn reader(codec: Codec, kind: ExtensionKind) -> RtpReader {
    let map = ExtensionMap { id: EXTENSION, kind, direction: String::new(), attributes: String::new() };
    RtpReader::new(0, &Track { codec, extensions: vec![map], ..Track::mp2t() })
}

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

/// The end of the coded video sequence that a frame is of.
fn end(nodes: &[Node], at: usize) -> usize {
    (at + 1..nodes.len()).find(|later| nodes[*later].key).unwrap_or(nodes.len())
}

/// All that a frame needs, with itself.
fn closure(nodes: &[Node], at: usize) -> Vec<usize> {
    let mut all = vec![at];
    let mut index = 0;
    while let Some(frame) = all.get(index).copied() {
        all.extend(nodes[frame].refers());
        index += 1;
    }
    all
}

/// What a frame is for the decode target of these layers.
fn indication(nodes: &[Node], at: usize, (spatial, temporal): (u8, u8)) -> Indication {
    let is_in = |node: &Node| node.spatial <= spatial && node.temporal <= temporal;
    if !is_in(&nodes[at]) {
        return Indication::NotPresent;
    }
    let known = closure(nodes, at);
    let mut later = (at + 1..end(nodes, at)).filter(|later| is_in(&nodes[*later]));
    if !later.clone().any(|later| nodes[later].refers().contains(&at)) {
        return Indication::Discardable;
    }
    let can_switch = later.all(|l| nodes[l].refers().iter().all(|r| *r > at || known.contains(r)));
    if can_switch { Indication::Switch } else { Indication::Required }
}

/// Decode targets of all temporal and spatial layers, and one template for each layer.
fn structure(temporal: u8, spatial: u8) -> Structure {
    let layers: Vec<_> = (0..spatial).flat_map(|s| (0..temporal).map(move |t| (s, t))).collect();
    let template = |of: &(u8, u8)| dependency::Frame {
        spatial: of.0,
        temporal: of.1,
        indications: layers
            .iter()
            .map(|target| match of.0 <= target.0 && of.1 <= target.1 {
                true => Indication::Required,
                false => Indication::NotPresent,
            })
            .collect(),
        ..dependency::Frame::default()
    };
    Structure {
        first_template: 60,
        targets: temporal * spatial,
        protected_by: Default::default(),
        chains: 0,
        templates: layers.iter().map(template).collect(),
        resolutions: Default::default(),
    }
}

fn av1_described(nodes: &[Node], structure: &Structure, at: usize) -> Vec<u8> {
    let (spatial, temporal) = structure.layers();
    let node = &nodes[at];
    let targets = (0..spatial).flat_map(|s| (0..temporal).map(move |t| (s, t)));
    let frame = dependency::Frame {
        spatial: node.spatial,
        temporal: node.temporal,
        indications: targets.map(|target| indication(nodes, at, target)).collect(),
        references: node.refers().iter().map(|refers| (at - refers) as u16).collect(),
        ..dependency::Frame::default()
    };
    let descriptor = Descriptor {
        first: true,
        last: true,
        template: (structure.first_template + node.spatial * temporal + node.temporal) & 63,
        number: (at as u16).wrapping_add(65_530),
        structure: node.key.then(|| Box::new(structure.clone())),
        active_targets: None,
        frame,
    };
    let mut value = Vec::new();
    descriptor.emit(structure, &mut value).expect("a template");
    // A frame, all of it.
    packet(at, node.picture, Some(&value), &[0x10, 6 << 3, 0x30])
}

/// Without the dependency descriptor: units with extensions, and a sequence header where all begins.
fn av1_units(node: &Node, at: usize, layers: (u8, u8)) -> Vec<u8> {
    let mut payload = vec![if node.key { 0x08 } else { 0 }];
    if node.key {
        let (temporal, spatial) = (layers.0 - 1, layers.1 - 1);
        // Profile, flags and one operating point, of which all layers are.
        payload.extend([4, 1 << 3, 0, (2 << spatial) - 1, (2 << temporal) - 1]);
    }
    let kind = if node.key || (node.spatial > 0 && node.inter.is_empty()) { 0x10 } else { 0x30 };
    payload.extend([3, 6 << 3 | 4, node.temporal << 5 | node.spatial << 3, kind]);
    packet(at, node.picture, None, &payload)
}

fn vp9_flexible(nodes: &[Node], at: usize) -> Vec<u8> {
    let node = &nodes[at];
    let before = |n: usize| nodes[n].temporal > node.temporal && nodes[n].picture < node.picture;
    let later = &nodes[at + 1..end(nodes, at)];
    let higher = later.iter().filter(|l| l.temporal > node.temporal && l.picture > node.picture);
    let descriptor = vp9::Descriptor {
        picture: Some(vp9::PictureId { value: 0x7ff0 + node.picture as u16 & 0x7fff, is_long: true }),
        is_inter: !node.inter.is_empty(),
        layer: Some(vp9::Layer {
            temporal: node.temporal,
            switches_up: higher.flat_map(|l| l.inter.iter().copied()).all(|n| !before(n)),
            spatial: node.spatial,
            needs_below: node.below.is_some(),
        }),
        is_flexible: true,
        references: node.inter.iter().map(|n| (node.picture - nodes[*n].picture) as u8).collect(),
        first: true,
        last: true,
        ..vp9::Descriptor::default()
    };
    let mut payload = Vec::new();
    descriptor.emit(&mut payload);
    payload.push(if node.key { 0x82 } else { 0x86 });
    packet(at, node.picture, None, &payload)
}

fn vp8_packet(node: &Node, at: usize, has_layers: bool) -> Vec<u8> {
    let descriptor = vp8::Descriptor {
        is_no_reference: node.discardable,
        starts_partition: true,
        temporal: has_layers.then_some((node.temporal, node.syncs)),
        ..vp8::Descriptor::default()
    };
    let mut payload = Vec::new();
    descriptor.emit(&mut payload);
    payload.push(u8::from(!node.key));
    packet(at, node.picture, None, &payload)
}

fn marked(node: &Node, at: usize) -> Vec<u8> {
    let layer = frame_marking::Layer {
        syncs_with_base: node.syncs,
        temporal: node.temporal,
        id: node.spatial,
        base_picture: None,
    };
    let marking = FrameMarking {
        first: true,
        last: true,
        is_independent: node.key || (node.spatial > 0 && node.temporal == 0 && node.inter.is_empty()),
        is_discardable: node.discardable,
        layer: Some(layer),
    };
    let mut value = Vec::new();
    marking.emit(&mut value);
    packet(at, node.picture, Some(&value), b"secret")
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

/// Three temporal layers, as browsers send them: each frame of the two lower ones lets the ones above
/// begin.
fn three_layers() -> Structure {
    let template = |temporal: u8, targets: [Indication; 3], references: &[u16]| dependency::Frame {
        temporal,
        indications: targets.into_iter().collect(),
        references: references.iter().copied().collect(),
        ..dependency::Frame::default()
    };
    let (no, drop, switch) = (Indication::NotPresent, Indication::Discardable, Indication::Switch);
    Structure {
        templates: vec![
            template(0, [switch; 3], &[]),
            template(0, [switch; 3], &[4]),
            template(1, [no, drop, switch], &[2]),
            template(2, [no, no, drop], &[1]),
        ],
        ..structure(3, 1)
    }
}

fn av1_packet(structure: &Structure, template: u8, number: u16, attached: bool) -> Vec<u8> {
    let template = (structure.first_template + template) & 63;
    let frame = structure.template(template).expect("there is one").clone();
    let attached = attached.then(|| Box::new(structure.clone()));
    let (first, last, active_targets) = (true, true, None);
    let descriptor = Descriptor { first, last, template, number, structure: attached, active_targets, frame };
    let mut value = Vec::new();
    descriptor.emit(structure, &mut value).expect("a template");
    packet(number.into(), number.into(), Some(&value), &[0x10, 6 << 3, 0x30])
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

/// Not flexible, with a group of four pictures of three temporal layers.
fn vp9_of_group(at: usize, number: u16) -> Vec<u8> {
    let picture = |temporal, switches_up, references: &[u8]| vp9::GroupPicture {
        temporal,
        switches_up,
        references: references.iter().copied().collect(),
    };
    let group = vec![
        picture(0, false, &[4]),
        picture(2, true, &[1]),
        picture(1, true, &[2]),
        picture(2, true, &[1, 2]),
    ];
    let place = &group[at % 4];
    let descriptor = vp9::Descriptor {
        picture: Some(vp9::PictureId { value: number & 0x7f, is_long: false }),
        is_inter: at > 0,
        layer: Some(vp9::Layer {
            temporal: place.temporal,
            switches_up: place.switches_up,
            spatial: 0,
            needs_below: false,
        }),
        first: true,
        last: true,
        structure: (at == 0).then(|| vp9::Structure {
            spatial: 1,
            resolutions: Default::default(),
            group: Some(group.clone()),
        }),
        ..vp9::Descriptor::default()
    };
    let mut payload = Vec::new();
    descriptor.emit(&mut payload);
    payload.push(if at == 0 { 0x82 } else { 0x86 });
    packet(at, at, None, &payload)
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
