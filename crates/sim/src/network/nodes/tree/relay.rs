//! A relay: what comes goes to the state machines, and what these ask for is done.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use outflow_media::Time;
use outflow_packet::Level;
use outflow_routing::tree::{self, Action, Settings};
use outflow_routing::{self as routing, demand};

use super::super::{Figures, Node, Place, udp};
use super::feed::{Feed, Step};
use super::limits::{CONTROL, MEDIA, RING_BYTES, TURNS};
use super::peers::Peers;
use super::wants::Wants;
use super::wire::Said;
use super::{STREAM, TreeRelayModel, address, contact, id};
use crate::network::node::{Node as Core, Outgoing, SOURCE_TIMEOUT};
use crate::network::traffic::Emission;
use crate::source::Source;

/// Flows of the core below this are to receivers here, by their place; others are to children, by their address.
const CHILDREN: u32 = 1 << 24;

/// A relay of a tree.
#[derive(Debug)]
pub(in crate::network) struct TreeRelay {
    me: Ipv4Addr,
    port: usize,
    directory: Ipv4Addr,
    node: tree::Node,
    core: Core,
    /// How many layers others said that the stream has at its source.
    layers: u8,
    peers: Peers,
    feed: Feed,
    wants: Wants,
    /// Until when the source counts as there, if nothing comes of it.
    source_until: Option<Time>,
    /// Children that are sent to, and the port that each has said.
    served: BTreeMap<Ipv4Addr, u16>,
    messages: u64,
    greetings: u64,
    outgoing: Vec<Outgoing>,
    outbox: VecDeque<(usize, Bytes)>,
}

impl TreeRelay {
    /// One that knows of no other relay.
    ///
    /// # Errors
    ///
    /// The directory is on none of its segments, or wants are none.
    pub(in crate::network) fn new(
        now: Time,
        model: &TreeRelayModel,
        place: &Place<'_>,
    ) -> Result<Self, String> {
        let no_segment = "no segment joins them: list both in one segment, with all relays of the tree";
        let (port, directory) = (place.neighbour)(&model.directory).ok_or(no_segment)?;
        let me = place.ports.get(port).ok_or(no_segment)?.v4;
        let settings = Settings {
            me: contact(me),
            incarnation: now.as_millis(),
            seed: place.seed,
            children_max: model.children_max,
            demand: demand::Settings::default(),
        };
        Ok(TreeRelay {
            me,
            port,
            directory: directory.v4,
            node: tree::Node::new(settings),
            core: Core::new(Source::format(), RING_BYTES, place.seed),
            layers: 0,
            peers: Peers::default(),
            feed: Feed::new(Source::format()),
            wants: Wants::new(&model.wants, Source::format())?,
            source_until: None,
            served: BTreeMap::new(),
            messages: 0,
            greetings: 0,
            outgoing: Vec::new(),
            outbox: VecDeque::new(),
        })
    }

    fn send(&mut self, from: u16, to: SocketAddrV4, payload: &[u8]) {
        let packet = udp::datagram((self.me, from).into(), to.into(), payload);
        self.outbox.extend(packet.map(|packet| (self.port, packet)));
    }

    fn say(&mut self, to: Ipv4Addr, said: &Said) {
        self.messages += 1;
        self.send(CONTROL, SocketAddrV4::new(to, CONTROL), &said.emit());
    }

    fn say_to_relay(&mut self, now: Time, to: Ipv4Addr, said: &Said) {
        self.peers.say(now, to);
        self.say(to, said);
    }

    fn handle_said(&mut self, now: Time, from: Ipv4Addr, said: Said) {
        match said {
            Said::Offers(offers) if from == self.directory => self.node.handle_offers(now, STREAM, &offers),
            Said::Tree(message) => {
                self.peers.hear(now, from);
                self.node.handle_message(now, contact(from), STREAM, message);
            }
            Said::Alive { layers } => {
                self.peers.notice(now, from);
                if self.feed.is_parent(from) && layers > self.layers {
                    self.layers = layers;
                    self.core.set_relayed(layers);
                }
            }
            Said::Begin { port } => {
                self.peers.hear(now, from);
                self.begin(now, from, port);
            }
            Said::Begun { port } => {
                self.peers.hear(now, from);
                self.feed.handle_begun((from, port));
            }
            Said::Offers(_) | Said::Register(_) | Said::Withdraw | Said::Lookup => (),
        }
    }

    /// A child is to be sent the stream from the newest key frame on. One that is none is told so when it says what it
    /// wants.
    fn begin(&mut self, now: Time, child: Ipv4Addr, port: u16) {
        let level = self.node.children(STREAM).find(|(relay, ..)| *relay == id(child));
        let Some((_, level, _)) = level else { return };
        if self.served.insert(child, port) != Some(port) {
            self.core.leave(now, child.to_bits());
            self.core.join(now, child.to_bits(), of_path(level));
        }
        self.say_to_relay(now, child, &Said::Begun { port });
    }

    fn carry_out(&mut self, now: Time, action: Action) {
        match action {
            Action::Send { to, message, .. } => {
                self.say_to_relay(now, address(to.relay), &Said::Tree(message));
            }
            Action::Take { parent, .. } => {
                self.core.set_relayed(self.layers);
                self.feed.take(now, address(parent));
            }
            Action::Lost { .. } => self.feed.lose(now),
            // The parent learns it by a message, and it begins when it is asked to.
            Action::Level { .. } => (),
            Action::Serve { child, level, .. } => {
                self.core.set_level(address(child).to_bits(), of_path(level));
            }
            Action::Stop { child, .. } => {
                self.served.remove(&address(child));
                self.core.leave(now, address(child).to_bits());
            }
            Action::Register { offer, .. } => self.say(self.directory, &Said::Register(offer)),
            Action::Withdraw { .. } => self.say(self.directory, &Said::Withdraw),
            Action::Lookup { .. } => self.say(self.directory, &Said::Lookup),
        }
    }

    /// Does all that follows from what came in.
    fn settle(&mut self, now: Time) {
        loop {
            while let Some(action) = self.node.poll() {
                self.carry_out(now, action);
            }
            let Some(step) = self.feed.handle_timeout(now) else { break };
            match step {
                Step::Ask((parent, port)) => self.say_to_relay(now, parent, &Said::Begin { port }),
                Step::Failed(parent) => self.node.handle_failed(now, STREAM, id(parent)),
            }
        }
        let mut outgoing = core::mem::take(&mut self.outgoing);
        self.core.poll(now, &mut outgoing);
        for Outgoing { flow, payload, .. } in outgoing.drain(..) {
            if flow < CHILDREN {
                self.wants.handle_packet(now, flow, &payload);
            } else if let Some(port) = self.served.get(&Ipv4Addr::from_bits(flow)) {
                self.send(MEDIA, SocketAddrV4::new(Ipv4Addr::from_bits(flow), *port), &payload);
            }
        }
        self.outgoing = outgoing;
    }

    fn receive(&mut self, now: Time, packet: Bytes) {
        self.wants.handle_media(now);
        self.core.receive(now, packet);
    }

    fn tend_peers(&mut self, now: Time) {
        let TreeRelay { node, peers, .. } = self;
        let is_beside = |relay| {
            let is_parent = node.parent(STREAM).is_some_and(|(parent, _)| parent == id(relay));
            is_parent || node.children(STREAM).any(|(child, ..)| child == id(relay))
        };
        let due = peers.handle_timeout(now, is_beside);
        for relay in due.lost {
            self.node.handle_lost(now, id(relay));
        }
        let alive = Said::Alive { layers: self.core.layers() }.emit();
        for relay in due.greet {
            self.greetings += 1;
            self.send(CONTROL, SocketAddrV4::new(relay, CONTROL), &alive);
        }
    }

    fn tend_wants(&mut self, now: Time) {
        while let Some(change) = self.wants.handle_timeout(now) {
            if change.is_there {
                self.core.join(now, change.want, of_path(change.level));
            } else {
                self.core.leave(now, change.want);
            }
            // There is room for the one stream.
            let _ = self.node.handle_receivers(now, STREAM, change.level, change.count);
        }
    }
}

impl Node for TreeRelay {
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        let Some((SocketAddr::V4(from), to, payload)) = udp::payload(packet) else { return };
        if port != self.port || to.ip() != self.me {
            return;
        }
        let from = *from.ip();
        if to.port() == CONTROL {
            Said::parse(&payload).into_iter().for_each(|said| self.handle_said(now, from, said));
        } else if TURNS.contains(&to.port()) && self.source_until.is_none() {
            self.peers.notice(now, from);
            let mut packets = Vec::new();
            self.feed.handle_media(now, (from, to.port()), payload, &mut packets);
            packets.into_iter().for_each(|packet| self.receive(now, packet));
        }
        self.settle(now);
    }

    fn handle_traffic(&mut self, now: Time, packet: &Emission) {
        let Some(payload) = packet.payload.clone() else { return };
        if self.source_until.replace(now + SOURCE_TIMEOUT).is_none() {
            self.feed.end();
            self.node.handle_source(now, STREAM, Some(0));
        }
        self.receive(now, payload);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.source_until.take_if(|until| *until <= now).is_some() {
            self.node.handle_source(now, STREAM, None);
        }
        self.tend_wants(now);
        self.node.handle_timeout(now);
        self.tend_peers(now);
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let own = [self.source_until, self.wants.next_timeout(), self.peers.next_timeout()];
        let others = [self.feed.next_timeout(), self.node.next_timeout(), self.core.awaited];
        own.into_iter().chain(others).flatten().min()
    }

    fn poll_transmit(&mut self, _: Time) -> Option<(usize, Bytes)> {
        self.outbox.pop_front()
    }

    /// Those of receivers ([`Wants::figures`]), and `depth` if the relay has the stream: relays on the way to it.
    fn figures(&self, now: Time) -> Figures {
        let mut figures = Figures::new();
        self.wants.figures(now, &mut figures);
        let depth = self.node.path(now, STREAM).map(|path| ("depth", f64::from(path.depth)));
        figures.extend(depth);
        figures.extend([
            ("children", self.node.children(STREAM).count() as f64),
            ("messages", self.messages as f64),
            ("greetings", self.greetings as f64),
            ("parents", self.node.counters().taken as f64),
        ]);
        figures
    }
}

fn of_path(level: routing::Level) -> Level {
    Level::new(level.number()).unwrap_or(Level::BEST)
}
