//! Deficit round robin: each buffer in turn sends as many bytes as it has saved up (Shreedhar and Varghese, 1995).
//! Weights are turned into bytes so that the mean one is worth a large packet a round.

use std::collections::VecDeque;

use super::choose::{Candidate, Look, Scheduler};

/// What a buffer of the mean weight earns in a round: a large packet.
const QUANTUM: u128 = 1_500;

#[derive(Debug, Default)]
pub(super) struct Deficit {
    /// The buffers that have something to send; the first has its turn.
    turns: VecDeque<usize>,
    /// By buffer.
    buffers: Vec<Account>,
    /// The first has earned what it earns in this turn.
    has_earned: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    /// Bytes that it may send.
    saved: u128,
    is_awake: bool,
}

impl Scheduler for Deficit {
    fn wakes(&mut self, buffer: usize) {
        if self.buffers.len() <= buffer {
            self.buffers.resize(buffer + 1, Account::default());
        }
        let account = &mut self.buffers[buffer];
        if !core::mem::replace(&mut account.is_awake, true) {
            account.saved = 0;
            self.turns.push_back(buffer);
        }
    }

    fn next(&mut self, look: Look<'_>) -> Option<usize> {
        loop {
            let buffer = *self.turns.front()?;
            let account = &mut self.buffers[buffer];
            let Some(Candidate { bytes, weight, mean_weight, .. }) = look(buffer) else {
                *account = Account::default();
                self.turns.pop_front();
                self.has_earned = false;
                continue;
            };
            if !core::mem::replace(&mut self.has_earned, true) {
                let earns = QUANTUM * u128::from(weight.max(1)) / u128::from(mean_weight.max(1));
                account.saved += earns.max(1);
            }
            if account.saved >= bytes as u128 {
                account.saved -= bytes as u128;
                return Some(buffer);
            }
            self.turns.rotate_left(1);
            self.has_earned = false;
        }
    }
}
