//! Two ends in virtual time, and what is between them.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::net::{Builder, Carries, Interval, Net, Place, Rule};
use outflow_petri::service::{Class, Flow, ServiceClass};

use super::{Begin, Closed, Connection, Event, SendError, Settings, Worth};
use crate::packet::{ConnectionId, Mark};
use crate::protection::{Plain, Protection};
use crate::save::{SavedConnection, Services};
use crate::secret::Secret;

/// What happens to datagrams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) delay: Duration,
    /// Up to so much more, each datagram by itself: some overtake others.
    pub(super) jitter: Duration,
    /// Of a thousand.
    pub(super) lost: u32,
    pub(super) doubled: u32,
    /// Longer ones do not get through.
    pub(super) datagram_bytes: usize,
}

impl Weather {
    pub(super) const FAIR: Weather = Weather {
        delay: Duration::from_millis(20),
        jitter: Duration::ZERO,
        lost: 0,
        doubled: 0,
        datagram_bytes: 1500,
    };
}

/// Another one that goes on with what a connection has saved, as bytes and back, if its flows are short enough to
/// have been agreed on.
pub(super) fn handed_over(connection: &Connection) -> Option<Connection> {
    let bytes = minicbor::to_vec(connection.save().ok()?).expect("memory takes all that is written to it");
    let saved: SavedConnection = minicbor::decode(&bytes).expect("it was just written");
    let again = Connection::restore(&saved, Box::new(Plain), connection.settings, &mut Services::new());
    let again = again.expect("it was just saved");
    // Congestion control keeps to the bounds of its options, whatever it was before.
    let same = SavedConnection { path: saved.path.clone(), ..again.save().expect("it was saved before") };
    assert_eq!(same, saved, "nothing is forgotten");
    Some(again)
}

/// A datagram under way.
#[derive(Debug, Clone)]
struct Flying {
    to_server: bool,
    from: SocketAddr,
    mark: Mark,
    bytes: Vec<u8>,
}

/// What an application was told.
#[derive(Debug, Default)]
pub(super) struct AppLog {
    pub(super) delivered: Vec<(u64, Bytes, Time)>,
    pub(super) missed: Vec<(u64, Time)>,
    pub(super) given_up: Vec<u64>,
    pub(super) lost: Vec<u64>,
    pub(super) closed: Option<Closed>,
    pub(super) writable: usize,
    pub(super) buffered_most: u64,
}

/// A sender, the client, and a receiver, the server.
pub(super) struct Pair {
    pub(super) now: Time,
    pub(super) weather: Weather,
    random: fastrand::Rng,
    pub(super) client: Connection,
    pub(super) server: Connection,
    pub(super) client_address: SocketAddr,
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    pub(super) datagrams: u64,
    pub(super) at_client: AppLog,
    pub(super) at_server: AppLog,
    /// Whether the server's application reads.
    pub(super) reads: bool,
    /// All that was sent, and by which end, if it is to be remembered.
    pub(super) record: Option<Vec<(Time, bool, Vec<u8>)>>,
}

pub(super) fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

impl Pair {
    pub(super) fn new(flow: &Flow, weather: Weather, seed: u64) -> Self {
        Pair::with(flow, weather, seed, Settings::default())
    }

    pub(super) fn with(flow: &Flow, weather: Weather, seed: u64, settings: Settings) -> Self {
        Pair::protected(flow, weather, seed, settings, |_| Box::new(Plain))
    }

    pub(super) fn protected(
        flow: &Flow,
        weather: Weather,
        seed: u64,
        settings: Settings,
        protection: fn(bool) -> Box<dyn Protection>,
    ) -> Self {
        flow.check().expect("a flow");
        let (now, ids) = (
            Time::from_millis(1000),
            [ConnectionId([1; ConnectionId::BYTES]), ConnectionId([2; ConnectionId::BYTES])],
        );
        let make = |is_client: bool| {
            let (local, remote) = if is_client { (ids[0], ids[1]) } else { (ids[1], ids[0]) };
            let begin = Begin {
                local,
                remote,
                address: address(if is_client { 2 } else { 1 }),
                outgoing: is_client.then(|| flow.clone()),
                incoming: (!is_client).then(|| flow.clone()),
            };
            let secret = Secret::new([seed as u8 ^ u8::from(is_client); 16]);
            Connection::new(now, begin, protection(is_client), settings, secret)
        };
        Pair {
            now,
            weather,
            random: fastrand::Rng::with_seed(seed),
            client: make(true),
            server: make(false),
            client_address: address(1),
            flying: BTreeMap::new(),
            count: 0,
            datagrams: 0,
            at_client: AppLog::default(),
            at_server: AppLog::default(),
            reads: true,
            record: None,
        }
    }

    pub(super) fn send(&mut self, unit: u64, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.send_worth(unit, data, Worth::default())
    }

    pub(super) fn send_worth(
        &mut self,
        unit: u64,
        data: impl Into<Bytes>,
        worth: Worth,
    ) -> Result<(), SendError> {
        let sent = self.client.send(self.now, unit, data.into(), worth);
        self.flush();
        sent
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Lets time pass until both are closed, or so much has passed.
    pub(super) fn finish(&mut self, time: Duration) {
        self.client.finish(self.now);
        let end = self.now + time;
        while self.now < end && !(self.client.is_closed() && self.server.is_closed()) {
            self.run(Duration::from_millis(50));
        }
        self.read();
    }

    fn run_until(&mut self, end: Time) {
        self.flush();
        let mut stuck = 0;
        loop {
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timers = [self.client.next_timeout(), self.server.next_timeout()];
            let timers = timers.map(|timer| timer.map(|(at, _)| at));
            let next = timers.into_iter().chain([flying]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            // What is due is done when it is asked for.
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            assert!(stuck < 100, "both ends are to be called at once, again and again");
            self.now = self.now.max(next);
            self.deliver();
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.flush();
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Flying { to_server, from, mark, mut bytes } = entry.remove();
            let to = if to_server { &mut self.server } else { &mut self.client };
            to.handle_datagram(self.now, from, mark, &mut bytes);
        }
    }

    /// Takes everything out of both.
    pub(super) fn flush(&mut self) {
        self.read();
        let mut out = Vec::new();
        for to_server in [true, false] {
            loop {
                let end = if to_server { &mut self.client } else { &mut self.server };
                let Some(transmit) = end.poll_transmit(self.now, &mut out) else { break };
                let from = if to_server { self.client_address } else { address(2) };
                if let Some(record) = &mut self.record {
                    record.push((self.now, to_server, out.clone()));
                }
                // An end that moved is not at its old address any more.
                let is_there = transmit.to == if to_server { address(2) } else { self.client_address };
                if is_there && out.len() <= self.weather.datagram_bytes {
                    self.fly(Flying { to_server, from, mark: transmit.mark, bytes: out.clone() });
                }
            }
        }
        self.read();
    }

    fn fly(&mut self, flying: Flying) {
        let weather = self.weather;
        let mut copies = 1 + u32::from(self.random.u32(..1000) < weather.doubled);
        copies -= u32::from(self.random.u32(..1000) < weather.lost);
        self.datagrams += 1;
        for _ in 0..copies {
            let jitter = self.random.u64(..=weather.jitter.as_micros() as u64);
            self.count += 1;
            let at = self.now + weather.delay + Duration::from_micros(jitter);
            self.flying.insert((at, self.count), flying.clone());
        }
    }

    /// Everything that is under way, and whether to the server, for an attacker that listens.
    pub(super) fn heard(&self) -> Vec<(bool, Vec<u8>)> {
        self.flying.values().map(|flying| (flying.to_server, flying.bytes.clone())).collect()
    }

    /// A datagram comes from another host.
    pub(super) fn inject(&mut self, to_server: bool, from: SocketAddr, mark: Mark, mut bytes: Vec<u8>) {
        let to = if to_server { &mut self.server } else { &mut self.client };
        to.handle_datagram(self.now, from, mark, &mut bytes);
    }

    fn read(&mut self) {
        let ends = [
            (&mut self.client, &mut self.at_client, true),
            (&mut self.server, &mut self.at_server, self.reads),
        ];
        for (end, told, reads) in ends {
            told.buffered_most = told.buffered_most.max(end.buffered_bytes().1);
            while reads && let Some(event) = end.poll() {
                match event {
                    Event::Delivered { unit, data } => told.delivered.push((unit, data, self.now)),
                    Event::Missed { unit } => told.missed.push((unit, self.now)),
                    Event::GivenUp { unit, .. } => told.given_up.push(unit),
                    Event::Lost { unit } => told.lost.push(unit),
                    Event::Writable => told.writable += 1,
                    Event::Closed(closed) => told.closed = Some(closed),
                }
            }
        }
    }
}

/// Units that are delivered in order, in rounds of `objects`; each is waited for so long.
pub(super) fn chain(objects: u32, latest: Option<Duration>) -> Net {
    let mut builder = Builder::new();
    let ids: Vec<_> = (0..objects).map(|i| builder.transition(format!("t{i}").as_str(), Rule::And)).collect();
    for i in 0..objects as usize {
        let before = (i + objects as usize - 1) % objects as usize;
        builder.place(Place {
            name: format!("p{i}").as_str().into(),
            carries: Carries::Object,
            producer: ids[before],
            consumer: ids[i],
            interval: Interval { latest, ..Interval::ALWAYS },
            initial: u32::from(i == 0),
        });
    }
    builder.build().expect("a net")
}

/// A flow over a net, of one class.
pub(super) fn flow(net: Net, repair: Class, validity: Option<Duration>) -> Flow {
    Flow {
        classes: vec![ServiceClass { repair, validity }],
        class_of: vec![0; net.objects()],
        net: Arc::new(net),
        rounds: 8,
        buffer_bytes: 1 << 20,
        period: None,
        is_dependent: false,
    }
}

/// Of different lengths, some of them of several datagrams.
pub(super) fn data(unit: u64) -> Bytes {
    let bytes = match unit % 7 {
        0 => 0,
        1 => 5000,
        other => 150 * other as usize,
    };
    (0..bytes).map(|at| (at as u64 ^ unit) as u8).collect()
}
