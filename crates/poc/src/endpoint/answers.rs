//! Answers to datagrams that are of no connection: not too many of them.

use core::net::SocketAddr;
use std::collections::VecDeque;

use outflow_media::Time;

use crate::limits::{ANSWERS_MAX, RESETS_A_SECOND_MAX};

#[derive(Debug, Default)]
pub(super) struct Answers {
    queue: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Resets of this second.
    second: u64,
    resets: u32,
    left_out: u64,
}

impl Answers {
    pub(super) fn push(&mut self, to: SocketAddr, answer: Vec<u8>) {
        if self.queue.len() < ANSWERS_MAX {
            self.queue.push_back((to, answer));
        } else {
            self.left_out += 1;
        }
    }

    /// Whether it is said.
    pub(super) fn push_reset(&mut self, now: Time, to: SocketAddr, reset: Vec<u8>) -> bool {
        let second = now.as_millis() / 1000;
        if self.second != second {
            (self.second, self.resets) = (second, 0);
        }
        let is_said = self.resets < RESETS_A_SECOND_MAX && self.queue.len() < ANSWERS_MAX;
        if is_said {
            self.resets += 1;
            self.queue.push_back((to, reset));
        } else {
            self.left_out += 1;
        }
        is_said
    }

    pub(super) fn pop(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.queue.pop_front()
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}
