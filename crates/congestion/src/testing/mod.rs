//! A bottleneck in virtual time: one link with a drop-tail buffer, and senders that share it. What happens
//! depends on the seed alone.

mod link;
mod ours;
mod record;
mod tcp;

use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;

use self::link::Packet;
pub use self::link::{Link, Random};
pub use self::ours::{App, Ours};
pub use self::record::Record;
pub use self::tcp::{Growth, Tcp};
use super::Acked;

/// A sender.
pub trait Sender: fmt::Debug {
    /// Number and bytes of a packet that goes now.
    fn send(&mut self, now: Time) -> Option<(u64, u64)>;
    /// When to ask again, if nothing else happens.
    fn wake(&self, now: Time) -> Option<Time>;
    /// Packets were acknowledged.
    fn acked(&mut self, now: Time, batch: &[Acked], rtt: Duration);
    /// Time has passed.
    fn timeout(&mut self, now: Time);
    /// A packet came. Whether that is a reason to ask again what is to be sent, and when.
    fn arrived(&mut self, _now: Time, _number: u64) -> bool {
        false
    }
    /// The same, if it is one of ours.
    fn as_ours(&self) -> Option<&Ours> {
        None
    }
}

/// A sender's way.
#[derive(Debug, Clone, Copy)]
pub struct TestPath {
    /// Round trip without queues.
    pub rtt_ms: u64,
    /// When it begins to send.
    pub start_ms: u64,
    /// When it ends.
    pub stop_ms: u64,
    /// The receiver answers so long after the first packet that it did not answer.
    pub ack_ms: u64,
    /// The receiver's clock runs so much faster, in millionths.
    pub drift_ppm: i64,
    /// When its clock steps, and by how many milliseconds.
    pub step_ms: Option<(u64, i64)>,
    /// Packets take up to so much longer, at random, and stay in order.
    pub jitter_ms: u64,
}

impl TestPath {
    /// With this round trip, without end and without flaws.
    pub fn of(rtt_ms: u64) -> Self {
        TestPath {
            rtt_ms,
            start_ms: 0,
            stop_ms: u64::MAX,
            ack_ms: 0,
            drift_ppm: 0,
            step_ms: None,
            jitter_ms: 0,
        }
    }

    /// The same, begun later.
    pub fn from(self, start_ms: u64) -> Self {
        TestPath { start_ms, ..self }
    }

    /// The same, with an end.
    pub fn until(self, stop_ms: u64) -> Self {
        TestPath { stop_ms, ..self }
    }

    /// The receiver's clock.
    fn clock(&self, now: Time) -> Time {
        let mut nanos = 7_000_000_000_000 + now.as_nanos() as i64;
        nanos += now.as_nanos() as i64 / 1000 * self.drift_ppm / 1000;
        if let Some((_, by)) = self.step_ms.filter(|(at, _)| now.as_millis() >= *at) {
            nanos += by * 1_000_000;
        }
        Time::from_nanos(nanos.unsigned_abs())
    }
}

#[derive(Debug)]
struct Flow {
    sender: Box<dyn Sender>,
    way: TestPath,
    /// Received and not answered, and when the newest came.
    pending: Vec<Acked>,
    newest: Time,
    /// When the last packet on the way arrives.
    last: Time,
    wakes: Option<Time>,
}

#[derive(Debug)]
enum Event {
    Served,
    Arrived(Packet),
    Answer(usize),
    Answered(usize, Vec<Acked>, Duration),
    Wake(usize),
    Rate(u64),
    Sample,
}

/// Time between two samples of the queue.
const SAMPLE: Duration = Duration::from_millis(5);

/// A link and its senders, in virtual time.
#[derive(Debug)]
pub struct World {
    now: Time,
    link: Link,
    random: Random,
    flows: Vec<Flow>,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    /// What happened so far.
    pub record: Record,
}

impl World {
    /// Without any sender.
    pub fn new(link: Link) -> Self {
        let mut world = World {
            now: Time::ZERO,
            link,
            random: Random(99),
            flows: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            record: Record::default(),
        };
        world.at(Time::ZERO, Event::Sample);
        world
    }

    fn at(&mut self, time: Time, event: Event) {
        self.sequence += 1;
        self.events.insert((time.max(self.now), self.sequence), event);
    }

    /// Adds a sender. Answers the number of its flow.
    pub fn add(&mut self, way: TestPath, sender: impl Sender + 'static) -> usize {
        let flow = Flow {
            sender: Box::new(sender),
            way,
            pending: Vec::new(),
            newest: Time::ZERO,
            last: Time::ZERO,
            wakes: None,
        };
        self.flows.push(flow);
        self.record.add();
        let number = self.flows.len() - 1;
        self.at(Time::from_millis(way.start_ms), Event::Wake(number));
        number
    }

    /// The link has another rate from then on.
    pub fn rate_from(&mut self, ms: u64, bps: u64) {
        self.at(Time::from_millis(ms), Event::Rate(bps));
    }

    /// A sender, which has to be one of ours.
    pub fn ours(&self, flow: usize) -> &Ours {
        self.flows[flow].sender.as_ours().expect("a flow of ours")
    }

    /// Lets time pass.
    pub fn run_to(&mut self, ms: u64) {
        let end = Time::from_millis(ms);
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((now, _), event) = entry.remove_entry();
            self.now = now;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Served => self.served(),
            Event::Arrived(packet) => self.arrived(packet),
            Event::Answer(flow) => self.answer(flow),
            Event::Answered(flow, batch, rtt) => {
                self.flows[flow].sender.acked(now, &batch, rtt);
                self.run_flow(flow);
            }
            Event::Wake(flow) => {
                if self.flows[flow].wakes == Some(now) {
                    self.flows[flow].wakes = None;
                }
                self.flows[flow].sender.timeout(now);
                self.run_flow(flow);
            }
            Event::Rate(bps) => self.link.rate_bps = bps,
            Event::Sample => {
                self.record.sample(self.link.queue(), self.link.rate_bps, SAMPLE);
                self.at(now + SAMPLE, Event::Sample);
            }
        }
    }

    /// Lets a sender send what it may, and remembers when to ask it again.
    fn run_flow(&mut self, number: usize) {
        let now = self.now;
        let flow = &mut self.flows[number];
        if now < Time::from_millis(flow.way.start_ms) || now.as_millis() >= flow.way.stop_ms {
            return;
        }
        let mut begins = false;
        while let Some((packet, bytes)) = flow.sender.send(now) {
            begins |= self.link.offer(Packet { flow: number, number: packet, bytes, sent: now });
        }
        let wake = flow.sender.wake(now).map(|at| at.max(now + Duration::from_micros(1)));
        let sooner = wake.filter(|at| flow.wakes.is_none_or(|before| *at < before || before <= now));
        if let Some(at) = sooner {
            flow.wakes = Some(at);
            self.at(at, Event::Wake(number));
        }
        if begins {
            self.serve();
        }
    }

    fn serve(&mut self) {
        if let Some(time) = self.link.serving() {
            self.at(self.now + time, Event::Served);
        }
    }

    fn served(&mut self) {
        let (packet, goes_on) = self.link.served();
        self.record.served(packet.bytes);
        if goes_on {
            let flow = &mut self.flows[packet.flow];
            let jitter = Duration::from_millis(flow.way.jitter_ms).mul_f64(self.random.unit());
            flow.last = flow.last.max(self.now + Duration::from_millis(flow.way.rtt_ms) / 2 + jitter);
            let at = flow.last;
            self.at(at, Event::Arrived(packet));
        }
        self.serve();
    }

    fn arrived(&mut self, packet: Packet) {
        let now = self.now;
        self.record.delivered(now, packet.flow, packet.bytes);
        let flow = &mut self.flows[packet.flow];
        let Packet { number, bytes, sent, .. } = packet;
        flow.pending.push(Acked { number, bytes, sent, received: flow.way.clock(now) });
        flow.newest = now;
        if flow.pending.len() == 1 {
            let due = now + Duration::from_millis(flow.way.ack_ms);
            self.at(due, Event::Answer(packet.flow));
        }
        if self.flows[packet.flow].sender.arrived(now, number) {
            self.run_flow(packet.flow);
        }
    }

    fn answer(&mut self, number: usize) {
        let now = self.now;
        let flow = &mut self.flows[number];
        let batch = core::mem::take(&mut flow.pending);
        let back = Duration::from_millis(flow.way.rtt_ms) / 2;
        let Some(newest) = batch.last() else { return };
        let rtt = flow.newest.since(newest.sent) + back;
        self.at(now + back, Event::Answered(number, batch, rtt));
    }
}
