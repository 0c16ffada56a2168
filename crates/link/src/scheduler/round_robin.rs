//! Weighted round robin, packet by packet: in a round of as many packets as the sum of all weights each buffer
//! has as many as its weight, spread over the round (stride scheduling; Waldspurger and Weihl, 1995).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::choose::{Candidate, Look, Scheduler};

/// How far one packet brings a buffer of weight 1.
const STRIDE: u128 = 1 << 80;

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// The buffers that have something to send, by how far each has come; then by place.
    turns: BinaryHeap<Reverse<(u128, usize)>>,
    /// By buffer: how far it has come, and whether it is among those.
    buffers: Vec<(u128, bool)>,
    /// How far the one has come that was served last.
    reached: u128,
}

impl Scheduler for RoundRobin {
    fn wakes(&mut self, buffer: usize) {
        if self.buffers.len() <= buffer {
            self.buffers.resize(buffer + 1, (0, false));
        }
        let (come, is_awake) = &mut self.buffers[buffer];
        if !core::mem::replace(is_awake, true) {
            // A buffer that had nothing to send keeps nothing.
            *come = (*come).max(self.reached);
            self.turns.push(Reverse((*come, buffer)));
        }
    }

    fn next(&mut self, look: Look<'_>) -> Option<usize> {
        loop {
            let mut first = self.turns.peek_mut()?;
            let Reverse((come, buffer)) = *first;
            let Some(Candidate { weight, .. }) = look(buffer) else {
                PeekMut::pop(first);
                self.buffers[buffer].1 = false;
                continue;
            };
            self.reached = come;
            let further = come + STRIDE / u128::from(weight.max(1));
            self.buffers[buffer].0 = further;
            *first = Reverse((further, buffer));
            return Some(buffer);
        }
    }
}
