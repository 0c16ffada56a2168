//! A live connection of the partial-order transport, to which anything is fed.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;
use outflow_petri::service::presets::Order;
use outflow_petri::service::{Class, Flow, presets};
use outflow_poc::connection::{Begin, Connection, Event, Settings, Worth};
use outflow_poc::packet::{ConnectionId, Mark};
use outflow_poc::protection::Plain;
use outflow_poc::secret::Secret;

const BUFFER_BYTES: u32 = 100_000;

/// The first byte chooses the service. What follows are steps: a byte that says what, one that says how much,
/// and for some of them bytes that are fed.
pub(crate) fn poc_connection(data: &[u8]) {
    let Some((first, steps)) = data.split_first() else { return };
    let mut pair = Pair::new(&flow(*first));
    let mut steps = Steps(steps);
    while let Some([what, much]) = steps.take(2).and_then(|step| <[u8; 2]>::try_from(step).ok()) {
        pair.step(what, much, &mut steps);
    }
}

fn flow(choice: u8) -> Flow {
    let latency = Duration::from_millis(100);
    let flow = match choice % 4 {
        0 => presets::datagrams(Order::Total, Some(latency), Class::Partial),
        1 => presets::audio(Duration::from_millis(20), latency),
        2 => presets::j2k_layers(4, Duration::from_millis(40), latency),
        _ => presets::parts(7),
    };
    let flow = flow.expect("a small one");
    Flow { buffer_bytes: BUFFER_BYTES, rounds: flow.rounds.min(4), ..flow }
}

struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Two ends, and what is under way to each.
struct Pair {
    now: Time,
    ends: [Connection; 2],
    under_way: [VecDeque<Vec<u8>>; 2],
    /// The next number that a third party takes for each.
    number: [u64; 2],
    /// Units of a window.
    window: usize,
    reads: bool,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

impl Pair {
    fn new(flow: &Flow) -> Self {
        let now = Time::from_millis(1000);
        let end = |at: u8| {
            let begin = Begin {
                local: ConnectionId([at; ConnectionId::BYTES]),
                remote: ConnectionId([1 - at; ConnectionId::BYTES]),
                address: address(1 - at),
                outgoing: Some(flow.clone()),
                incoming: Some(flow.clone()),
            };
            Connection::new(now, begin, Box::new(Plain), Settings::default(), Secret::new([at; 16]))
        };
        let window = flow.rounds as usize * flow.net.objects();
        let (ends, under_way) = ([end(0), end(1)], [VecDeque::new(), VecDeque::new()]);
        Pair { now, ends, under_way, number: [1, 1], window, reads: true }
    }

    fn step(&mut self, what: u8, much: u8, steps: &mut Steps<'_>) {
        let at = usize::from(what >> 7);
        match what % 10 {
            0 => self.send(at, much),
            1 => self.now = self.now + Duration::from_millis(u64::from(much) * 4),
            2 => self.deliver(at, usize::from(much)),
            3 => drop(self.under_way[at].drain(..usize::from(much).min(self.under_way[at].len()))),
            // Frames in a packet of their own, so far from the last number.
            4 => {
                let (skip, frames) = (u64::from(much >> 5), steps.take(usize::from(much % 32)));
                self.number[at] += skip;
                let mut bytes = vec![12];
                bytes.extend_from_slice(&[at as u8; ConnectionId::BYTES]);
                put(&mut bytes, self.number[at]);
                bytes.extend_from_slice(frames.unwrap_or_default());
                self.number[at] += 1;
                self.feed(at, address(much % 4), &mut bytes);
            }
            5 => {
                let bytes = steps.take(usize::from(much)).unwrap_or_default();
                self.feed(at, address(much % 4), &mut bytes.to_vec());
            }
            6 => self.reads = !self.reads,
            7 => self.ends[at].handle_reset(self.now),
            8 => _ = self.ends[at].skip_to(self.now, self.ends[at].next_unit() + u64::from(much)),
            _ if much == 0 => self.ends[at].finish(self.now),
            _ => self.ends[at].handle_timeout(self.now),
        }
        self.look();
    }

    fn send(&mut self, at: usize, much: u8) {
        let end = &mut self.ends[at];
        let useful_for = much.is_multiple_of(3).then(|| Duration::from_millis(u64::from(much)));
        let class = much.is_multiple_of(7).then_some(Class::Unreliable);
        let worth = Worth { useful_for, class, rank: much % 4 };
        let unit = end.next_unit() + u64::from(much.is_multiple_of(5));
        _ = end.send(self.now, unit, vec![much; usize::from(much) * usize::from(much)].into(), worth);
    }

    fn deliver(&mut self, at: usize, count: usize) {
        for _ in 0..count.min(self.under_way[at].len()) {
            let Some(mut bytes) = self.under_way[at].pop_front() else { return };
            self.feed(at, address(1 - at as u8), &mut bytes);
        }
    }

    fn feed(&mut self, at: usize, from: SocketAddr, bytes: &mut [u8]) {
        self.ends[at].handle_datagram(self.now, from, Mark::None, bytes);
        self.look();
    }

    /// Takes out what there is, and looks whether it is too much.
    fn look(&mut self) {
        let mut out = Vec::new();
        for at in [0, 1] {
            let end = &mut self.ends[at];
            if end.next_timeout().is_some_and(|(due, _)| due <= self.now) {
                end.handle_timeout(self.now);
            }
            for count in 0.. {
                assert!(count < 2000, "it sends without end");
                if end.poll_transmit(self.now, &mut out).is_none() {
                    break;
                }
                assert!(out.len() <= 1452);
                self.under_way[1 - at].push_back(out.clone());
            }
            let (queued, kept) = end.buffered_bytes();
            assert!(queued <= u64::from(BUFFER_BYTES) && kept <= u64::from(BUFFER_BYTES));
            let mut told = 0;
            while self.reads
                && let Some(event) = end.poll()
            {
                told += usize::from(matches!(event, Event::Delivered { .. } | Event::Missed { .. }));
            }
            assert!(told <= self.window, "{told} units of {}", self.window);
        }
    }
}

/// A number as packets have it (LEB128).
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
