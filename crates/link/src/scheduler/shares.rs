//! Shares by weight: of the link among applications, of each application's among its parties, and of each
//! party's among its buffers. At each of the three levels it is start-time fair queueing (Goyal, Vin and Cheng,
//! "Start-time Fair Queueing", 1996, which has it in a hierarchy, too): each child has come as far as the bytes
//! that it has sent, over its weight, and the one that has come least is next.
//!
//! So a child that always has something to send gets its weight over the sum of all weights at least, but for a
//! packet of each. What others do not use is divided among those that have something, by their weights. One that
//! wakes begins where the one stands that was served last: it has saved nothing up, and owes nothing.
//!
//! A child is found to have nothing when it would be next. Then it has come no further than all others, so that
//! nothing about it needs to be kept.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::choose::{Candidate, Look, Part, Scheduler};
use crate::flow::Medium;
use crate::streams::Party;

/// How far one byte brings a child of weight 1.
const STRIDE: u128 = 1 << 40;

#[derive(Debug, Default)]
pub(super) struct Shares {
    media: Turns<Medium>,
    /// By medium.
    parties: [Turns<Party>; Medium::ALL.len()],
    /// The buffers of each party. An empty one stays, so that waking takes no memory: there are no more of them
    /// than there were parties at once.
    buffers: BTreeMap<(Medium, Party), Turns<usize>>,
    /// By buffer: whether it is among those, or has woken.
    awake: Vec<bool>,
    /// Those that have no place yet.
    woken: Vec<usize>,
    /// What the first of each level is to be charged with for the packet that was taken out last.
    taken: Option<(Part, usize)>,
}

/// The children of one parent that have something to send, by how far each has come; then by key.
#[derive(Debug)]
struct Turns<K> {
    waiting: BinaryHeap<Reverse<(u128, K)>>,
    /// How far the one had come that was next last.
    reached: u128,
}

impl<K: Ord> Default for Turns<K> {
    fn default() -> Self {
        Turns { waiting: BinaryHeap::new(), reached: 0 }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// A child has something to send. Returns whether it is the only one.
    fn join(&mut self, child: K) -> bool {
        self.waiting.push(Reverse((self.reached, child)));
        self.waiting.len() == 1
    }

    /// The child that is next.
    fn first(&mut self) -> Option<K> {
        let Reverse((come, child)) = *self.waiting.peek()?;
        self.reached = come;
        Some(child)
    }

    /// The first one has nothing to send.
    fn leave(&mut self) {
        self.waiting.pop();
    }

    /// The first one has sent these bytes.
    fn charge(&mut self, bytes: usize, weight: u64) {
        if let Some(mut first) = self.waiting.peek_mut() {
            first.0.0 += bytes as u128 * STRIDE / u128::from(weight.max(1));
        }
    }
}

impl Shares {
    /// The packet that was taken out last has gone. Nothing has joined since, so that the first of each level
    /// are still those whose it was.
    fn settle(&mut self) {
        let Some((part, bytes)) = self.taken.take() else { return };
        if let Some(buffers) = self.buffers.get_mut(&(part.medium, part.party)) {
            buffers.charge(bytes, part.buffer_weight);
        }
        self.parties[part.medium as usize].charge(bytes, part.party_weight);
        self.media.charge(bytes, part.medium_weight);
    }

    /// A buffer has its turns where its part says.
    fn join(&mut self, buffer: usize, Part { medium, party, .. }: Part) {
        let is_first = self.buffers.entry((medium, party)).or_default().join(buffer);
        if is_first && self.parties[medium as usize].join(party) {
            self.media.join(medium);
        }
    }
}

impl Scheduler for Shares {
    fn wakes(&mut self, buffer: usize) {
        if self.awake.len() <= buffer {
            self.awake.resize(buffer + 1, false);
        }
        if !core::mem::replace(&mut self.awake[buffer], true) {
            self.woken.push(buffer);
        }
    }

    fn next(&mut self, look: Look<'_>) -> Option<usize> {
        self.settle();
        loop {
            while let Some(buffer) = self.woken.pop() {
                match look(buffer) {
                    Some(candidate) => self.join(buffer, candidate.part),
                    None => self.awake[buffer] = false,
                }
            }
            let medium = self.media.first()?;
            let parties = &mut self.parties[medium as usize];
            let Some(party) = parties.first() else {
                self.media.leave();
                continue;
            };
            let buffers = self.buffers.get_mut(&(medium, party));
            let Some((buffers, buffer)) = buffers.and_then(|all| all.first().map(|first| (all, first)))
            else {
                parties.leave();
                continue;
            };
            match look(buffer) {
                Some(Candidate { bytes, part, .. }) if (part.medium, part.party) == (medium, party) => {
                    self.taken = Some((part, bytes));
                    return Some(buffer);
                }
                // A part of another service from now on.
                Some(_) => self.woken.push(buffer),
                None => self.awake[buffer] = false,
            }
            buffers.leave();
        }
    }

    fn spared(&mut self) {
        self.taken = None;
    }
}

#[cfg(test)]
mod tests;
