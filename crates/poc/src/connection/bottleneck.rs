//! Whole connections at the bottleneck of [`congestion::testing`](outflow_congestion::testing): what congestion
//! control promises holds with all that is around it.

mod tests;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use outflow_congestion::Acked;
use outflow_congestion::testing::{Random, Sender, TestPath};
use outflow_media::Time;
use outflow_petri::service::Flow;

use super::testing::address;
use super::{Begin, Connection, Event, NotSent, Settings, Worth};
use crate::packet::{ConnectionId, Mark};
use crate::protection::Plain;
use crate::secret::Secret;

/// So far the receiver's clock is ahead.
const AHEAD: Duration = Duration::from_secs(7000);

/// A frame each 40 ms, of 12 in a group: I B B P B B P B B P B B.
const FRAME: Duration = Duration::from_millis(40);
const GROUP: u64 = 12;

const UNIT_BYTES: u64 = 1300;

/// From then on it is counted what becomes of units: the rate has been found.
const COUNTED_FROM: Duration = Duration::from_secs(10);

/// What there is to send.
#[derive(Debug, Clone, Copy)]
pub(super) enum App {
    /// Always something.
    Greedy,
    /// Live video of `bps` bits a second; each unit is of use for `useful_for`.
    Video { bps: u64, useful_for: Duration },
}

/// What became of units of a rank.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fates {
    pub(super) given: u64,
    pub(super) overload: u64,
    pub(super) too_late: u64,
    pub(super) lost: u64,
}

/// Both ends of a connection, and what is under way between them.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) client: Connection,
    pub(super) server: Connection,
    app: App,
    random: Random,
    frames: u64,
    begins: Option<Time>,
    /// What is on the way there, by the number that the bottleneck knows it by.
    there: BTreeMap<u64, Vec<u8>>,
    count: u64,
    /// What is on the way back, which is not a bottleneck, and how long that takes.
    back: VecDeque<(Time, Vec<u8>)>,
    delay: Duration,
    /// Of units that count.
    ranks: BTreeMap<u64, u8>,
    pub(super) fates: [Fates; 3],
}

/// A sender at the bottleneck that can still be looked at.
#[derive(Debug, Clone)]
pub(super) struct Whole(pub(super) Rc<RefCell<Ends>>);

impl Whole {
    pub(super) fn new(way: TestPath, flow: &Flow, app: App, settings: Settings) -> Self {
        flow.check().expect("a flow");
        let ids = [ConnectionId([1; ConnectionId::BYTES]), ConnectionId([2; ConnectionId::BYTES])];
        let end = |at: usize, now: Time| {
            let begin = Begin {
                local: ids[at],
                remote: ids[1 - at],
                address: address(1 - at as u8),
                outgoing: (at == 0).then(|| flow.clone()),
                incoming: (at == 1).then(|| flow.clone()),
            };
            let secret = Secret::new([at as u8; 16]);
            Connection::new(now, begin, Box::new(Plain), settings, secret)
        };
        let start = Time::from_millis(way.start_ms);
        Whole(Rc::new(RefCell::new(Ends {
            client: end(0, start),
            server: end(1, start + AHEAD),
            app,
            random: Random(way.start_ms ^ way.rtt_ms),
            frames: 0,
            begins: None,
            there: BTreeMap::new(),
            count: 0,
            back: VecDeque::new(),
            delay: Duration::from_millis(way.rtt_ms) / 2,
            ranks: BTreeMap::new(),
            fates: [Fates::default(); 3],
        })))
    }
}

impl Ends {
    /// Both do what is due.
    fn step(&mut self, now: Time) {
        while let Some((_, mut datagram)) = self.back.pop_front_if(|(at, _)| *at <= now) {
            self.client.handle_datagram(now, address(1), Mark::None, &mut datagram);
        }
        let is_due = |end: &Connection, now: Time| end.next_timeout().is_some_and(|(at, _)| at <= now);
        if is_due(&self.client, now) {
            self.client.handle_timeout(now);
        }
        if is_due(&self.server, now + AHEAD) {
            self.server.handle_timeout(now + AHEAD);
        }
        self.read();
        let mut datagram = Vec::new();
        while self.server.poll_transmit(now + AHEAD, &mut datagram).is_some() {
            self.back.push_back((now + self.delay, datagram.clone()));
        }
        self.give(now);
    }

    /// The applications read.
    fn read(&mut self) {
        while self.server.poll().is_some() {}
        while let Some(event) = self.client.poll() {
            let (unit, count): (_, fn(&mut Fates) -> &mut u64) = match event {
                Event::GivenUp { unit, why: NotSent::Overload } => (unit, |fates| &mut fates.overload),
                Event::GivenUp { unit, why: NotSent::TooLate } => (unit, |fates| &mut fates.too_late),
                Event::Lost { unit } => (unit, |fates| &mut fates.lost),
                Event::Closed(closed) => panic!("{closed:?}"),
                _ => continue,
            };
            if let Some(rank) = self.ranks.get(&unit) {
                *count(&mut self.fates[usize::from(*rank)]) += 1;
            }
        }
    }

    /// The application sends.
    fn give(&mut self, now: Time) {
        match self.app {
            App::Greedy => {
                while self.client.buffered_bytes().0 < 100_000 {
                    self.send(now, UNIT_BYTES, Worth::default());
                }
            }
            App::Video { bps, useful_for } => {
                while self.next_frame().is_none_or(|at| at <= now) {
                    self.begins.get_or_insert(now);
                    self.give_frame(now, bps, useful_for);
                }
            }
        }
    }

    fn next_frame(&self) -> Option<Time> {
        Some(self.begins? + FRAME * self.frames as u32)
    }

    fn give_frame(&mut self, now: Time, bps: u64, useful_for: Duration) {
        // Of 21 parts an I has 6, a P 3, a B 0.75.
        let (rank, parts) = match self.frames % GROUP {
            0 => (2, 6.0),
            of if of % 3 == 0 => (1, 3.0),
            _ => (0, 0.75),
        };
        self.frames += 1;
        let group_bytes = bps as f64 / 8.0 * (FRAME * GROUP as u32).as_secs_f64();
        let mut left = (group_bytes * parts / 21.0 * (0.7 + 0.6 * self.random.unit())) as u64;
        while left > 0 {
            let bytes = left.min(UNIT_BYTES);
            self.send(now, bytes, Worth { useful_for: Some(useful_for), rank, ..Worth::default() });
            left -= bytes;
        }
    }

    fn send(&mut self, now: Time, bytes: u64, worth: Worth) {
        let unit = self.client.next_unit();
        self.client.send(now, unit, vec![0; bytes as usize].into(), worth).expect("there is room");
        if self.begins.is_some_and(|begins| now >= begins + COUNTED_FROM) {
            self.ranks.insert(unit, worth.rank);
            self.fates[usize::from(worth.rank)].given += 1;
        }
    }
}

impl Sender for Whole {
    fn send(&mut self, now: Time) -> Option<(u64, u64)> {
        let mut ends = self.0.borrow_mut();
        ends.step(now);
        let mut datagram = Vec::new();
        ends.client.poll_transmit(now, &mut datagram)?;
        ends.read();
        ends.count += 1;
        let (number, bytes) = (ends.count, datagram.len() as u64);
        ends.there.insert(number, datagram);
        Some((number, bytes))
    }

    fn wake(&self, _now: Time) -> Option<Time> {
        let ends = self.0.borrow();
        let client = ends.client.next_timeout().map(|(at, _)| at);
        let server = ends.server.next_timeout().map(|(at, _)| at - AHEAD);
        let back = ends.back.front().map(|(at, _)| *at);
        [client, server, back, ends.next_frame()].into_iter().flatten().min()
    }

    // Its acknowledgements come in datagrams.
    fn acked(&mut self, _now: Time, _batch: &[Acked], _rtt: Duration) {}

    fn timeout(&mut self, _now: Time) {}

    fn arrived(&mut self, now: Time, number: u64) -> bool {
        let mut ends = self.0.borrow_mut();
        // What was sent before and is still there was lost.
        let behind = ends.there.split_off(&(number + 1));
        let mut before = core::mem::replace(&mut ends.there, behind);
        let mut datagram = before.remove(&number).expect("it was sent");
        ends.server.handle_datagram(now + AHEAD, address(0), Mark::Ect0, &mut datagram);
        true
    }
}
