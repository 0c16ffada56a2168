//! Two ends of a connection in one thread, in virtual time: how long the processor works on a packet, and how long a
//! unit waits.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outflow_labs::figures::{quantile, rounded};
use outflow_media::Time;
use outflow_petri::service::Flow;
use outflow_petri::service::presets::{Mpeg, mpeg};
use outflow_poc::connection::{Begin, Connection, Event, Settings, Worth};
use outflow_poc::packet::{ConnectionId, Mark};
use outflow_poc::protection::Plain;
use outflow_poc::secret::Secret;
use serde_json::{Value, json};

/// Half a round trip.
const WAY: Duration = Duration::from_millis(20);
/// From a slice to the next.
const SLICE: Duration = Duration::from_micros(2667);
const SLICE_BYTES: usize = 500;
/// One datagram in this many is lost.
const LOST: u64 = 20;

pub(crate) fn measure(quick: bool) -> Result<Value> {
    let (rounds, slices) = if quick { (1, 1800) } else { (9, 36_000) };
    let mut figures = serde_json::Map::new();
    for (name, lost) in [("whole", u64::MAX), ("lossy", LOST)] {
        let runs: Vec<_> = (0..rounds).map(|_| run(slices, lost)).collect::<Result<_>>()?;
        let of = |f: fn(&Run) -> f64| rounded(quantile(&runs.iter().map(f).collect::<Vec<_>>(), 0.5));
        let figure = json!({
            "receive_ns": of(|run| run.receive_ns),
            "send_ns": of(|run| run.send_ns),
            "wait_p50_ms": of(|run| run.wait_ms.0),
            "wait_p99_ms": of(|run| run.wait_ms.1),
            "delivered_pct": of(|run| run.delivered_pct),
        });
        figures.insert(name.to_owned(), figure);
    }
    Ok(figures.into())
}

struct Run {
    /// For a datagram, at the receiver: read, made units of, events read.
    receive_ns: f64,
    /// For a unit, at the sender: given, written, and its acknowledgements read.
    send_ns: f64,
    /// From when a unit would come at the earliest to its delivery, in virtual time.
    wait_ms: (f64, f64),
    delivered_pct: f64,
}

/// An end, and how long it worked.
struct End {
    connection: Connection,
    inbox: Vec<(Time, Vec<u8>)>,
    worked: Duration,
    datagrams: u64,
}

impl End {
    fn new(flow: &Flow, is_sender: bool) -> Self {
        let id = |number| ConnectionId([number; ConnectionId::BYTES]);
        let (local, remote) = if is_sender { (id(1), id(2)) } else { (id(2), id(1)) };
        let outgoing = is_sender.then(|| flow.clone());
        let incoming = (!is_sender).then(|| flow.clone());
        let begin = Begin { local, remote, address: address(!is_sender), outgoing, incoming };
        let secret = Secret::new([u8::from(is_sender); 16]);
        let connection = Connection::new(Time::ZERO, begin, Box::new(Plain), Settings::default(), secret);
        End { connection, inbox: Vec::new(), worked: Duration::ZERO, datagrams: 0 }
    }

    fn next(&self) -> Option<Time> {
        let timer = self.connection.next_timeout().map(|(at, _)| at);
        timer.into_iter().chain(self.inbox.first().map(|(at, _)| *at)).min()
    }

    /// Does what is due; what it sends goes to `out`.
    fn turn(&mut self, now: Time, from: SocketAddr, out: &mut Vec<Vec<u8>>, told: &mut Vec<(u64, Time)>) {
        let count = self.inbox.partition_point(|(at, _)| *at <= now);
        let start = Instant::now();
        for (_, mut datagram) in self.inbox.drain(..count) {
            self.connection.handle_datagram(now, from, Mark::None, &mut datagram);
        }
        if self.connection.next_timeout().is_some_and(|(due, _)| due <= now) {
            self.connection.handle_timeout(now);
        }
        while let Some(event) = self.connection.poll() {
            if let Event::Delivered { unit, .. } = event {
                told.push((unit, now));
            }
        }
        let mut datagram = Vec::new();
        while self.connection.poll_transmit(now, &mut datagram).is_some() {
            out.push(datagram.clone());
        }
        self.worked += start.elapsed();
        self.datagrams += count as u64;
    }
}

fn address(is_sender: bool) -> SocketAddr {
    ([10, 0, 0, 1 + u8::from(is_sender)], 4000).into()
}

fn run(slices: u64, lost: u64) -> Result<Run> {
    let flow = mpeg(&Mpeg::default())?.within(Duration::from_millis(200))?;
    let (mut sender, mut receiver) = (End::new(&flow, true), End::new(&flow, false));
    let (mut now, mut sent, mut flying) = (Time::from_millis(100), 0, 0_u64);
    let (mut told, mut none, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let data = bytes::Bytes::from(vec![0; SLICE_BYTES]);
    let first = now;
    let end = now + SLICE * slices as u32 + Duration::from_secs(2);
    while now < end {
        let due = (sent < slices).then(|| first + SLICE * sent as u32).filter(|due| *due <= now);
        if due.is_some() {
            let start = Instant::now();
            _ = sender.connection.send(now, sent, data.clone(), Worth::default());
            sender.worked += start.elapsed();
            sent += 1;
        }
        sender.turn(now, address(false), &mut out, &mut none);
        for datagram in out.drain(..) {
            flying += 1;
            if flying % lost != 7 {
                receiver.inbox.push((now + WAY, datagram));
            }
        }
        receiver.turn(now, address(true), &mut out, &mut told);
        sender.inbox.extend(out.drain(..).map(|datagram| (now + WAY, datagram)));
        let unit = (sent < slices).then(|| first + SLICE * sent as u32);
        let next = [sender.next(), receiver.next(), unit].into_iter().flatten().min();
        now = next.map_or(end, |next| next.max(now + Duration::from_micros(1)));
    }
    ensure!(!told.is_empty(), "nothing was delivered: {:?}", sender.connection.outgoing_counts());
    let waited = |(unit, at): &(u64, Time)| at.since(first + SLICE * *unit as u32 + WAY).as_secs_f64() * 1e3;
    let waits: Vec<_> = told.iter().map(waited).collect();
    Ok(Run {
        receive_ns: receiver.worked.as_nanos() as f64 / receiver.datagrams as f64,
        send_ns: sender.worked.as_nanos() as f64 / slices as f64,
        wait_ms: (quantile(&waits, 0.5), quantile(&waits, 0.99)),
        delivered_pct: 100.0 * told.len() as f64 / slices as f64,
    })
}
