use std::net::UdpSocket;

use outflow_packet::Level;

use super::*;

const CUTS: u16 = 5;

/// By how much sequence numbers are lower for targets that take layers up to this one.
const fn sequence_offset(max_layer: u16) -> u16 {
    9 + 7_000 * max_layer
}

/// Targets that take all numbers of layers, each with numbers of its own.
fn layered_targets(scene: &Scene, count: u32) -> Vec<Target> {
    let max_layers =
        (0..CUTS).map(|max_layer| Level::new((CUTS - max_layer) as u8).expect("a level").of(CUTS as u8));
    let parts = max_layers
        .cycle()
        .zip(0_u16..)
        .map(|(max_layer, index)| Part { max_layer, apart: index.wrapping_mul(37) % 411 });
    targets(scene, count, Audience::Mixed)
        .into_iter()
        .zip(parts)
        .map(|(target, part)| Target { part, ..target })
        .collect()
}

#[test]
fn targets_get_the_layers_that_they_take_and_numbers_without_gaps() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.with_kernel(|kernel| {
        let targets = layered_targets(&scene, XDP_TARGETS);
        let mut group = add(kernel, &targets);
        for bytes in [12, 13, 700, 1400] {
            for way in [SendPath::Tc { segment: bytes }, SendPath::Xdp] {
                if way.works(kernel) {
                    (0..CUTS as u8)
                        .for_each(|layer| check(&scene, kernel, (&mut group, &targets), layer, bytes, way));
                }
            }
        }
    });
}

/// Sends a packet of this layer, and requires that the targets that take the layer get it, and no others.
fn check(
    scene: &Scene,
    kernel: &mut Kernel,
    (group, targets): (&mut Group, &[Target]),
    layer: u8,
    bytes: usize,
    way: SendPath,
) {
    let tap = Tap::open(scene);
    let payload = numbered_payload(bytes);
    lower_all(kernel, targets);
    // Targets that take this layer and the next, but none above, get a marker.
    let ends = Some(layer + 1);
    let (header, body) = payload.split_first_chunk().expect("an RTP header");
    let layered = Some(Layered::new(layer, ends, header));
    let pieces = [IoSlice::new(header), IoSlice::new(body)];
    let sent = match way {
        SendPath::Tc { segment } => kernel.send_tc(group, ALL, &pieces, segment, layered),
        SendPath::Xdp => kernel.send_xdp(group, ALL, &pieces, layered),
    };
    assert_eq!(sent.expect("sent"), Sent::default(), "{way:?}");
    let mut takes: Vec<_> = targets.iter().filter(|target| target.part.max_layer.takes(layer)).collect();
    let mut got = tap.read(takes.len());
    got.sort_by_key(|frame| frame.to);
    takes.sort_by_key(|target| addresses(target).1);
    assert_eq!(got.len(), takes.len(), "{way:?}, layer {layer}");
    for (target, frame) in takes.iter().zip(got) {
        assert_eq!(frame.to, addresses(target).1);
        assert!(
            frame.payload == expected(&payload, target, ends),
            "{way:?}, layer {layer}: other bytes to {}",
            frame.to
        );
    }
    assert!(tap.read(1).is_empty(), "and none other");
    kernel.take_failures(group, |index, failure| panic!("target {index}: {failure:?}"));
}

/// The kernel makes a frame of the memory of one that has left, with what was written into that.
#[test]
fn frames_that_are_used_again_have_right_checksums() {
    let Some(scene) = Scene::new() else { return };
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.with_kernel(|kernel| {
        if !SendPath::Xdp.works(kernel) {
            return;
        }
        let targets = layered_targets(&scene, XDP_TARGETS);
        let mut group = add(kernel, &targets);
        lower_all(kernel, &targets);
        // No other target has a socket: the others' frames are let go as they come.
        let last = targets.last().expect("there are some");
        let socket = scene.in_far(|| UdpSocket::bind(addresses(last).1)).expect("an address of its own");
        socket.set_read_timeout(Some(core::time::Duration::from_secs(5))).expect("a socket");
        let payload = numbered_payload(700);
        let header = payload.first_chunk().expect("an RTP header");
        let layered = Some(Layered::new(0, Some(2), header));
        kernel.send_xdp(&mut group, ALL, &[IoSlice::new(&payload)], layered).expect("sent");
        let mut got = [0; 2048];
        let length = socket.recv(&mut got).expect("a packet that the system accepts");
        assert!(got[..length] == expected(&payload, last, Some(2)));
    });
}

/// Between targets that take a layer may be more that do not than one run of the program looks at.
#[test]
fn those_that_do_not_take_a_layer_are_passed_over() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.with_kernel(|kernel| {
        let [base, best] = [2, 1].map(|level| Level::new(level).expect("a level").of(2));
        let takes = [0, 1, 400, 599];
        let mut targets = targets(&scene, 900, Audience::Mixed);
        for (target, place) in targets.iter_mut().zip(0..) {
            target.part = Part { max_layer: if takes.contains(&place) { best } else { base }, apart: 0 };
        }
        let mut group = add(kernel, &targets);
        let (payload, tap) = (numbered_payload(100), Tap::open(&scene));
        let header = payload.first_chunk().expect("an RTP header");
        let (pieces, layered) = ([IoSlice::new(&payload)], Some(Layered::new(1, None, header)));
        for way in [SendPath::Tc { segment: 100 }, SendPath::Xdp] {
            if !way.works(kernel) {
                continue;
            }
            let sent = match way {
                SendPath::Tc { segment } => kernel.send_tc(&mut group, ALL, &pieces, segment, layered),
                SendPath::Xdp => kernel.send_xdp(&mut group, ALL, &pieces, layered),
            };
            assert_eq!(sent.expect("sent"), Sent::default(), "{way:?}");
            let got: Vec<_> = tap.read(takes.len()).iter().map(|frame| frame.to).collect();
            assert_eq!(got, takes.map(|place| addresses(&targets[place]).1), "{way:?}");
            assert!(tap.read(1).is_empty(), "{way:?}: and none other");
        }
    });
}

/// An RTP header begins so without a marker, and with one.
const HEAD: [u8; 2] = [0x80, 96];
const MARKED: [u8; 2] = [0x80, 96 | 0x80];

/// What packets are numbered as they come: numbers wrap between some targets and others.
const SEQUENCE: u16 = 20_000;

fn numbered_payload(bytes: usize) -> Vec<u8> {
    let mut payload = payload(bytes);
    payload[..2].copy_from_slice(&HEAD);
    payload[2..4].copy_from_slice(&SEQUENCE.to_be_bytes());
    payload
}

fn lower_all(kernel: &mut Kernel, targets: &[Target]) {
    for target in targets {
        kernel.set_sequence_offset(target.part.max_layer, sequence_offset(numbered(target)));
    }
}

/// What a target gets of such a payload.
fn expected(payload: &[u8], target: &Target, ends: Option<u8>) -> Vec<u8> {
    let lower = sequence_offset(numbered(target)).wrapping_add(target.part.apart);
    let head = if target.part.max_layer.is_up_to(ends) { MARKED } else { HEAD };
    [&head[..], &SEQUENCE.wrapping_sub(lower).to_be_bytes(), &payload[4..]].concat()
}

/// The number of a target's maximum layer; that of all layers is the last.
fn numbered(target: &Target) -> u16 {
    u16::from(target.part.max_layer.layer()).min(CUTS - 1)
}

#[test]
fn failures_are_of_those_that_were_sent_something() {
    let Some(scene) = Scene::new() else { return };
    scene.with_kernel(|kernel| {
        let targets = layered_targets(&scene, 40);
        let mut group = add(kernel, &targets);
        scene.near(&["ip", "link", "set", "near", "down"]);
        let payload = payload(500);
        let pieces = [IoSlice::new(&payload)];
        let layered = Some(Layered::new(3, None, &[0x80; 12]));
        for way in [SendPath::Tc { segment: 500 }, SendPath::Xdp] {
            if !way.works(kernel) {
                continue;
            }
            let sent = match way {
                SendPath::Tc { segment } => kernel.send_tc(&mut group, ALL, &pieces, segment, layered),
                SendPath::Xdp => kernel.send_xdp(&mut group, ALL, &pieces, layered),
            };
            let takes: Vec<_> = (0..40).filter(|at| targets[*at].part.max_layer.takes(3)).collect();
            assert_eq!(sent.expect("to none, but tried").failed, takes.len() as u64, "{way:?}");
            let mut failed = Vec::new();
            kernel.take_failures(&group, |place, failure| failed.push((place, failure.packets)));
            assert_eq!(failed, takes.iter().map(|place| (*place, 1)).collect::<Vec<_>>(), "{way:?}");
        }
    });
}
