//! Between two network namespaces, where the system lets us.

use core::time::Duration;
use std::io::IoSlice;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

mod layered;
mod scene;

use scene::{Frames as Tap, Scene};

const TARGETS: u32 = 1000;
/// A veth's queue takes this many XDP frames while it is not emptied (VETH_RING_SIZE, 256).
const XDP_TARGETS: u32 = 200;
/// Devices drop what comes while their core has no time to empty the queue.
const ATTEMPTS: usize = 5;
const ALL: Range<usize> = 0..usize::MAX;

fn add(kernel: &mut Kernel, targets: &[Target]) -> Group {
    let mut group = kernel.add_group(targets.len()).expect("room");
    for (place, target) in targets.iter().enumerate() {
        kernel.set_target(&mut group, place, Some(target));
    }
    group
}

/// By which family targets are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    V4,
    V6,
    /// One after two, so that neighbours are alike and different.
    Mixed,
}

impl Audience {
    fn ends(self, i: u32) -> Ends {
        let port = 5000 + (i % 7) as u16;
        if self == Audience::V6 || (self == Audience::Mixed && i % 3 == 2) {
            let at = |host: u128, port| SocketAddrV6::new(Ipv6Addr::from_bits(host), port, 0, 0);
            let (from, to) = (0xfd76_u128 << 112 | 1, (0xfd77_u128 << 112) + u128::from(i));
            return Ends::V6 { from: at(from, 5004), to: at(to, port) };
        }
        let at = |host: u32, port| SocketAddrV4::new(Ipv4Addr::from_bits(host), port);
        Ends::V4 { from: at(0x0a4c_0001, 5004), to: at(0x0a4d_0000 + i, port) }
    }

    /// Bytes of payload that fit the devices' MTU.
    fn payload_max(self) -> usize {
        let largest = if self == Audience::Mixed { Audience::V6 } else { self };
        1500 - largest.ends(0).header_bytes()
    }
}

/// The source and the destination.
fn addresses(target: &Target) -> (SocketAddr, SocketAddr) {
    match target.ends {
        Ends::V4 { from, to } => (from.into(), to.into()),
        Ends::V6 { from, to } => (from.into(), to.into()),
    }
}

/// `count` targets behind the other end's MAC, each with an address of its own.
fn targets(scene: &Scene, count: u32, audience: Audience) -> Vec<Target> {
    let target = |i: u32| Target {
        ifindex: scene.ifindex,
        source_mac: scene.near_mac,
        target_mac: scene.far_mac,
        ends: audience.ends(i),
        ttl: 1 + (i % 200) as u8,
        tos: 4 * (i % 64) as u8,
        part: Part::WHOLE,
    };
    (0..count).map(target).collect()
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// The way that a test sends by.
#[derive(Debug, Clone, Copy)]
enum SendPath {
    Tc { segment: usize },
    Xdp,
}

impl SendPath {
    /// To all of the group.
    fn send(self, kernel: &mut Kernel, group: &mut Group, payload: &[u8]) -> Sent {
        // In two pieces, as header and body are.
        let (header, body) = payload.split_at(payload.len().min(12));
        let pieces = [IoSlice::new(header), IoSlice::new(body)];
        match self {
            SendPath::Tc { segment } => kernel.send_tc(group, ALL, &pieces, segment, None),
            SendPath::Xdp => kernel.send_xdp(group, ALL, &pieces, None),
        }
        .expect("something can be sent")
    }

    fn works(self, kernel: &Kernel) -> bool {
        match (self, kernel.xdp_refused()) {
            (SendPath::Xdp, Some(error)) => {
                outflow_skip::skipped("XDP frames", error);
                false
            }
            _ => true,
        }
    }
}

/// Sends `bytes` to many targets, and requires each to get them, packet by packet, in frames without
/// a flaw.
fn deliver(scene: &Scene, kernel: &mut Kernel, bytes: usize, way: SendPath, audience: Audience) {
    if !way.works(kernel) {
        return;
    }
    let tap = Tap::open(scene);
    let count = if matches!(way, SendPath::Xdp) { XDP_TARGETS } else { TARGETS };
    let (mut targets, payload) = (targets(scene, count, audience), payload(bytes));
    let segment = if let SendPath::Tc { segment } = way { segment } else { bytes.max(1) };
    let packets: Vec<&[u8]> = if bytes == 0 { vec![&[]] } else { payload.chunks(segment).collect() };
    let mut group = add(kernel, &targets);
    let mut got = Vec::new();
    for _ in 0..ATTEMPTS {
        let before = scene.dropped();
        assert_eq!(way.send(kernel, &mut group, &payload), Sent::default(), "{way:?}");
        got = tap.read(targets.len() * packets.len());
        let lost = scene.dropped() - before;
        assert_eq!(got.len() + lost, targets.len() * packets.len(), "{way:?}, {bytes} bytes");
        if lost == 0 {
            break;
        }
        eprintln!("{way:?}, {bytes} bytes: the devices dropped {lost} packets; once more");
    }
    got.sort_by_key(|frame| frame.to); // Stable: packets of a target stay in order.
    targets.sort_by_key(|target| addresses(target).1);
    assert_eq!(got.len(), targets.len() * packets.len(), "{way:?}, {audience:?}, {bytes} bytes");
    for (target, frames) in targets.iter().zip(got.chunks(packets.len())) {
        for (frame, packet) in frames.iter().zip(&packets) {
            assert_eq!((frame.target_mac, frame.source_mac), (target.target_mac, target.source_mac));
            assert_eq!((frame.from, frame.to), addresses(target));
            assert_eq!((frame.ttl, frame.tos), (target.ttl, target.tos));
            assert!(frame.payload == *packet, "{way:?}: other bytes to {}", frame.to);
        }
    }
    kernel.take_failures(&group, |index, failure| panic!("target {index}: {failure:?}"));
    kernel.remove_group(group);
}

#[test]
fn every_target_gets_every_packet_byte_for_byte() {
    let Some(scene) = Scene::new() else { return };
    // The near end leaves nothing to the far end: segments and checksums are made here, as for a
    // device that can do neither.
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.with_kernel(|kernel| {
        for audience in [Audience::V4, Audience::V6, Audience::Mixed] {
            let largest = audience.payload_max();
            for segment in [1, 2, 188, 1315, 1400, largest] {
                deliver(&scene, kernel, segment, SendPath::Tc { segment }, audience);
            }
            for (bytes, segment) in [(7000, 1400), (6001, 1400), (1401, 1400), (1900, 188), (6661, 1315)] {
                deliver(&scene, kernel, bytes, SendPath::Tc { segment }, audience);
            }
            for bytes in [0, 1, 188, 1315, 1400, largest] {
                deliver(&scene, kernel, bytes, SendPath::Xdp, audience);
            }
        }
    });
}

#[test]
fn only_the_places_that_are_asked_for_and_not_blank_are_served() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.with_kernel(|kernel| {
        let tap = Tap::open(&scene);
        let targets = targets(&scene, 300, Audience::Mixed);
        let mut group = add(kernel, &targets);
        (0..300).step_by(3).for_each(|place| kernel.set_target(&mut group, place, None));
        let expected: Vec<_> = (10..290).filter(|i| i % 3 != 0).map(|i| addresses(&targets[i]).1).collect();
        let payload = payload(1400);
        let pieces = [IoSlice::new(&payload)];
        for way in [SendPath::Tc { segment: 1400 }, SendPath::Xdp] {
            if !way.works(kernel) {
                continue;
            }
            let sent = match way {
                SendPath::Tc { segment } => kernel.send_tc(&mut group, 10..290, &pieces, segment, None),
                SendPath::Xdp => kernel.send_xdp(&mut group, 10..290, &pieces, None),
            };
            assert_eq!(sent.expect("sent"), Sent::default());
            let got: Vec<_> = tap.read(expected.len()).iter().map(|frame| frame.to).collect();
            assert_eq!(got, expected, "{way:?}");
        }
        assert!(tap.read(1).is_empty(), "and none other");
    });
}

#[test]
fn a_run_too_long_for_one_segmented_packet_goes_in_several() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.with_kernel(|kernel| {
        let tap = Tap::open(&scene);
        let mut group = add(kernel, &targets(&scene, 3, Audience::Mixed));
        let payload = payload(200 * 1300 + 1);
        let sent = kernel.send_tc(&mut group, ALL, &[IoSlice::new(&payload)], 1300, None).expect("sent");
        assert_eq!(sent.failed, 0);
        let mut got = tap.read(3 * 201);
        got.sort_by_key(|frame| frame.to);
        assert_eq!(got.len(), 3 * 201);
        for frames in got.chunks(201) {
            let whole: Vec<u8> = frames.iter().flat_map(|frame| frame.payload.iter().copied()).collect();
            assert!(whole == payload, "all of it, in order");
        }
    });
}

#[test]
fn sockets_take_the_packets_of_a_device_that_finishes_them_itself() {
    let Some(scene) = Scene::new() else { return };
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.take_ipv6();
    for (audience, any) in [(Audience::V4, "0.0.0.0:5000"), (Audience::V6, "[::]:5000")] {
        let socket = scene.in_far(|| {
            let socket = UdpSocket::bind(any).expect("bind");
            outflow_socket::set_int(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 32 << 20).expect("root");
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("timeout");
            socket
        });
        scene.with_kernel(|kernel| sockets_take_all(&scene, kernel, &socket, audience));
    }
}

fn sockets_take_all(scene: &Scene, kernel: &mut Kernel, socket: &UdpSocket, audience: Audience) {
    let mut targets = targets(scene, 300, audience);
    targets.iter_mut().for_each(|target| match &mut target.ends {
        Ends::V4 { to, .. } => to.set_port(5000),
        Ends::V6 { to, .. } => to.set_port(5000),
    });
    let mut group = add(kernel, &targets);
    for (bytes, way) in [
        (1400, SendPath::Tc { segment: 1400 }),
        (6543, SendPath::Tc { segment: 1400 }),
        (1400, SendPath::Xdp),
    ] {
        if !way.works(kernel) {
            continue;
        }
        let payload = payload(bytes);
        assert_eq!(way.send(kernel, &mut group, &payload), Sent::default());
        let packets: Vec<_> = payload.chunks(1400).collect();
        let mut buffer = [0; 2000];
        for i in 0..targets.len() * packets.len() {
            let (length, from) = socket.recv_from(&mut buffer).expect("none lost");
            assert_eq!(from, addresses(&targets[0]).0);
            assert!(buffer[..length] == *packets[i % packets.len()], "{way:?}, {audience:?}: packet {i}");
        }
    }
}

#[test]
fn targets_whose_device_is_down_or_gone_fail_and_the_others_get_theirs() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    scene.near(&["ip", "link", "add", "idle0", "type", "veth", "peer", "name", "idle1"]);
    let down = scene.index_of("idle0");
    scene.with_kernel(|kernel| {
        for way in [SendPath::Tc { segment: 500 }, SendPath::Xdp] {
            if !way.works(kernel) {
                continue;
            }
            let bytes = if matches!(way, SendPath::Xdp) { 1000 } else { 2000 };
            let packets = if matches!(way, SendPath::Xdp) { 1 } else { 4 };
            let tap = Tap::open(&scene);
            let mut targets = targets(&scene, 90, Audience::Mixed);
            targets[30..60].iter_mut().for_each(|target| target.ifindex = down);
            targets[60].ifindex = 0x00ff_ffff;
            let mut group = add(kernel, &targets);
            let sent = way.send(kernel, &mut group, &payload(bytes));
            assert_eq!(sent.failed, 31 * packets, "{way:?}");
            assert_eq!(tap.read(59 * packets as usize).len(), 59 * packets as usize);
            let mut failures = Vec::new();
            kernel.take_failures(&group, |index, failure| failures.push((index, failure)));
            let expected = (30..61).map(|index| {
                let reason = if index < 60 { Reason::Down } else { Reason::Gone };
                (index, Failure { packets, reason })
            });
            assert_eq!(failures, expected.collect::<Vec<_>>(), "{way:?}");
            kernel.take_failures(&group, |index, failure| panic!("twice: {index} {failure:?}"));
            kernel.remove_group(group);
        }
    });
}

#[test]
fn a_device_that_takes_no_frames_fails_all_of_them() {
    let Some(scene) = Scene::new() else { return };
    scene.far(&["ethtool", "-K", "far", "gro", "off"]);
    scene.with_kernel(|kernel| {
        if !SendPath::Xdp.works(kernel) {
            return;
        }
        let mut group = add(kernel, &targets(&scene, 100, Audience::Mixed));
        assert_eq!(SendPath::Xdp.send(kernel, &mut group, &payload(1400)).failed, 100);
        let mut failed = 0;
        kernel.take_failures(&group, |_, failure| {
            assert_eq!(failure, Failure { packets: 1, reason: Reason::Unsupported });
            failed += 1;
        });
        assert_eq!(failed, 100);
    });
}

#[test]
fn frames_that_a_full_ring_does_not_take_are_counted_for_their_targets() {
    let Some(scene) = Scene::new() else { return };
    scene.with_kernel(|kernel| {
        if !SendPath::Xdp.works(kernel) {
            return;
        }
        // A TAP device whose packets are not read: its ring has 1000 places (its `qlen`).
        let device = Anchor::open().expect("the second one");
        let mut targets = targets(&scene, 1100, Audience::Mixed);
        targets.iter_mut().for_each(|target| target.ifindex = device.ifindex);
        let mut group = add(kernel, &targets);
        assert_eq!(SendPath::Xdp.send(kernel, &mut group, &payload(1400)).failed, 100);
        let mut failures = Vec::new();
        kernel.take_failures(&group, |place, failure| failures.push((place, failure)));
        let failure = Failure { packets: 1, reason: Reason::Full };
        assert_eq!(failures, (1000..1100).map(|place| (place, failure)).collect::<Vec<_>>());
    });
}

#[test]
fn what_a_full_queue_does_not_take_is_counted_for_its_targets() {
    let Some(scene) = Scene::new() else { return };
    // As good as closed.
    let queue = ["tc", "qdisc", "add", "dev", "near", "root", "tbf", "rate", "8bit", "burst", "1600"];
    if !scene.try_near(&[&queue[..], &["limit", "8000"]].concat()) {
        outflow_skip::skipped("a full queue", "the kernel has no qdisc tbf");
        return;
    }
    scene.with_kernel(|kernel| {
        let mut group = add(kernel, &targets(&scene, 100, Audience::Mixed));
        let sent = SendPath::Tc { segment: 1400 }.send(kernel, &mut group, &payload(1400));
        assert!(sent.failed > 90, "{sent:?}");
        let mut counted = 0;
        kernel.take_failures(&group, |_, failure| {
            assert_eq!(failure.reason, Reason::Full);
            counted += failure.packets;
        });
        assert_eq!(counted, sent.failed);
    });
}

#[test]
fn the_anchor_lets_nothing_else_through_and_goes_with_its_owner() {
    let Some(scene) = Scene::new() else { return };
    let name = scene.with_kernel(|kernel| {
        let tap = Tap::open(&scene);
        let group = add(kernel, &targets(&scene, 10, Audience::V4));
        // As another program would send: without our mark.
        let stranger = Injector::open(&kernel._anchor).expect("root");
        stranger.unmark();
        let order = Kernel::order(&group.entries(), (1, 100), None);
        kernel.control.set(0, order);
        let payload = payload(100);
        let pieces = [IoSlice::new(&payload)];
        let packet = tc::Rest::new(&pieces, 100).expect("valid").next().expect("valid");
        stranger.send(&packet.expect("one")).expect("it is not said that it is dropped");
        assert_eq!(kernel.control.get(0).first, order.first, "no target was served");
        assert!(tap.read(1).is_empty());
        let name = scene::name_of(kernel._anchor.ifindex);
        assert!(scene.try_near(&["ip", "link", "show", &name]), "{name}");
        name
    });
    assert!(!name.is_some_and(|name| scene.try_near(&["ip", "link", "show", &name])), "it is gone");
}

#[test]
fn when_the_anchor_is_removed_orders_fail_and_nothing_else_happens() {
    let Some(scene) = Scene::new() else { return };
    scene.with_kernel(|kernel| {
        let mut group = add(kernel, &targets(&scene, 10, Audience::V4));
        let anchor = scene::name_of(kernel._anchor.ifindex);
        scene.near(&["tc", "filter", "del", "dev", &anchor, "egress"]);
        let payload = payload(100);
        let error = kernel
            .send_tc(&mut group, ALL, &[IoSlice::new(&payload)], 100, None)
            .expect_err("nothing clones");
        assert!(error.to_string().contains("someone removed it"), "{error}");
        scene.near(&["ip", "link", "del", &anchor]);
        kernel.send_tc(&mut group, ALL, &[IoSlice::new(&payload)], 100, None).expect_err("no device");
    });
}

/// Leaves this thread no capabilities but these.
fn keep(capabilities: CapabilitySet) {
    let (effective, permitted, inheritable) = (capabilities, capabilities, CapabilitySet::empty());
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
        .expect("a thread may give up what it may");
}

#[test]
fn without_privileges_the_error_says_what_to_do() {
    // Capabilities belong to the thread.
    let text = std::thread::spawn(|| {
        keep(CapabilitySet::empty());
        Kernel::open(100).map(drop).expect_err("not permitted").to_string()
    })
    .join()
    .expect("no panic");
    assert!(text.contains("setcap cap_net_admin") || text.contains("kernel module `tun`"), "{text}");
}

#[test]
fn a_filter_that_lets_nothing_out_is_named() {
    let Some(scene) = Scene::new() else { return };
    if scene.inside_near(scene::kernel).is_none() {
        return;
    }
    let rules = "add table inet filter; \
                 add chain inet filter output { type filter hook output priority 0; policy drop; }";
    if !scene.try_near(&["nft", rules]) {
        outflow_skip::skipped("a filter that lets nothing out", "no `nft`, or no such filters in the kernel");
        return;
    }
    let error = scene.inside_near(|| Kernel::open(100).map(drop).expect_err("nothing gets out"));
    let text = error.to_string();
    let (_, advice) = text.split_once('`').expect("it says what to do");
    let (command, _) = advice.split_once('`').expect("it says what to do");
    assert!(command.starts_with("nft insert rule"), "{text}");
    scene.near(&["nft", command.trim_start_matches("nft ")]);
    assert!(scene.inside_near(scene::kernel).is_some(), "the advice helps");
}

#[test]
fn without_leave_to_trace_there_are_no_frames_but_clones() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    let tap = Tap::open(&scene);
    scene.inside_near(|| {
        keep(CapabilitySet::NET_ADMIN | CapabilitySet::BPF);
        let Some(mut kernel) = scene::kernel() else { return };
        let refused = kernel.xdp_refused().expect("it needs CAP_PERFMON").to_string();
        assert!(refused.contains("cap_perfmon"), "{refused}");
        let mut group = add(&mut kernel, &targets(&scene, 100, Audience::Mixed));
        let payload = payload(1000);
        let pieces = [IoSlice::new(&payload)];
        kernel.send_xdp(&mut group, ALL, &pieces, None).expect_err("what is lost would not be counted");
        assert_eq!(kernel.send_tc(&mut group, ALL, &pieces, 1000, None).expect("sent"), Sent::default());
        assert_eq!(tap.read(100).len(), 100);
    });
}

#[test]
fn once_it_is_open_it_needs_no_privileges() {
    let Some(scene) = Scene::new() else { return };
    scene.near(&["ethtool", "-K", "near", "tx", "off"]);
    scene.far(&["ethtool", "-K", "far", "gro", "on"]);
    let tap = Tap::open(&scene);
    scene.inside_near(|| {
        let Some(mut kernel) = scene::kernel() else { return };
        let mut group = add(&mut kernel, &targets(&scene, 100, Audience::Mixed));
        keep(CapabilitySet::empty());
        let payload = payload(1000);
        for way in [SendPath::Tc { segment: 1000 }, SendPath::Xdp] {
            if way.works(&kernel) {
                assert_eq!(way.send(&mut kernel, &mut group, &payload), Sent::default(), "{way:?}");
                assert_eq!(tap.read(100).len(), 100, "{way:?}");
            }
        }
    });
}
