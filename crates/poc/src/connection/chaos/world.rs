//! Two ends with clocks of their own, applications, and the weather between them.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use fastrand::Rng;
use outflow_media::Time;
use outflow_petri::net::Need;
use outflow_petri::service::Flow;

use super::super::testing::handed_over;
use super::super::{Begin, Connection, Event, SendError, Worth};
use super::oracle::{Given, Oracle, data};
use super::scenario;
use super::scenario::{UNIT_BYTES, ms};
use super::weather::Weather;
use crate::packet::{ConnectionId, Datagram, Frame, Head, Mark, parse};
use crate::protection::Plain;
use crate::secret::Secret;

/// A datagram under way.
#[derive(Debug, Clone)]
struct Flying {
    to: usize,
    from: SocketAddr,
    mark: Mark,
    bytes: Vec<u8>,
}

/// An end of the connection, and its application.
pub(super) struct End {
    pub(super) connection: Connection,
    pub(super) address: SocketAddr,
    /// Its clock is so far ahead.
    pub(super) ahead: Duration,
    /// When its application reads again.
    reads_at: Time,
    /// Units left to send, when it does, and whether it waits to be told that it may.
    left: u32,
    sends_at: Time,
    is_blocked: bool,
    /// What it sends.
    pub(super) oracle: Option<Oracle>,
    is_told: bool,
}

pub(super) struct World {
    now: Time,
    random: Rng,
    /// The client and the server.
    pub(super) ends: [End; 2],
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    weather: Weather,
    /// What chooses when an end is handed over, if any is, and how often that was.
    handing: Option<Rng>,
    handovers: u64,
    /// The number of the last packet of each end.
    numbers: [Option<u64>; 2],
    /// Whether the weather is to get better.
    is_mild: bool,
    is_finishing: bool,
}

fn address(host: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, (host >> 8) as u8, host as u8], 4000))
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let to_server = scenario::flow(&mut random);
        let to_client = (random.u8(..4) == 0).then(|| scenario::flow(&mut random));
        let to_client = to_client.filter(|flow| flow.net.is_sent_in_order());
        let now = Time::from_millis(1000);
        let flows = [Some(to_server), to_client];
        let ends = [0, 1].map(|at| End::new(now, at, &flows, &mut random));
        let weather = Weather::new(now);
        World {
            now,
            random,
            ends,
            flying: BTreeMap::new(),
            count: 0,
            weather,
            handing: None,
            handovers: 0,
            numbers: [None; 2],
            is_mild: false,
            is_finishing: false,
        }
    }

    /// The same, but ends are saved now and then, and others go on.
    pub(super) fn handing_over(seed: u64) -> Self {
        World { handing: Some(Rng::with_seed(seed)), ..World::new(seed) }
    }

    /// How often that was.
    pub(super) fn handovers(&self) -> u64 {
        self.handovers
    }

    fn hand_over(&mut self) {
        let Some(random) = &mut self.handing else { return };
        if random.u8(..40) > 0 {
            return;
        }
        let end = &mut self.ends[random.usize(..2)];
        let Some(again) = handed_over(&end.connection) else { return };
        end.connection = again;
        end.connection.check_accounts();
        self.handovers += 1;
    }

    /// Both send what they have, and end it.
    pub(super) fn run(&mut self) {
        let has_sent = |world: &World| world.ends.iter().all(|end| end.left == 0 && !end.is_blocked);
        self.run_until("all is taken", has_sent);
        self.ends.iter_mut().for_each(End::finish_source);
        self.is_mild = self.random.bool();
        self.run_until("the server's units are over", |world| world.ends[1].is_done());
        let local = self.ends[0].local(self.now);
        self.ends[0].connection.finish(local);
        self.is_finishing = true;
        self.run_until("it is finished", |world| world.ends[0].is_told);
        self.is_mild = true;
        self.run_until("the server knows", |world| world.ends[1].is_told);
        for end in &self.ends {
            if let Some(oracle) = &end.oracle {
                oracle.finish(end.connection.next_unit());
            }
        }
    }

    fn run_until(&mut self, what: &str, is_over: impl Fn(&World) -> bool) {
        let (end, mild) = (self.now + Duration::from_secs(400), self.now + Duration::from_secs(8));
        let mut stuck = 0;
        self.flush();
        while !is_over(self) {
            let next = self.next();
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            assert!(stuck < 200, "{what}: both ends are to be called at once, again and again");
            assert!(next < end, "{what}: not in {:?}: {:?}", end.since(mild), self.describe());
            self.now = self.now.max(next);
            self.step(self.is_mild || self.now > mild);
            self.hand_over();
        }
    }

    fn describe(&self) -> Vec<String> {
        self.ends.iter().map(|end| end.connection.describe()).collect()
    }

    fn next(&self) -> Time {
        let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
        let ends = self.ends.iter().flat_map(|end| {
            let timer = end.connection.next_timeout().map(|(at, _)| at - end.ahead);
            let sends = (end.left > 0 && !end.is_blocked).then_some(end.sends_at);
            [timer, sends, Some(end.reads_at).filter(|at| *at > self.now)]
        });
        let next = ends.chain([flying, Some(self.weather.changes_at)]).flatten().min();
        next.unwrap_or(self.now)
    }

    fn step(&mut self, is_mild: bool) {
        if self.weather.changes_at <= self.now {
            self.weather.change(self.now, &mut self.random, is_mild);
            if !is_mild {
                self.disturb();
            }
        }
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let flying = entry.remove();
            self.deliver(flying);
        }
        for at in [0, 1] {
            let local = self.ends[at].local(self.now);
            self.ends[at].connection.handle_timeout(local);
            while self.ends[at].is_to_send(self.now) {
                self.act(at);
            }
        }
        self.flush();
    }

    /// Moves an end, or its clock, or lets its application do something else for a while.
    fn disturb(&mut self) {
        let at = self.random.usize(..2);
        let end = &mut self.ends[at];
        match self.random.u8(..24) {
            0 => end.ahead += ms(&mut self.random, 1, 100),
            1 => end.ahead += ms(&mut self.random, 100, 2500),
            // Both at once never find each other.
            2 | 3 if self.weather.moved != 1 - at || self.weather.calm_until < self.now => {
                end.address = address(self.random.u16(100..));
                (self.weather.moved, self.weather.calm_until) = (at, self.now + Duration::from_secs(8));
            }
            4 | 5 => end.reads_at = self.now + ms(&mut self.random, 10, 1200),
            _ => (),
        }
    }

    fn deliver(&mut self, flying: Flying) {
        let Flying { to, from, mark, mut bytes } = flying;
        let local = self.ends[to].local(self.now);
        self.foresee(to, local, &bytes);
        self.ends[to].connection.handle_datagram(local, from, mark, &mut bytes);
    }

    /// What is in a datagram of which the receiver must not deliver anything.
    fn foresee(&mut self, to: usize, local: Time, bytes: &[u8]) {
        let [a, b] = &mut self.ends;
        let (from, to) = if to == 1 { (a, b) } else { (b, a) };
        let Some(oracle) = from.oracle.as_mut().filter(|_| !to.connection.is_closed()) else { return };
        let Ok(Datagram::Data(datagram)) = parse(bytes) else { panic!("there is no such datagram") };
        let need = |unit| to.connection.need(unit);
        for frame in datagram.frames.map(|frame| frame.expect("it was written")) {
            match frame {
                Frame::Fragment(fragment) => {
                    if matches!(need(fragment.unit), Need::Until(until) if until <= local) {
                        oracle.over.insert(fragment.unit);
                    }
                }
                Frame::GivenUp(spans) => {
                    let units = spans.iter().flat_map(|span| span.first..=span.last);
                    oracle.over.extend(units.filter(|unit| need(*unit) != Need::No));
                }
                _ => (),
            }
        }
    }

    /// The application sends some units, or leaves out some.
    fn act(&mut self, at: usize) {
        let (random, end) = (&mut self.random, &mut self.ends[at]);
        let local = end.local(self.now);
        let most = end.oracle.as_ref().map_or(0, |oracle| oracle.flow.buffer_bytes.min(UNIT_BYTES));
        for _ in 0..random.u32(1..12).min(end.left) {
            let skipped = if random.u8(..12) == 0 { random.u64(1..12) } else { 0 };
            let unit = end.connection.next_unit() + skipped;
            let most = most.min([200, 1200, 4000, UNIT_BYTES][random.usize(..4)]);
            let bytes = if random.u8(..10) == 0 { 0 } else { random.u32(..=most) } as usize;
            let worth = scenario::worth(random);
            match end.send(local, unit, bytes, worth) {
                Ok(()) => end.left -= 1,
                Err(SendError::Full) => {
                    end.is_blocked = true;
                    break;
                }
                Err(error) => panic!("unit {unit}: {error}"),
            }
        }
        if random.u8(..20) == 0 {
            let unit = end.connection.next_unit() + random.u64(1..40);
            _ = end.connection.skip_to(local, unit);
        }
        let pause = if random.u8(..20) == 0 { ms(random, 100, 3000) } else { ms(random, 0, 60) };
        end.sends_at = self.now + pause;
    }

    /// Takes everything out of both.
    fn flush(&mut self) {
        let mut out = Vec::new();
        for at in [0, 1] {
            self.read(at);
            loop {
                let end = &mut self.ends[at];
                let (local, from) = (end.local(self.now), end.address);
                let Some(transmit) = end.connection.poll_transmit(local, &mut out) else { break };
                assert!(out.len() <= 9000);
                let number = Head::parse(&out).map(|head| head.number);
                assert!(self.numbers[at] < number, "{number:?} is used twice");
                self.numbers[at] = number;
                self.fly(1 - at, transmit.to, from, transmit.mark, &out);
            }
            self.read(at);
            self.ends[at].connection.check_accounts();
        }
    }

    fn fly(&mut self, to: usize, address: SocketAddr, from: SocketAddr, mark: Mark, bytes: &[u8]) {
        let arrivals = self.weather.fly(self.now, to, bytes.len(), mark, &mut self.random);
        if address != self.ends[to].address {
            return;
        }
        for (at, mark) in arrivals.into_iter().flatten() {
            self.count += 1;
            let flying = Flying { to, from, mark, bytes: bytes.to_vec() };
            self.flying.insert((at, self.count), flying);
        }
    }

    fn read(&mut self, at: usize) {
        let [a, b] = &mut self.ends;
        let (end, peer) = if at == 0 { (a, b) } else { (b, a) };
        let (local, reads) = (end.local(self.now), end.reads_at <= self.now);
        while reads && let Some(event) = end.connection.poll() {
            let theirs = || "units of a flow that there is not";
            match event {
                Event::Delivered { unit, data } => {
                    peer.oracle
                        .as_mut()
                        .unwrap_or_else(|| panic!("{}", theirs()))
                        .handle_delivered(unit, &data);
                }
                Event::Missed { unit } => {
                    peer.oracle.as_mut().unwrap_or_else(|| panic!("{}", theirs())).handle_missed(unit);
                }
                Event::GivenUp { unit, why } => {
                    let there = local + end.connection.rtt().smoothed();
                    end.oracle.as_mut().expect("it sends").handle_given_up(unit, why, there);
                }
                Event::Lost { unit } => end.oracle.as_mut().expect("it sends").handle_lost(unit),
                Event::Writable => {
                    assert!(core::mem::take(&mut end.is_blocked), "it was not asked for");
                    end.sends_at = self.now;
                }
                Event::Closed(closed) => {
                    end.is_told = true;
                    let told =
                        format!("{closed:?} {} {}", end.connection.describe(), peer.connection.describe());
                    assert!(self.is_finishing, "end {at}: {told}");
                    let is_done = closed.code == crate::packet::Code::DONE;
                    // What ends it may have been lost.
                    assert!(
                        is_done || (at == 1 && closed.code == crate::packet::Code::IDLE),
                        "end {at}: {told}"
                    );
                }
            }
        }
    }
}

impl End {
    fn new(now: Time, at: usize, flows: &[Option<Flow>; 2], random: &mut Rng) -> Self {
        let begin = Begin {
            local: ConnectionId([at as u8; ConnectionId::BYTES]),
            remote: ConnectionId([1 - at as u8; ConnectionId::BYTES]),
            address: address(1 - at as u16),
            outgoing: flows[at].clone(),
            incoming: flows[1 - at].clone(),
        };
        let ahead = Duration::from_micros(random.u64(..5_000_000));
        let secret = Secret::new([random.u8(..); 16]);
        let settings = scenario::settings(random);
        End {
            connection: Connection::new(now + ahead, begin, Box::new(Plain), settings, secret),
            address: address(at as u16),
            ahead,
            reads_at: now,
            left: if flows[at].is_some() { random.u32(1..120) } else { 0 },
            sends_at: now + ms(random, 0, 50),
            is_blocked: false,
            oracle: flows[at].clone().map(Oracle::new),
            is_told: false,
        }
    }

    pub(super) fn local(&self, now: Time) -> Time {
        now + self.ahead
    }

    fn is_to_send(&self, now: Time) -> bool {
        self.left > 0 && !self.is_blocked && self.sends_at <= now
    }

    fn send(&mut self, now: Time, unit: u64, bytes: usize, worth: Worth) -> Result<(), SendError> {
        let oracle = self.oracle.as_mut().ok_or(SendError::NoFlow)?;
        let (_, object) = oracle.flow.net.split(unit);
        let agreed = oracle.flow.class(object);
        self.connection.send(now, unit, data(unit, bytes), worth)?;
        let until = [agreed.validity, worth.useful_for].into_iter().flatten().min().map(|time| now + time);
        let class = worth.class.unwrap_or(agreed.repair).max(agreed.repair);
        oracle.given.insert(unit, Given { bytes, until, class });
        Ok(())
    }

    /// Nothing more is said of its units.
    fn finish_source(&mut self) {
        self.left = 0;
    }

    fn is_done(&self) -> bool {
        self.connection.is_all_over()
    }
}
