//! A model of scalable encoders, which knows what refers to what, and what its packets say of it.

use outflow_media::format::{Codec, ExtensionKind, ExtensionMap, Track};

use crate::dependency::{Descriptor, Indication, Structure};
use crate::frame_marking::FrameMarking;
use crate::payload::{RtpReader, vp8, vp9};
use crate::{PlainHeader, dependency, frame_marking};

/// The identifier of the header extension in use.
pub(super) const EXTENSION: u8 = 5;

/// A frame, with all that it truly is.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) picture: usize,
    pub(super) spatial: u8,
    pub(super) temporal: u8,
    pub(super) key: bool,
    /// Frames of its spatial layer in other pictures that it refers to.
    pub(super) inter: Vec<usize>,
    /// The frame below that it refers to.
    pub(super) below: Option<usize>,
    pub(super) syncs: bool,
    pub(super) discardable: bool,
}

impl Node {
    pub(super) fn refers(&self) -> Vec<usize> {
        self.inter.iter().copied().chain(self.below).collect()
    }
}

/// What an encoder does now and then.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habits {
    /// Frames of higher temporal layers that refer to the base alone, behind which nothing refers to
    /// what was of these layers before.
    pub(super) syncs: bool,
    /// Frames to which none refers.
    pub(super) discards: bool,
    /// Behind frames of higher spatial layers that refer to no other picture, nothing of that layer refers
    /// to what was of it before.
    pub(super) resets: bool,
}

/// Pictures of `temporal` and `spatial` layers, decided on by a list of numbers.
pub(super) fn encode(temporal: u8, spatial: u8, habits: Habits, list: &[u8]) -> Vec<Node> {
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
pub(super) fn packet(at: usize, picture: usize, extension: Option<&[u8]>, payload: &[u8]) -> Vec<u8> {
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

pub(super) fn reader(codec: Codec, kind: ExtensionKind) -> RtpReader {
    let map = ExtensionMap { id: EXTENSION, kind, direction: String::new(), attributes: String::new() };
    RtpReader::new(0, &Track { codec, extensions: vec![map], ..Track::mp2t() })
}

/// The end of the coded video sequence that a frame is of.
pub(super) fn end(nodes: &[Node], at: usize) -> usize {
    (at + 1..nodes.len()).find(|later| nodes[*later].key).unwrap_or(nodes.len())
}

/// All that a frame needs, with itself.
pub(super) fn closure(nodes: &[Node], at: usize) -> Vec<usize> {
    let mut all = vec![at];
    let mut index = 0;
    while let Some(frame) = all.get(index).copied() {
        all.extend(nodes[frame].refers());
        index += 1;
    }
    all
}

/// What a frame is for the decode target of these layers.
pub(super) fn indication(nodes: &[Node], at: usize, (spatial, temporal): (u8, u8)) -> Indication {
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
pub(super) fn structure(temporal: u8, spatial: u8) -> Structure {
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

pub(super) fn av1_described(nodes: &[Node], structure: &Structure, at: usize) -> Vec<u8> {
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
pub(super) fn av1_units(node: &Node, at: usize, layers: (u8, u8)) -> Vec<u8> {
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

pub(super) fn vp9_flexible(nodes: &[Node], at: usize) -> Vec<u8> {
    let node = &nodes[at];
    let before = |n: usize| nodes[n].temporal > node.temporal && nodes[n].picture < node.picture;
    let later = &nodes[at + 1..end(nodes, at)];
    let higher = later.iter().filter(|l| l.temporal > node.temporal && l.picture > node.picture);
    let descriptor = vp9::Descriptor {
        picture: Some(vp9::PictureId { value: (0x7ff0 + node.picture as u16) & 0x7fff, is_long: true }),
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

pub(super) fn vp8_packet(node: &Node, at: usize, has_layers: bool) -> Vec<u8> {
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

pub(super) fn marked(node: &Node, at: usize) -> Vec<u8> {
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

/// Three temporal layers, as browsers send them: each frame of the two lower ones lets the ones above
/// begin.
pub(super) fn three_layers() -> Structure {
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

pub(super) fn av1_packet(structure: &Structure, template: u8, number: u16, attached: bool) -> Vec<u8> {
    let template = (structure.first_template + template) & 63;
    let frame = structure.template(template).expect("there is one").clone();
    let attached = attached.then(|| Box::new(structure.clone()));
    let (first, last, active_targets) = (true, true, None);
    let descriptor = Descriptor { first, last, template, number, structure: attached, active_targets, frame };
    let mut value = Vec::new();
    descriptor.emit(structure, &mut value).expect("a template");
    packet(number.into(), number.into(), Some(&value), &[0x10, 6 << 3, 0x30])
}

/// Not flexible, with a group of four pictures of three temporal layers.
pub(super) fn vp9_of_group(at: usize, number: u16) -> Vec<u8> {
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
