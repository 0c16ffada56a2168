//! What elements show of themselves.

use outflow_packet::Drops;

use super::Item;
use super::frames::Frames;
use super::stage::Node;
use crate::limits::{FORGETS, LONG, LONG_TURN, SAMPLE_EVERY};

/// What is counted of an element's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauge {
    /// Packets that came in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that went out.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Batches.
    pub batches: u64,
    /// Nanoseconds that the batches took that were timed.
    pub sampled_ns: u64,
    /// Packets of those batches.
    pub sampled_packets: u64,
    /// About the longest time that a batch took lately, nanoseconds: it falls with each that is timed.
    pub turn_ns: u64,
    /// Batches that took longer than [`LONG_TURN`].
    pub long_turns: u64,
}

impl Gauge {
    pub(super) fn enters(&mut self, batch: &[Item]) {
        self.batches += 1;
        self.packets_in += batch.len() as u64;
        self.bytes_in += batch.iter().map(Item::len).sum::<usize>() as u64;
    }

    pub(super) fn leaves(&mut self, batch: &[Item]) {
        self.packets_out += batch.len() as u64;
        self.bytes_out += batch.iter().map(Item::len).sum::<usize>() as u64;
    }

    /// A packet that left was taken by nothing.
    pub(super) fn untaken(&mut self, item: &Item) {
        self.packets_out -= 1;
        self.bytes_out -= item.len() as u64;
    }

    /// Whether the batch that came in last is one to be timed, if it is not of whole frames.
    pub(super) fn is_sampled(&self) -> bool {
        self.batches % SAMPLE_EVERY == 1 || u128::from(self.turn_ns) > LONG.as_nanos()
    }

    pub(super) fn sampled(&mut self, nanos: u64, packets: usize) {
        self.sampled_ns += nanos;
        self.sampled_packets += packets as u64;
        self.turn_ns = nanos.max(self.turn_ns - self.turn_ns.div_ceil(FORGETS));
        self.long_turns += u64::from(u128::from(nanos) > LONG_TURN.as_nanos());
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: &Gauge) {
        self.packets_in += other.packets_in;
        self.bytes_in += other.bytes_in;
        self.packets_out += other.packets_out;
        self.bytes_out += other.bytes_out;
        self.batches += other.batches;
        self.sampled_ns += other.sampled_ns;
        self.sampled_packets += other.sampled_packets;
        self.turn_ns = self.turn_ns.max(other.turn_ns);
        self.long_turns += other.long_turns;
    }

    /// Nanoseconds a packet, as far as was timed.
    pub fn packet_ns(&self) -> u64 {
        self.sampled_ns.checked_div(self.sampled_packets).unwrap_or(0)
    }

    /// Nanoseconds of work so far, estimated from what was timed.
    pub fn work_ns(&self) -> u64 {
        let estimate = u128::from(self.sampled_ns) * u128::from(self.packets_in)
            / u128::from(self.sampled_packets.max(1));
        u64::try_from(estimate).unwrap_or(u64::MAX)
    }
}

/// What an element shows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// The context that it runs in; empty for the stream's own worker.
    pub context: String,
    /// Its packets.
    pub gauge: Gauge,
    /// What it left out, by reason.
    pub drops: Drops,
    /// What went wrong last; why it works on nothing, if it cannot.
    pub fault: Option<String>,
    /// How often something went wrong.
    pub faults: u64,
    /// It cannot work on what comes in.
    pub unfit: bool,
    /// It lets everything pass as it is.
    pub bypass: bool,
    /// What comes out of it is wanted.
    pub wanted: bool,
    /// Bytes of memory that it holds, where it knows.
    pub memory_bytes: u64,
}

impl Node {
    pub(super) fn report(&self, context: &str) -> NodeReport {
        NodeReport {
            name: self.name.clone(),
            kind: self.kind.name,
            context: context.to_owned(),
            gauge: self.gauge,
            drops: self.tally.drops,
            fault: self.unfit.as_ref().map(ToString::to_string).or_else(|| self.tally.fault.clone()),
            faults: self.tally.faults,
            unfit: self.unfit.is_some(),
            bypass: self.bypass,
            wanted: self.wanted,
            memory_bytes: self.tally.memory_bytes + self.frames.as_ref().map_or(0, Frames::bytes) as u64,
        }
    }
}
