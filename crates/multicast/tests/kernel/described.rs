//! Packets that say nothing to routers, but are described to them: forwarded where their layer is wanted.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use outflow_media::{Codec, Track};
use outflow_packet::gmc::{Described, Mark};
use outflow_routing::membership::Family;
use outflow_rtp::payload::vp9::{Descriptor, GroupPicture, Layer, PictureId, Structure};
use outflow_rtp::{PlainHeader, RtpHeader};

use crate::dvmrp::{Ends, Line};
use crate::hosts::{GROUP, PORT, sent_until_received};
use crate::net::{is_skipped, lacks_filter};
use crate::relay::{Relay, Thins};
use crate::thinned::{Fork, LAYERS, come_that_say, is_without_gap, level};

const PAYLOAD_TYPE: u8 = 98;
/// The payload type of [`jpeg2000`].
pub(crate) const JPEG_2000: u8 = 97;

/// A source of VP9, each of whose pictures is one packet: three temporal layers, by a group of four pictures.
struct Plain<'a> {
    from: &'a UdpSocket,
    to: SocketAddr,
    next: u16,
}

impl Plain<'_> {
    /// Sends a number of groups of pictures, the first of which begins with a key picture.
    fn send(&mut self, groups: usize) {
        for at in 0..groups * LAYERS.len() {
            let number = self.next;
            let header = PlainHeader {
                marker: true,
                payload_type: PAYLOAD_TYPE,
                sequence: number,
                timestamp: u32::from(number) * 3600,
                ssrc: 5,
            };
            let packet = [&header.emit()[..], &payload(number, at)].concat();
            self.from.send_to(&packet, self.to).expect("a way out");
            self.next = number.wrapping_add(1);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The payload of a picture, the one at this place behind the key picture.
fn payload(number: u16, at: usize) -> Vec<u8> {
    let picture = |(temporal, back): (u8, u8)| GroupPicture {
        temporal,
        switches_up: true,
        references: [back].into_iter().collect(),
    };
    let group = LAYERS.into_iter().zip([4, 1, 2, 1]).map(picture).collect();
    let (temporal, is_key) = (LAYERS[at % LAYERS.len()], at == 0);
    let descriptor = Descriptor {
        picture: Some(PictureId { value: number & 0x7fff, is_long: true }),
        is_inter: !is_key,
        layer: Some(Layer { temporal, switches_up: true, spatial: 0, needs_below: false }),
        first: true,
        last: true,
        structure: is_key.then(|| Structure {
            spatial: 1,
            resolutions: Default::default(),
            group: Some(group),
        }),
        ..Descriptor::default()
    };
    let mut payload = Vec::new();
    descriptor.emit(&mut payload);
    payload.push(if is_key { 0x82 } else { 0x86 });
    payload
}

/// The layer of a packet of the source, as its format says it.
fn layer(packet: &[u8]) -> Option<u8> {
    assert_eq!(Mark::read(packet), None, "the source says nothing to routers");
    let header = RtpHeader::new_checked(packet).ok()?;
    Some(Descriptor::parse(header.payload()).ok()?.0.layer?.temporal)
}

/// What comes is of these layers, and its numbers have no gap behind those of before.
fn comes(at: &UdpSocket, wanted: &[u8], before: &mut Vec<u16>) {
    let (numbers, layers) = come_that_say(layer, at, wanted.len());
    assert_eq!(layers, wanted);
    before.extend(numbers);
    assert!(is_without_gap(before), "{before:?}");
}

fn vp9() -> Track {
    Track { codec: Codec::Vp9, payload_type: PAYLOAD_TYPE, ..Track::h264() }
}

/// A track whose packets say their layer by their priority.
pub(crate) fn jpeg2000() -> Track {
    Track { codec: Codec::Jpeg2000, payload_type: JPEG_2000, ..Track::h264() }
}

/// Tells a router what goes to a group.
pub(crate) fn describe(relay: &Relay, group: IpAddr, track: Track) {
    let mut described = Described::default();
    described.add(PORT, track);
    let told = relay.multicast.set_described([(group, described.into())].into());
    relay.runtime.block_on(told).expect("it runs");
}

#[test]
fn of_a_described_source_each_host_gets_the_layers_that_it_wants() {
    if !is_skipped("of_a_described_source_each_host_gets_the_layers_that_it_wants") {
        each_host_gets_the_layers_that_it_wants(Family::V4);
    }
}

#[test]
fn of_a_described_source_of_ipv6_each_host_gets_the_layers_that_it_wants() {
    if !is_skipped("of_a_described_source_of_ipv6_each_host_gets_the_layers_that_it_wants") {
        each_host_gets_the_layers_that_it_wants(Family::V6);
    }
}

fn each_host_gets_the_layers_that_it_wants(family: Family) {
    const GROUPS: usize = 20;
    let fork = Fork::new(family, Thins::Kernel);
    describe(&fork.relay, fork.group(), vp9());
    let from = fork.sender();
    let [at_a, at_b] = fork.members(&from);
    fork.say(0, 3);
    fork.say(1, 2);
    let mut plain = Plain { from: &from, to: (fork.group(), PORT).into(), next: 65_500 };
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    plain.send(GROUPS);
    comes(&at_a, &[0].repeat(GROUPS), &mut of_a);
    comes(&at_b, &[0, 1].repeat(GROUPS), &mut of_b);
    fork.say(0, 1);
    fork.say(1, 3);
    plain.send(GROUPS);
    comes(&at_a, &LAYERS.repeat(GROUPS), &mut of_a);
    comes(&at_b, &[0].repeat(GROUPS), &mut of_b);
    let counts = fork.counts();
    let user = counts.user;
    assert_eq!((user.thinned, user.no_room, user.send_errors, user.malformed), (160, 0, 0, 0), "{user:?}");
    assert_eq!(counts.filter.thinned, 0, "the kernel cannot read formats: {counts:?}");
}

#[test]
fn over_three_routers_each_link_carries_of_a_described_source_what_is_wanted_behind_it() {
    if is_skipped("over_three_routers_each_link_carries_of_a_described_source_what_is_wanted_behind_it") {
        return;
    }
    const GROUPS: usize = 25;
    let line = Line::new();
    let relays = line.start();
    relays.iter().for_each(|relay| describe(relay, GROUP.into(), vp9()));
    let ends = Ends::new(&line.source);
    let socket = line.member();
    sent_until_received(&ends.from, &socket);
    let mut plain = Plain { from: &ends.from, to: (GROUP, PORT).into(), next: 1 };
    let mut numbers = Vec::new();
    for (number, expected) in [(3, vec![0]), (2, vec![0, 1]), (1, LAYERS.to_vec()), (3, vec![0])] {
        Line::wants(&relays, level(number));
        let packets = || relays.each_ref().map(|relay| relay.snapshot().counts.user.packets);
        let before = packets();
        plain.send(GROUPS);
        comes(&socket, &expected.repeat(GROUPS), &mut numbers);
        let came = packets().iter().zip(before).map(|(now, before)| now - before).collect::<Vec<_>>();
        let wanted = (expected.len() * GROUPS) as u64;
        assert_eq!(came, [100, wanted, wanted], "what came in at each router, level {number}");
    }
}

#[test]
fn of_packets_that_say_their_layer_by_their_priority_the_kernel_leaves_out_what_is_not_wanted() {
    let test = "of_packets_that_say_their_layer_by_their_priority_the_kernel_leaves_out_what_is_not_wanted";
    if lacks_filter(test) {
        return;
    }
    const FRAMES: u16 = 20;
    let fork = Fork::new(Family::V4, Thins::Kernel);
    describe(&fork.relay, fork.group(), jpeg2000());
    let from = fork.sender();
    let [at_a, at_b] = fork.members(&from);
    fork.say(0, 3);
    fork.say(1, 2);
    let priority = |packet: &[u8]| Some(RtpHeader::new_checked(packet).ok()?.payload()[1] - 1);
    for number in 0..FRAMES * 3 {
        let (payload_type, timestamp) = (JPEG_2000, u32::from(number / 3) * 3000);
        let marker = number % 3 == 2;
        let header = PlainHeader { marker, payload_type, sequence: number, timestamp, ssrc: 7 };
        let payload = [0, 1 + number as u8 % 3, 0, 0, 0, 0, 0, 100 + number as u8 % 3, 0x55];
        let packet = [&header.emit()[..], &payload].concat();
        from.send_to(&packet, (fork.group(), PORT)).expect("a way out");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Until packets of the third layer have come, there seem to be fewer.
    for (at, layers) in [(&at_a, 1), (&at_b, 2)] {
        let (numbers, came) = come_that_say(priority, at, usize::from(FRAMES) * layers);
        let wanted = (0..layers as u8).collect::<Vec<_>>().repeat(usize::from(FRAMES) - 1);
        assert_eq!(came.get(came.len() - wanted.len()..), Some(&*wanted), "{came:?}");
        assert!(is_without_gap(&numbers), "{numbers:?}");
    }
    let counts = fork.counts();
    assert!(counts.filter.thinned > 50 && counts.filter.handed_over == 0, "{counts:?}");
    assert_eq!(counts.user.packets, 0, "{counts:?}");
}
