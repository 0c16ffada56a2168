use core::time::Duration;

use bytes::Bytes;
use etherparse::PacketBuilder;
use outflow_link::Policy;
use outflow_media::Time;

use super::*;
use crate::network::{EndModel, Network, PathModel, World};

/// Two ends, with such a link there, and back one that takes no time.
fn network(there: &str) -> Network {
    let text = format!(
        "seed = 1\nduration = '1 s'\n[links.back]\n[links.there]\n{there}\n[ends.home]\n[ends.studio]\n\
        [[paths]]\nfrom = 'home'\nto = 'studio'\nvia = ['there']\n\
        [[paths]]\nfrom = 'studio'\nto = 'home'\nvia = ['back']\n"
    );
    Network::parse(&text).expect("valid")
}

fn emulation(there: &str) -> World {
    World::new(&network(there), &[], 0).expect("valid")
}

/// A datagram with this payload, from home to the studio.
fn datagram(port: u16, payload: &[u8]) -> Bytes {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 213, 0, 1], [10, 213, 0, 2], 9).udp(port, 5000);
    builder.write(&mut packet, payload).expect("it fits");
    packet.into()
}

/// Runs until nothing travels any more: what arrived, and when.
fn played(emulation: &mut World) -> Vec<Arrived> {
    while let Some(at) = emulation.next_at() {
        emulation.advance(at);
    }
    emulation.arrived().collect()
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn packets_take_the_rate_and_the_delay() {
    let mut emulation = emulation("rate = '8 Mbit/s'\nbuffer = '100 kB'\ndelay = '20 ms'");
    (0..3).for_each(|_| emulation.handle(ms(5), 0, datagram(1, &[1; 972])));
    let arrived = played(&mut emulation);
    let at: Vec<Time> = arrived.iter().map(|arrived| arrived.at).collect();
    assert_eq!(at, [ms(26), ms(27), ms(28)]);
    assert!(arrived.iter().all(|arrived| arrived.port == 1 && arrived.packet == datagram(1, &[1; 972])));
    emulation.handle(ms(40), 1, datagram(1, &[2; 10]));
    assert_eq!(played(&mut emulation)[0].at, ms(40), "back it takes no time");
    let report = emulation.report();
    let there = &report.links.iter().find(|(name, _)| name == "there").expect("it is there").1;
    assert_eq!((there.packets, there.bytes, report.arrived), (3, 3000, 4));
}

#[test]
fn what_does_not_fit_is_dropped_and_what_is_lost_is_counted() {
    let mut emulation =
        emulation("rate = '8 Mbit/s'\nbuffer = '15 kB'\npolicy = 'shb'\nimpairments = { loss = '10 %' }");
    for at in 0..1000 {
        emulation.handle(Time::from_micros(at * 500), 0, datagram(1, &[1; 972]));
    }
    let arrived = played(&mut emulation).len() as u64;
    let report = emulation.report();
    let there = &report.links[1].1;
    assert_eq!(there.packets, arrived + there.lost + there.drops.total());
    assert!((480..500).contains(&there.drops.total()), "half of it does not fit: {there:?}");
    assert!((20..90).contains(&there.lost), "{there:?}");
    assert!(report.json()["links"]["there"]["drops"]["link-full"].as_u64() == Some(there.drops.total()));
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let lost = |seed: u64| {
        let network = Network { seed, ..network("impairments = { loss = '20 %' }") };
        let mut emulation = World::new(&network, &[], 0).expect("valid");
        (0..100_u8).for_each(|at| emulation.handle(ms(u64::from(at)), 0, datagram(1, &[at])));
        played(&mut emulation)
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
}

#[test]
fn a_link_is_another_one_from_its_moment_on() {
    let there = "rate = '8 Mbit/s'\nbuffer = '100 kB'\ndelay = '20 ms'";
    let mut emulation = emulation(there);
    let model = |text: &str| network(text).links["there"].clone();
    let narrow = model(&there.replace("8 Mbit/s", "4 Mbit/s"));
    emulation.change(ms(7), "there", &narrow).expect("it may");
    (0..4).for_each(|_| emulation.handle(ms(5), 0, datagram(1, &[1; 972])));
    // What has begun goes on at the rate before.
    let at: Vec<Time> = played(&mut emulation).iter().map(|arrived| arrived.at).collect();
    assert_eq!(at, [ms(26), ms(27), ms(29), ms(31)]);
    let lossy = model(&format!("{there}\nimpairments = {{ loss = '100 %' }}"));
    emulation.change(ms(10), "there", &lossy).expect("it may, and its moment is over");
    emulation.handle(ms(40), 0, datagram(1, &[1; 972]));
    assert!(played(&mut emulation).is_empty());
    for (link, text, hint) in [
        ("there", "rate = '8 Mbit/s'\nbuffer = '100 kB'", "keeps its delay"),
        ("there", "delay = '20 ms'", "keeps its rate"),
        ("nowhere", there, "there is no such link"),
    ] {
        let error = emulation.change(ms(50), link, &model(text)).expect_err(hint).to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn lost_packets_are_kept_if_they_are_wanted() {
    let mut emulation = emulation("delay = '20 ms'\nimpairments = { loss = '100 %' }");
    emulation.handle(ms(1), 0, datagram(1, &[0]));
    emulation.keep_lost(2);
    (2..5).for_each(|at| emulation.handle(ms(at), 0, datagram(1, &[at as u8])));
    let lost: Vec<Lost> = emulation.lost().collect();
    let kept = |at: u64| Lost { link: 1, at: ms(at + 20), packet: datagram(1, &[at as u8]) };
    assert_eq!(lost, [kept(2), kept(3)]);
    emulation.handle(ms(5), 0, datagram(1, &[5]));
    assert_eq!(emulation.lost().collect::<Vec<_>>(), [kept(5)]);
    assert_eq!((emulation.report().links[1].1.lost, emulation.held()), (5, 0));
}

/// Datagrams of a transport stream are found to be one, and a policy that knows what they mean loses whole frames.
#[test]
fn media_are_found_out() {
    let clip = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/demo.ts"));
    let mut emulation = emulation("rate = '1 Mbit/s'\nbuffer = '15 kB'\npolicy = 'elastic'");
    for (at, payload) in clip.chunks(1316).take(200).enumerate() {
        emulation.handle(ms(at as u64), 0, datagram(7, payload));
    }
    let report = emulation.report();
    assert_eq!(report.media.len(), 1, "{report:?}");
    assert!(report.media[0].starts_with("home > studio: 10.213.0.1:7 > 10.213.0.2:5000: "), "{report:?}");
    assert!(report.media[0].contains("H.264"), "{report:?}");
}

#[test]
fn more_than_two_ends_are_reached_by_their_addresses() {
    let path = |from: &str, to: &str| PathModel { from: from.into(), to: to.into(), via: Vec::new() };
    let network = Network {
        ends: ["a", "b", "c"].map(|name| (name.to_owned(), EndModel::default())).into_iter().collect(),
        paths: vec![path("a", "b"), path("a", "c"), path("b", "a")],
        ..Network::default()
    };
    let mut emulation = World::new(&network, &[], 0).expect("valid");
    let to = |last: [u8; 4]| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 213, 0, 1], last, 9).udp(1, 1);
        builder.write(&mut packet, &[1]).expect("it fits");
        Bytes::from(packet)
    };
    for destination in [[10, 213, 0, 3], [10, 213, 0, 9], [239, 1, 1, 1]] {
        emulation.handle(ms(1), 0, to(destination));
    }
    emulation.handle(ms(1), 1, to([10, 213, 0, 9]));
    emulation.handle(ms(1), 2, to([10, 213, 0, 1]));
    emulation.handle(ms(1), 0, Bytes::from_static(b"no packet"));
    let ends: Vec<usize> = played(&mut emulation).iter().map(|arrived| arrived.port).collect();
    assert_eq!(ends, [2, 1, 2, 0]);
    let report = emulation.report();
    assert_eq!((report.no_path, report.malformed), (2, 1));
}

#[test]
fn more_flows_than_there_is_room_for_go_on() {
    let there = "rate = '1 Gbit/s'\nbuffer = '12.5 MB'\npolicy = 'elastic'";
    assert_eq!(network(there).links["there"].policy, Policy::Elastic);
    let mut emulation = emulation(there);
    for port in 0..10_000_u16 {
        emulation.handle(Time::from_micros(u64::from(port) * 10), 0, datagram(port, &[1]));
    }
    assert_eq!(played(&mut emulation).len(), 10_000);
    // All at once: none can be forgotten while its packet is on its way.
    let at = ms(1000) + Duration::from_millis(1);
    (0..10_000_u16).for_each(|port| emulation.handle(at, 0, datagram(port, &[1])));
    assert_eq!(played(&mut emulation).len(), 10_000);
}
