//! Answers to datagrams that are of no connection: not too many of them.

use core::net::SocketAddr;
use std::collections::VecDeque;

use outflow_media::Time;

use crate::limits::{ANSWERS_MAX, RESETS_A_SECOND_MAX};
use crate::packet::{ConnectionId, RESET_BYTES, emit_reset};

#[derive(Debug, Default)]
pub(super) struct Answers {
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Resets of this second.
    second: u64,
    resets: u32,
    left_out: u64,
    /// Whether one was sent last.
    was_last: bool,
}

impl Answers {
    /// None, of one that has left out this number of them.
    pub(super) fn that_left_out(count: u64) -> Self {
        Answers { left_out: count, ..Answers::default() }
    }

    pub(super) fn push(&mut self, to: SocketAddr, answer: Vec<u8>) {
        if self.queue.len() < ANSWERS_MAX {
            self.queue.push_back((to, answer));
        } else {
            self.left_out += 1;
        }
    }

    /// Queues a reset, unless there are too many. Returns whether it did.
    pub(super) fn push_reset(&mut self, now: Time, to: SocketAddr, unknown: ConnectionId) -> bool {
        let second = now.as_millis() / 1000;
        if self.second != second {
            (self.second, self.resets) = (second, 0);
        }
        let is_said = self.resets < RESETS_A_SECOND_MAX && self.queue.len() < ANSWERS_MAX;
        if is_said {
            self.resets += 1;
            let mut reset = Vec::with_capacity(RESET_BYTES);
            emit_reset(unknown, &mut reset);
            self.queue.push_back((to, reset));
        } else {
            self.left_out += 1;
        }
        is_said
    }

    /// The next one. In turn with what others have to send, if they have: many hellos do not hold up
    /// connections.
    pub(super) fn pop(&mut self, is_alone: bool) -> Option<(SocketAddr, Vec<u8>)> {
        if core::mem::take(&mut self.was_last) && !is_alone {
            return None;
        }
        let answer = self.queue.pop_front();
        self.was_last = answer.is_some();
        answer
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}
