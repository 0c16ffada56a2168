//! What datagrams that are of no use cost a server with one live connection: prints nanoseconds each, by kind,
//! and how the connection fared, as JSON. Nothing is encrypted: to what is spoofed the check of a tag is to be
//! added.
#![allow(clippy::disallowed_methods, reason = "it measures how long something takes")]

use core::net::SocketAddr;
use core::time::Duration;
use std::time::Instant;

use fastrand::Rng;
use outflow_media::Time;
use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Request, Service};
use outflow_poc::connection::{Event, Worth};
use outflow_poc::endpoint::{Endpoint, Handle, Notice, Settings};
use outflow_poc::packet::{ConnectionId, Hello, Mark};
use outflow_poc::protection::Plain;
use outflow_poc::secret::Secret;

const BYTES: usize = 1200;

/// Milliseconds of the connection's time for each kind, and datagrams in each of them.
const ROUNDS: u64 = 500;
const FLOOD: usize = 1000;

fn address(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

/// A client, a server, and what is on the way to the server.
struct World {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    asked: Option<(Handle, Request)>,
    delivered: u64,
    missed: u64,
    heard: Vec<Vec<u8>>,
}

impl World {
    fn exchange(&mut self) {
        let mut out = Vec::new();
        while self.client.poll_transmit(self.now, &mut out).is_some() {
            self.heard.push(out.clone());
            self.server.handle_datagram(self.now, address(1), Mark::None, &mut out);
        }
        while self.server.poll_transmit(self.now, &mut out).is_some() {
            self.client.handle_datagram(self.now, address(2), Mark::None, &mut out);
        }
        while let Some((handle, notice)) = self.server.poll() {
            match notice {
                Notice::Asked { request, .. } => self.asked = Some((handle, request)),
                _ => {
                    while let Some(event) = self.server.read(handle) {
                        self.delivered += u64::from(matches!(event, Event::Delivered { .. }));
                        self.missed += u64::from(matches!(event, Event::Missed { .. }));
                    }
                }
            }
        }
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.exchange();
    }
}

fn noise(random: &mut Rng) -> Vec<u8> {
    (0..BYTES).map(|_| random.u8(..)).collect()
}

fn hello(random: &mut Rng) -> Vec<u8> {
    let (client, mut hello) = (ConnectionId(random.u32(..).to_le_bytes()), Vec::new());
    Hello { client, cookie: &[1; 16], service: &[] }.emit(&mut hello).expect("a short one");
    hello
}

fn main() {
    let plain = || Some(Box::new(Plain) as _);
    let mut world = World {
        now: Time::from_millis(1000),
        client: Endpoint::new(Settings::default(), Secret::new([1; 16]), None),
        server: Endpoint::new(Settings::default(), Secret::new([2; 16]), Some(Box::new(plain))),
        asked: None,
        delivered: 0,
        missed: 0,
        heard: Vec::new(),
    };
    let flow = datagrams(Order::Total, Some(Duration::from_millis(100)), Class::Partial).expect("a flow");
    let request = Request { resource: String::new(), to_server: Some(flow), to_client: None };
    let client = world.client.connect(world.now, address(2), request, Box::new(Plain)).expect("a hello");
    (0..10).for_each(|_| world.step());
    let (server, Request { to_server, .. }) = world.asked.take().expect("the client asks");
    world.server.accept(world.now, server, &Service { to_server, to_client: None }).expect("it asks");
    (0..10).for_each(|_| world.step());

    let id = world.server.connection(server).expect("it is there").local();
    let mut random = Rng::with_seed(1);
    let (mut sent, mut report, mut answered) = (0, String::new(), 0);
    for kind in ["garbage", "spoofed", "replayed", "hello", "unknown"] {
        let mut spent = Duration::ZERO;
        for _ in 0..ROUNDS {
            let data = vec![0; 1000].into();
            sent += u64::from(world.client.send(world.now, client, None, data, Worth::default()).is_ok());
            world.step();
            let make = |_| match kind {
                "spoofed" => [&[12], &id.0[..], &[7], &[0xee; BYTES][..]].concat(),
                "replayed" => world.heard[random.usize(2..world.heard.len())].clone(),
                "hello" => hello(&mut random),
                "unknown" => [&[12], &noise(&mut random)[..]].concat(),
                _ => noise(&mut random),
            };
            let mut flood: Vec<Vec<u8>> = (0..FLOOD).map(make).collect();
            let mut out = Vec::new();
            let begins = Instant::now();
            for (at, datagram) in flood.iter_mut().enumerate() {
                let from = ([10, 1, (at >> 8) as u8, at as u8], 5000).into();
                world.server.handle_datagram(world.now, from, Mark::None, datagram);
                while world.server.poll_transmit(world.now, &mut out).is_some() {
                    answered += 1;
                }
            }
            spent += begins.elapsed();
        }
        let each = spent.as_nanos() / (u128::from(ROUNDS) * FLOOD as u128);
        report += &format!("\"{kind}_ns\": {each}, ");
    }
    (0..200).for_each(|_| world.step());
    let (delivered, missed, kept) = (world.delivered, world.missed, world.server.len());
    println!(
        "{{{report}\"answers\": {answered}, \"connections\": {kept}, \"sent\": {sent}, \
         \"delivered\": {delivered}, \"missed\": {missed}}}"
    );
}
