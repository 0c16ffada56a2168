use core::net::Ipv6Addr;
use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::{Kind, Tag};

use super::super::super::traffic::{Emission, HEADERS};
use super::super::{Figures, Node};
use super::*;
use crate::scenario::SourceModel;

const MS: Duration = Duration::from_millis(1);

fn port(host: u8) -> Port {
    Port { v4: [10, 0, 0, host].into(), v6: Ipv6Addr::from([0; 16]) }
}

/// A sender, and a receiver 20 ms away, driven as the world drives nodes.
struct Wire {
    now: Time,
    nodes: [Box<dyn Node>; 2],
    /// By when they arrive: at which node.
    flying: BTreeMap<(Time, u64), (usize, Bytes)>,
    count: u64,
    rng: fastrand::Rng,
    /// Of a hundred.
    lost: u32,
}

fn model(service: Option<&str>) -> PocSenderModel {
    let service = service.map_or(String::new(), |service| format!("service = \"{service}\""));
    toml::from_str(&format!("to = \"b\"\n{service}")).expect("a model")
}

impl Wire {
    fn new(model: &PocSenderModel, receiver: &str, lost: u32) -> Self {
        let now = Time::from_millis(1000);
        let other = |name: &str| (name == "b").then(|| (0, port(2)));
        let receiver: PocReceiverModel = toml::from_str(receiver).expect("a model");
        let (here, there) = ([port(1)], [port(2)]);
        let place = Place { seed: 1, ports: &here, neighbour: &other };
        let sender = PocSender::new(now, model, &place).expect("it can be");
        let place = Place { seed: 2, ports: &there, neighbour: &|_| None };
        let receiver = PocReceiver::new(now, &receiver, &place).expect("it can be");
        let (flying, rng) = (BTreeMap::new(), fastrand::Rng::with_seed(7));
        Wire { now, nodes: [Box::new(sender), Box::new(receiver)], flying, count: 0, rng, lost }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let timers = self.nodes.iter().filter_map(|node| node.next_timeout());
            let next = timers.chain(self.flying.first_key_value().map(|((at, _), _)| *at)).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, packet) = entry.remove();
                self.nodes[to].handle_packet(self.now, 0, &packet);
            }
            self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
        }
        self.now = end;
    }

    fn transmit(&mut self) {
        for from in 0..2 {
            while let Some((port, packet)) = self.nodes[from].poll_transmit(self.now) {
                assert!(port == 0 && packet.len() <= 1500);
                self.count += 1;
                if self.rng.u32(..100) >= self.lost {
                    self.flying.insert((self.now + 20 * MS, self.count), (1 - from, packet));
                }
            }
        }
    }

    fn offer(&mut self, packet: &Emission) {
        self.nodes[0].handle_traffic(self.now, packet);
    }

    /// Connected; then a packet of 1000 bytes each 5 ms; then time for repairs.
    fn send(&mut self, packets: u32, tag: Tag) {
        self.run(1000 * MS);
        for _ in 0..packets {
            self.offer(&Emission { tag, bytes: 1000 + HEADERS, payload: None });
            self.run(5 * MS);
        }
        self.run(3000 * MS);
    }

    fn figures(&self) -> [Figures; 2] {
        [self.nodes[0].figures(self.now), self.nodes[1].figures(self.now)]
    }
}

fn tag(kind: Kind) -> Tag {
    Tag { kind, ..Tag::default() }
}

#[test]
fn everything_arrives_if_nothing_is_lost() {
    let mut wire = Wire::new(&model(None), "", 0);
    wire.send(500, tag(Kind::Predicted));
    let [sender, receiver] = wire.figures();
    assert_eq!((sender["units"], sender["dropped"], sender["repeated"]), (500.0, 0.0, 0.0), "{sender:?}");
    assert_eq!((receiver["units"], receiver["missed"]), (500.0, 0.0), "{receiver:?}");
    assert_eq!((receiver["bytes"], receiver["delivered_pct"]), (500_000.0, 100.0));
    assert!(sender["bytes_sent"] > 500.0 * 1028.0, "with what is in front: {sender:?}");
}

#[test]
fn what_is_reliable_is_sent_again_until_it_arrives() {
    let mut wire = Wire::new(&model(None), "", 5);
    wire.send(1000, tag(Kind::Intra));
    let [sender, receiver] = wire.figures();
    assert_eq!((receiver["units"], receiver["missed"]), (1000.0, 0.0), "{sender:?} {receiver:?}");
    assert!(sender["repeated"] > 20.0 && sender["given_up"] == 0.0, "{sender:?}");
}

#[test]
fn what_is_not_worth_repeating_is_missed() {
    let once = model(Some("datagrams:order=total,latency=100ms,repair=unreliable"));
    let mut wire = Wire::new(&once, "", 5);
    wire.send(1000, tag(Kind::Bidirectional));
    let [sender, receiver] = wire.figures();
    let (units, missed) = (receiver["units"], receiver["missed"]);
    assert_eq!(units + missed, 1000.0, "{receiver:?}");
    assert!((20.0..100.0).contains(&missed), "{receiver:?}");
    assert!((receiver["delivered_pct"] - units / 10.0).abs() < 1e-9);
    assert_eq!((sender["repeated"], sender["lost"]), (0.0, missed), "{sender:?}");
}

#[test]
fn a_receiver_that_has_no_time_for_repairs_misses_more() {
    let missed = |receiver: &str| {
        let mut wire = Wire::new(&model(None), receiver, 5);
        wire.send(1000, tag(Kind::Predicted));
        wire.figures()[1]["missed"]
    };
    assert!(missed("latency = \"5 ms\"") > missed("") + 10.0);
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let figures = || {
        let mut wire = Wire::new(&model(None), "", 5);
        wire.send(300, tag(Kind::Predicted));
        wire.figures()
    };
    assert_eq!(figures(), figures());
}

#[test]
fn a_burst_beyond_what_fits_is_counted() {
    let mut wire = Wire::new(&model(None), "", 0);
    wire.run(1000 * MS);
    // 4 MB within 500 ms, of a path of which nothing is known.
    for _ in 0..4000 {
        wire.offer(&Emission { tag: tag(Kind::Bidirectional), bytes: 1028, payload: None });
    }
    wire.run(3000 * MS);
    let [sender, receiver] = wire.figures();
    assert_eq!((sender["units"], sender["dropped"]), (4000.0, 0.0), "{sender:?}");
    assert!(sender["given_up"] > 3000.0 && sender["lost"] == receiver["missed"], "{sender:?} {receiver:?}");
    assert_eq!(receiver["units"] + receiver["missed"], 4000.0, "{receiver:?}");
}

#[test]
fn what_finds_no_room_or_no_connection_is_dropped() {
    let mut wire = Wire::new(&model(Some("datagrams:latency=inf,repair=reliable")), "", 0);
    let packet = Emission { tag: tag(Kind::Intra), bytes: 40_000, payload: None };
    wire.offer(&packet);
    assert_eq!(wire.figures()[0]["dropped"], 1.0, "it is not connected yet");
    wire.run(1000 * MS);
    // 40 MB, of which 32 MiB are kept.
    (0..1000).for_each(|_| wire.offer(&packet));
    let [sender, _] = wire.figures();
    assert!(sender["dropped"] > 100.0 && sender["units"] > 800.0, "{sender:?}");
    assert_eq!(sender["units"] + sender["dropped"], 1001.0);
}

#[test]
fn a_receiver_that_does_not_answer_is_asked_again() {
    let mut wire = Wire::new(&model(None), "", 100);
    wire.send(10, tag(Kind::Intra));
    assert_eq!(wire.figures()[0]["dropped"], 10.0);
    wire.run(5000 * MS);
    wire.lost = 0;
    wire.run(10_000 * MS);
    wire.send(10, tag(Kind::Intra));
    assert_eq!(wire.figures()[1]["units"], 10.0);
}

#[test]
fn a_connection_that_fell_silent_is_replaced() {
    let mut wire = Wire::new(&model(None), "", 0);
    wire.send(10, tag(Kind::Intra));
    wire.lost = 100;
    wire.run(20_000 * MS);
    wire.lost = 0;
    wire.run(20_000 * MS);
    wire.send(10, tag(Kind::Intra));
    let [sender, receiver] = wire.figures();
    assert_eq!((sender["connections"], receiver["units"]), (2.0, 20.0), "{sender:?}");
}

#[test]
fn packets_of_rtp_are_viewed() {
    let mut wire = Wire::new(&model(None), "", 0);
    wire.run(1000 * MS);
    let model = SourceModel {
        frames_per_second: 25,
        gop_frames: 25,
        key_frame_bytes: 8000,
        frame_bytes: 2000,
        size_spread: 0.2,
        packet_bytes: 1200,
    };
    let mut source = crate::source::Source::new(model);
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..50 {
        for payload in source.frame(&mut rng) {
            let bytes = payload.len() + HEADERS;
            wire.offer(&Emission { tag: tag(Kind::Intra), bytes, payload: Some(payload) });
        }
        wire.run(40 * MS);
    }
    wire.run(1000 * MS);
    let [sender, receiver] = wire.figures();
    assert_eq!((receiver["packets"], receiver["missing"]), (sender["units"], 0.0), "{receiver:?}");
    assert!(receiver["frames"] >= 49.0 && receiver["decodable_pct"] == 100.0, "{receiver:?}");
}

#[test]
fn what_cannot_be_is_said_with_what_to_do() {
    let error = model(Some("datagram")).request().map(drop).expect_err("no preset");
    assert!(error.contains("datagram") && error.contains("write one of datagrams, mpeg"), "{error}");
    let slow = PocSenderModel { latency: Some(Duration::from_secs(60)), ..model(None) };
    assert!(slow.request().is_err_and(|error| error.contains("latency")));
    assert!(PocReceiverModel { latency: slow.latency }.check().is_err());
    assert_eq!((model(None).request().map(drop), PocReceiverModel::default().check()), (Ok(()), Ok(())));
    let place = Place { seed: 1, ports: &[port(1)], neighbour: &|_| None };
    let error = PocSender::new(Time::ZERO, &model(None), &place).expect_err("it is not there");
    assert!(error.starts_with("no segment joins"), "{error}");
}

#[test]
fn datagrams_for_others_are_left_alone() {
    let place = Place { seed: 2, ports: &[port(2)], neighbour: &|_| None };
    let mut end = End::new(Settings::default(), &place, None);
    let mut malformed = |from: &str, to: &str| {
        let packet = udp::datagram(from.parse().expect("one"), to.parse().expect("one"), &[0; 1200]);
        end.handle_packet(Time::ZERO, 0, &packet.expect("it fits"));
        end.endpoint.counts().malformed
    };
    assert_eq!(malformed("10.0.0.1:4000", "10.0.0.3:4000"), 0, "another host");
    assert_eq!(malformed("10.0.0.1:4000", "10.0.0.2:4001"), 0, "another port");
    assert_eq!(malformed("10.0.1.1:4000", "10.0.0.2:4000"), 0, "it could not be answered");
    assert_eq!(malformed("10.0.0.1:4000", "10.0.0.2:4000"), 1);
}
