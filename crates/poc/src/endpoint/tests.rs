use core::time::Duration;
use std::collections::VecDeque;

use outflow_petri::service::{Bounds, Class, Flow, Terms, Want, presets};

use super::*;
use crate::connection::{By, Event, NotSent};
use crate::limits::RESETS_A_SECOND_MAX;
use crate::packet::{Datagram, emit_reset, parse};
use crate::protection::Plain;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn address(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

pub(super) fn plain() -> Option<Handshakes> {
    Some(Box::new(|| Some(Box::new(Plain) as Box<dyn ServerHandshake>)))
}

pub(super) fn flow() -> Flow {
    presets::datagrams(presets::Order::Total, None, Class::Reliable).expect("a flow")
}

pub(super) fn to_send() -> Request {
    Request { resource: "/live/cam".to_owned(), to_server: Some(flow()), to_client: None }
}

/// A client at 10.0.0.1 and a server at 10.0.0.2, 10 ms apart.
pub(super) struct Pair {
    pub(super) now: Time,
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    pub(super) flying: VecDeque<(Time, SocketAddr, SocketAddr, Vec<u8>)>,
    /// What gets lost.
    loses: fn(&[u8]) -> bool,
    pub(super) sent_bytes: [u64; 2],
    asked: Vec<(Handle, Request)>,
    connected: Vec<Service>,
    failed: Vec<ConnectError>,
    pub(super) events: Vec<(Handle, Event)>,
}

impl Pair {
    pub(super) fn new(settings: Settings) -> Self {
        Pair {
            now: Time::from_millis(5000),
            client: Endpoint::new(settings, Secret::new([1; 16]), None),
            server: Endpoint::new(settings, Secret::new([2; 16]), plain()),
            flying: VecDeque::new(),
            loses: |_| false,
            sent_bytes: [0; 2],
            asked: Vec::new(),
            connected: Vec::new(),
            failed: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(super) fn connect(&mut self, request: Request) -> Handle {
        self.client.connect(self.now, address(2), request, Box::new(Plain)).expect("a hello")
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.exchange();
            let timers = [self.client.next_timeout(), self.server.next_timeout()];
            let flying = self.flying.front().map(|(at, ..)| *at);
            let next = timers.into_iter().chain([flying]).flatten().min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some((_, from, to, mut bytes)) = self.flying.pop_front_if(|(at, ..)| *at <= self.now) {
                let end = if to == address(2) { &mut self.server } else { &mut self.client };
                end.handle_datagram(self.now, from, Mark::None, &mut bytes);
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
        self.now = end;
    }

    pub(super) fn exchange(&mut self) {
        let mut out = Vec::new();
        for (at, (end, from)) in
            [(&mut self.client, address(1)), (&mut self.server, address(2))].into_iter().enumerate()
        {
            while let Some(transmit) = end.poll_transmit(self.now, &mut out) {
                self.sent_bytes[at] += out.len() as u64;
                if !(self.loses)(&out) {
                    self.flying.push_back((self.now + SECOND / 100, from, transmit.to, out.clone()));
                }
            }
            while let Some((handle, notice)) = end.poll() {
                match notice {
                    Notice::Asked { request, .. } => self.asked.push((handle, request)),
                    Notice::Connected { service } => self.connected.push(service),
                    Notice::Failed(error) => self.failed.push(error),
                    Notice::Ready => {
                        while let Some(event) = end.read(handle) {
                            self.events.push((handle, event));
                        }
                    }
                }
            }
        }
    }

    pub(super) fn accept(&mut self) -> Handle {
        self.run(SECOND / 10);
        let (handle, request) = self.asked.pop().expect("a client asks");
        let service = Terms::default().answer(&request, Some(&flow())).expect("a service");
        self.server.accept(self.now, handle, &service).expect("it asks");
        handle
    }

    pub(super) fn delivered(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, Event::Delivered { .. })).count()
    }
}

#[test]
fn a_client_that_sends_and_one_that_is_sent_to() {
    let bounds = Bounds { rounds: 64, buffer_bytes: 1 << 20, validity: None };
    let to_receive = Request { to_server: None, to_client: Some(Want::Theirs(bounds)), ..to_send() };
    for (request, client_sends) in [(to_send(), true), (to_receive, false)] {
        let mut pair = Pair::new(Settings::default());
        let client = pair.connect(request);
        let server = pair.accept();
        pair.run(SECOND / 10);
        assert_eq!(pair.connected.len(), 1);
        for _ in 0..100 {
            let data = Bytes::from(vec![1; 500]);
            let (end, handle) =
                if client_sends { (&mut pair.client, client) } else { (&mut pair.server, server) };
            end.send(pair.now, handle, None, data, Worth::default()).expect("there is room");
        }
        pair.run(SECOND * 5);
        assert_eq!(pair.delivered(), 100);
        pair.client.release(pair.now, client);
        pair.run(SECOND);
        assert!(matches!(&pair.events.last(), Some((_, Event::Closed(closed))) if closed.by == By::Peer));
        pair.server.release(pair.now, server);
        pair.run(SECOND * 2);
        assert!(pair.client.is_empty() && pair.server.is_empty());
        assert_eq!((pair.client.next_timeout(), pair.server.next_timeout()), (None, None));
    }
}

#[test]
fn nothing_is_kept_of_a_client_that_does_not_show_where_it_is() {
    let mut pair = Pair::new(Settings::default());
    pair.loses = |datagram| matches!(parse(datagram), Ok(Datagram::Retry(_)));
    pair.connect(to_send());
    pair.run(SECOND * 4);
    assert!(pair.server.is_empty() && pair.asked.is_empty());
    assert!(pair.server.counts().retries > 2);
    assert!(pair.sent_bytes[1] * 10 < pair.sent_bytes[0], "{:?}", pair.sent_bytes);
    pair.run(SECOND * 2);
    assert_eq!(pair.failed, [ConnectError::Silent(address(2))]);
    assert!(pair.client.is_empty());
}

#[test]
fn an_answer_that_is_lost_is_said_again() {
    let mut pair = Pair::new(Settings::default());
    pair.loses = |datagram| matches!(parse(datagram), Ok(Datagram::Accept(_)));
    pair.connect(to_send());
    pair.accept();
    pair.run(SECOND);
    assert!(pair.connected.is_empty());
    pair.loses = |_| false;
    pair.run(SECOND * 3);
    assert_eq!((pair.connected.len(), pair.server.len()), (1, 1));
}

#[test]
fn one_that_is_refused_learns_why() {
    let mut pair = Pair::new(Settings { connections_max: 1, ..Settings::default() });
    pair.connect(to_send());
    pair.run(SECOND / 10);
    let (handle, _) = pair.asked.pop().expect("a client asks");
    pair.server.refuse(handle, Code(64), "there is no /live/cam");
    pair.run(SECOND);
    let text = "there is no /live/cam".to_owned();
    assert_eq!(pair.failed, [ConnectError::Refused { code: Code(64), text }]);
    pair.connect(to_send());
    pair.accept();
    pair.connect(to_send());
    pair.run(SECOND);
    assert!(matches!(pair.failed[1], ConnectError::Refused { code: Code::BUSY, .. }));
    assert_eq!(pair.server.counts().busy, 1);
}

#[test]
fn a_server_that_does_not_decide_refuses() {
    let mut pair = Pair::new(Settings::default());
    pair.connect(to_send());
    pair.run(SECOND * 7);
    assert!(!pair.failed.is_empty() && pair.server.is_empty());
}

#[test]
fn a_server_that_has_forgotten_a_connection_says_so() {
    let mut pair = Pair::new(Settings::default());
    let client = pair.connect(to_send());
    pair.accept();
    pair.run(SECOND / 10);
    pair.server = Endpoint::new(Settings::default(), Secret::new([3; 16]), plain());
    pair.client
        .send(pair.now, client, None, Bytes::from_static(b"lost"), Worth::default())
        .expect("there is room");
    pair.run(SECOND * 6);
    let closed = pair.events.iter().find_map(|(_, event)| match event {
        Event::Closed(closed) => Some(closed.code),
        _ => None,
    });
    assert_eq!(closed, Some(Code::RESET));
}

#[test]
fn a_reset_by_somebody_else_does_not_end_a_connection() {
    let mut pair = Pair::new(Settings::default());
    let client = pair.connect(to_send());
    let server = pair.accept();
    pair.run(SECOND / 10);
    let id = pair.client.connection(client).expect("it is there").remote();
    for _ in 0..100 {
        let mut reset = Vec::new();
        emit_reset(id, &mut reset);
        pair.client.handle_datagram(pair.now, address(2), Mark::None, &mut reset);
        pair.run(SECOND / 10);
    }
    assert!(pair.client.connection(client).is_some_and(|connection| !connection.is_closed()));
    assert!(pair.server.connection(server).is_some_and(|connection| !connection.is_closed()));
}

#[test]
fn datagrams_of_no_connection_are_answered_by_less_and_not_too_often() {
    let mut pair = Pair::new(Settings::default());
    for at in 0..10_000_u32 {
        let mut datagram = vec![12; 40];
        datagram[1..5].copy_from_slice(&at.to_le_bytes());
        pair.server.handle_datagram(pair.now, address(7), Mark::None, &mut datagram);
        pair.exchange();
    }
    let counts = pair.server.counts();
    assert_eq!((counts.unknown, counts.resets), (10_000, u64::from(RESETS_A_SECOND_MAX)));
    assert_eq!(pair.sent_bytes[1], (1 + ConnectionId::BYTES as u64) * counts.resets);
    for garbage in [&[][..], &[0], &[0x80; 100], &[8; 100], &[13; ConnectionId::BYTES + 1], &[14; 50]] {
        pair.server.handle_datagram(pair.now, address(7), Mark::None, &mut garbage.to_vec());
    }
    assert_eq!(pair.server.counts().malformed, 5);
    assert!(pair.server.is_empty());
}

#[test]
fn other_versions_are_told_which_is_spoken() {
    let mut pair = Pair::new(Settings::default());
    let mut hello = vec![0; 1200];
    hello[..2].copy_from_slice(&[8, 9]);
    pair.server.handle_datagram(pair.now, address(1), Mark::None, &mut hello);
    let mut out = Vec::new();
    pair.server.poll_transmit(pair.now, &mut out).expect("an answer");
    assert!(matches!(parse(&out), Ok(Datagram::Refuse(refuse)) if refuse.version == VERSION));
}

#[test]
fn units_that_are_given_up_are_told_by_their_reason() {
    let mut pair = Pair::new(Settings::default());
    let client = pair.connect(to_send());
    pair.accept();
    pair.run(SECOND / 10);
    let worth = Worth { useful_for: Some(Duration::ZERO), ..Worth::default() };
    pair.client.send(pair.now, client, None, Bytes::from_static(b"late"), worth).expect("there is room");
    pair.run(SECOND);
    let late = Event::GivenUp { unit: 0, why: NotSent::TooLate };
    assert!(pair.events.contains(&(client, late)), "{:?}", pair.events);
}
