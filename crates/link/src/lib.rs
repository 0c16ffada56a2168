//! An outgoing bottleneck: a rate, buffers, a policy that says which flow loses what when they are full, and
//! a scheduler that says which buffer is next (ABD, section 2.3).
//!
//! A [`Link`] is asked and answers, like all of the core: packets are offered as they come, with what they mean,
//! and are taken out when their time has come. So it is the same in front of a real interface and in virtual
//! time. What a packet is besides that is its owner's business.

mod admission;
mod arrival;
mod buffer;
mod change;
mod damage;
mod delays;
mod discard;
mod flow;
mod follow;
mod hold;
pub mod limits;
mod scheduler;
mod similar;
mod streams;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::BTreeMap;

use outflow_media::Time;
use outflow_packet::DropReason;
pub use outflow_turns::Part as Share;
use slab::Slab;

pub use admission::{Admission, Declared, NoRoom};
pub use buffer::{Dropped, Waiting};
pub use damage::Damage;
pub use delays::Delays;
pub use discard::{Grouping, Policy, Unit};
pub use flow::{ApplicationId, FlowId, Medium};
pub use follow::{Follow, Reported};
pub use scheduler::{Scheduling, Weights};
pub use similar::Similar;

use crate::limits::OFFERED_HALVED_AFTER;
use buffer::{Buffer, Sifted};
use discard::Discard;
use hold::Hold;
use scheduler::{Candidate, Part, Scheduler};
use streams::{Party, Streams};

/// How much a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// This many bytes.
    Bytes(usize),
    /// This many bytes for each flow that shares it: it grows and shrinks as flows come and go.
    PerFlow(usize),
}

/// What a link is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkOptions {
    /// Bits a second.
    pub rate_bps: u64,
    /// Which flows share a buffer, and which of them loses what when it is full.
    pub policy: Policy,
    /// What is discarded at least.
    pub unit: Unit,
    /// Which buffer is next.
    pub scheduling: Scheduling,
    /// What each class below the highest that has something is promised of the bytes, where the scheduler heeds classes.
    pub lower_share: Share,
    /// How much a buffer holds.
    pub size: Size,
    /// A caller that asks later than that loses the time; less is made up for by asking again at once.
    pub slack: Duration,
}

/// A link and what waits for it.
#[derive(Debug)]
pub struct Link<T> {
    options: LinkOptions,
    /// How much the buffers of a medium hold, where that is not as for all.
    sizes: [Option<Size>; Medium::ALL.len()],
    /// What each medium weighs among them, where the scheduler heeds it.
    weights: [u32; Medium::ALL.len()],
    useful_for: Option<Duration>,
    flows: Slab<Flow>,
    queues: Slab<Queue<T>>,
    by_key: BTreeMap<Key, usize>,
    scheduler: Box<dyn Scheduler>,
    /// Until then the packet that went last takes the link.
    busy_until: Time,
    /// When what was offered is halved next.
    halves: Time,
    dropped: Vec<Dropped<T>>,
    /// What came of frames that do not show yet what they are.
    held: Hold<T>,
    /// Bytes that were offered lately to all queues there are.
    offered: u64,
    /// Packets that wait.
    packets: usize,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    application: ApplicationId,
    class: u8,
    queue: usize,
    stream: Party,
    /// What its stream weighs among those of its application.
    weight: u32,
    /// What it weighs among those of its stream.
    own_weight: u32,
}

/// What flows have in common that share a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Link,
    Flow(FlowId),
    Application(ApplicationId),
}

#[derive(Debug)]
struct Queue<T> {
    key: Key,
    /// How much it holds, if not as the options say.
    size: Option<Size>,
    buffer: Buffer<T>,
    discard: Box<dyn Discard>,
    /// Flows that share it.
    flows: usize,
    /// Bytes that were offered to it lately.
    offered: u64,
    class: u8,
    /// The application of its flows, the party in that, and what weighs there.
    medium: Medium,
    party: Party,
    streams: Streams,
    /// What it weighs among the buffers of its party: what its flow does, if it has one of its own.
    weight: u32,
}

/// A packet that takes the link.
#[derive(Debug)]
pub struct Departed<T> {
    /// What is known of it.
    pub packet: Waiting,
    /// The packet itself.
    pub item: T,
    /// When all of it is through.
    pub until: Time,
}

/// What a link answers when it is asked for the next packet.
#[derive(Debug)]
pub enum Next<T> {
    /// This one goes now.
    Departs(Departed<T>),
    /// Ask again then.
    Later(Time),
    /// Nothing waits.
    Nothing,
}

impl<T> Link<T> {
    /// One that is idle.
    pub fn new(options: LinkOptions) -> Self {
        Link {
            options,
            sizes: Default::default(),
            weights: [1; Medium::ALL.len()],
            useful_for: None,
            flows: Slab::new(),
            queues: Slab::new(),
            by_key: BTreeMap::new(),
            scheduler: options.scheduling.begin(options.lower_share),
            busy_until: Time::ZERO,
            halves: Time::ZERO + OFFERED_HALVED_AFTER,
            dropped: Vec::new(),
            held: Hold::default(),
            offered: 0,
            packets: 0,
        }
    }

    /// Its options.
    pub fn options(&self) -> &LinkOptions {
        &self.options
    }

    /// Another rate, from the next packet on.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.options.rate_bps = rate_bps;
    }

    /// How long packets are useful from when they come, if nothing says so before: later ones do not go.
    pub fn set_useful_for(&mut self, useful_for: Option<Duration>) {
        self.useful_for = useful_for;
    }

    /// A flow comes. Smaller classes go sooner, where the scheduler heeds them. It is a stream by itself, with the
    /// weight 1, until [`Link::set_stream`] says otherwise.
    pub fn add_flow(&mut self, application: ApplicationId, class: u8) -> FlowId {
        let entry = self.flows.vacant_entry();
        let id = FlowId(entry.key());
        entry.insert(Flow {
            application,
            class,
            queue: 0,
            stream: Party::Flow(id),
            weight: 1,
            own_weight: 1,
        });
        self.attach(id);
        id
    }

    /// Gives a flow its place: the buffer of those that it shares one with.
    fn attach(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get(id.0) else { return };
        let Flow { application, class, stream, weight, own_weight, .. } = *flow;
        let (key, size) = match self.options.policy.grouping() {
            Grouping::Link => (Key::Link, None),
            Grouping::Flow => (Key::Flow(id), self.sizes[application.medium() as usize]),
            Grouping::Application => {
                (Key::Application(application), self.sizes[application.medium() as usize])
            }
        };
        let queues = &mut self.queues;
        let at = *self.by_key.entry(key).or_insert_with(|| {
            let discard = self.options.policy.begin(self.options.unit);
            let entry = queues.vacant_entry();
            let at = entry.key();
            entry.insert(Queue {
                key,
                size,
                buffer: Buffer::default(),
                discard,
                flows: 0,
                offered: 0,
                class,
                medium: application.medium(),
                party: Party::Buffer(at),
                streams: Streams::default(),
                weight: 1,
            });
            at
        });
        if let Some(queue) = queues.get_mut(at) {
            queue.flows += 1;
            queue.streams.add(stream, weight);
            if matches!(key, Key::Flow(_)) {
                // The buffer may be that of a flow before with this number, of which something waits.
                (queue.medium, queue.party, queue.weight) = (application.medium(), stream, own_weight);
            }
            queue.class = queue.class.min(class);
        }
        if let Some(flow) = self.flows.get_mut(id.0) {
            flow.queue = at;
        }
    }

    /// A flow ends. What waits of it goes as it would have.
    pub fn remove_flow(&mut self, id: FlowId) {
        self.release_at_end(id);
        let Some(flow) = self.flows.try_remove(id.0) else { return };
        self.detach(id, &flow);
    }

    fn detach(&mut self, id: FlowId, flow: &Flow) {
        let Some(queue) = self.queues.get_mut(flow.queue) else { return };
        queue.flows -= 1;
        queue.streams.remove(flow.stream);
        queue.discard.forget(id);
        let others = self.flows.iter().filter(|(key, other)| *key != id.0 && other.queue == flow.queue);
        queue.class = others.map(|(_, other)| other.class).min().unwrap_or(flow.class);
        self.let_go(flow.queue);
    }

    /// The application of a flow.
    pub fn application(&self, id: FlowId) -> Option<ApplicationId> {
        self.flows.get(id.0).map(|flow| flow.application)
    }

    /// Whether anything was dropped since.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Takes out what was dropped since.
    pub fn dropped(&mut self) -> impl Iterator<Item = Dropped<T>> + '_ {
        self.dropped.drain(..)
    }

    /// The next packet, if its time has come.
    pub fn depart(&mut self, now: Time) -> Next<T> {
        if self.packets == 0 {
            return Next::Nothing;
        }
        if self.busy_until > now {
            return Next::Later(self.busy_until);
        }
        let by_offer = self.options.scheduling.weights() == Weights::Offered;
        let mean_weight = if by_offer { self.offered / self.queues.len().max(1) as u64 } else { 1 };
        let (queues, weights) = (&self.queues, &self.weights);
        let look = |at: usize| {
            let queue = queues.get(at)?;
            let bytes = queue.buffer.first()?.bytes;
            let weight = if by_offer { queue.offered } else { 1 };
            let part = Part {
                medium: queue.medium,
                medium_weight: weights[queue.medium as usize].into(),
                party: queue.party,
                party_weight: queue.streams.weight(),
                buffer_weight: queue.weight.into(),
            };
            Some(Candidate { bytes, weight, mean_weight, class: queue.class, part })
        };
        let Some(at) = self.scheduler.next(&look) else { return Next::Nothing };
        let Some(queue) = self.queues.get_mut(at) else { return Next::Nothing };
        let Some((place, packet, item)) = queue.buffer.pop() else { return Next::Nothing };
        self.packets -= 1;
        if packet.tag.deadline.is_some_and(|deadline| deadline < now) {
            let before = self.dropped.len();
            let mut held = Sifted { buffer: &mut queue.buffer, dropped: &mut self.dropped };
            queue.discard.expires(&packet, place, &mut held);
            self.packets -= self.dropped.len() - before;
            self.dropped.push(Dropped { packet, item, reason: DropReason::Late });
            self.scheduler.spared();
            self.let_go(at);
            return self.depart(now);
        }
        queue.discard.departs(&packet, place);
        let is_over = queue.is_over();
        let missed = now.since(self.busy_until);
        let begins = if missed > self.options.slack { now } else { self.busy_until };
        self.busy_until = begins + self.takes(packet.bytes);
        if is_over {
            self.let_go(at);
        }
        Next::Departs(Departed { packet, item, until: self.busy_until })
    }

    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes and packets that wait.
    pub fn waiting(&self) -> (usize, usize) {
        let (bytes, packets) = self.held.holds();
        (self.buffered() + bytes, self.packets + packets)
    }

    /// Bytes in buffers.
    fn buffered(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.buffer.bytes()).sum()
    }

    fn takes(&self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8_000_000_000 / u128::from(self.options.rate_bps.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// What was offered long ago counts less.
    fn halve_offered(&mut self, now: Time) {
        if now >= self.halves {
            self.halves = now + OFFERED_HALVED_AFTER;
            self.queues.iter_mut().for_each(|(_, queue)| queue.offered /= 2);
            self.offered = self.queues.iter().map(|(_, queue)| queue.offered).sum();
        }
    }

    /// A buffer goes with the last packet behind the last flow.
    fn let_go(&mut self, at: usize) {
        if self.queues.get(at).is_some_and(Queue::is_over) {
            let queue = self.queues.remove(at);
            self.by_key.remove(&queue.key);
            self.offered -= queue.offered;
        }
    }
}

impl<T> Queue<T> {
    fn is_over(&self) -> bool {
        self.flows == 0 && self.buffer.packets() == 0
    }
}

impl Size {
    /// Of a buffer that `flows` flows share.
    fn of(self, flows: usize) -> usize {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::PerFlow(bytes) => bytes.saturating_mul(flows.max(1)),
        }
    }
}
