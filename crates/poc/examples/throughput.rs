//! What a unit costs from end to end, without sockets and encryption: two connections in memory, units of 1316
//! bytes, each sent, received and acknowledged. Prints nanoseconds a unit as JSON.
#![allow(clippy::disallowed_methods, reason = "it measures how long something takes")]

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Flow};
use outflow_poc::connection::{Begin, Connection, Event, Settings, Worth};
use outflow_poc::packet::{ConnectionId, Mark};
use outflow_poc::protection::Plain;
use outflow_poc::secret::Secret;

const BYTES: usize = 1316;

/// Units a millisecond: 420 Mbit/s.
const A_STEP: u64 = 40;

/// How long a datagram takes there or back, in milliseconds.
const DELAY_MS: usize = 10;

fn connection(at: usize, flow: &Flow) -> Connection {
    let ids = [ConnectionId([1; ConnectionId::BYTES]), ConnectionId([2; ConnectionId::BYTES])];
    let begin = Begin {
        local: ids[at],
        remote: ids[1 - at],
        address: address(1 - at),
        outgoing: (at == 0).then(|| flow.clone()),
        incoming: (at == 1).then(|| flow.clone()),
    };
    let secret = Secret::new([at as u8; 16]);
    Connection::new(Time::from_millis(1000), begin, Box::new(Plain), Settings::default(), secret)
}

fn address(host: usize) -> SocketAddr {
    ([10, 0, 0, host as u8], 4000).into()
}

/// One end, and what is on the way to it: the datagrams of each millisecond.
struct End {
    connection: Connection,
    under_way: VecDeque<Vec<Vec<u8>>>,
}

/// Units that were delivered, lost or given up, and datagrams that were sent by each end.
fn play(order: Order, milliseconds: u64) -> (u64, u64, [u64; 2]) {
    let flow = datagrams(order, Some(Duration::from_millis(200)), Class::Partial).expect("a flow");
    let mut ends = [0, 1]
        .map(|at| End { connection: connection(at, &flow), under_way: vec![Vec::new(); DELAY_MS].into() });
    let (data, mut spare) = (Bytes::from(vec![7; BYTES]), Vec::new());
    let (mut delivered, mut lost, mut sent) = (0, 0, [0; 2]);
    for step in 0..milliseconds {
        let now = Time::from_millis(1000 + step);
        for _ in 0..A_STEP {
            let client = &mut ends[0].connection;
            let sent = client.send(now, client.next_unit(), data.clone(), Worth::default());
            lost += u64::from(sent.is_err());
        }
        for at in [0, 1] {
            let End { connection, under_way } = &mut ends[at];
            let mut datagrams = under_way.pop_front().unwrap_or_default();
            for mut datagram in datagrams.drain(..) {
                connection.handle_datagram(now, address(1 - at), Mark::None, &mut datagram);
                spare.push(datagram);
            }
            if connection.next_timeout().is_some_and(|(due, _)| due <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll() {
                delivered += u64::from(matches!(event, Event::Delivered { .. }));
                lost += u64::from(matches!(event, Event::Lost { .. }));
            }
            // As often as a driver that takes what there is: when is asked after each batch.
            let mut out = spare.pop().unwrap_or_default();
            while connection.poll_transmit(now, &mut out).is_some() {
                sent[at] += 1;
                datagrams.push(core::mem::replace(&mut out, spare.pop().unwrap_or_default()));
            }
            spare.push(out);
            ends[1 - at].under_way.push_back(datagrams);
        }
    }
    (delivered, lost, sent)
}

fn main() {
    // Fewer of them, say, to count instructions.
    let milliseconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    for (name, order) in [("total", Order::Total), ("partial", Order::Partial(8)), ("none", Order::None)] {
        let begins = Instant::now();
        let (delivered, lost, [there, back]) = play(order, milliseconds);
        let each = begins.elapsed().as_nanos() / u128::from(delivered.max(1));
        println!(
            "{{\"order\": \"{name}\", \"ns_per_unit\": {each}, \"delivered\": {delivered}, \"lost\": {lost}, \
             \"datagrams\": {there}, \"datagrams_back\": {back}}}"
        );
    }
}
