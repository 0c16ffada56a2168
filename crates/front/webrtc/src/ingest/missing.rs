//! Packets that a publisher is asked for once more.

use std::collections::VecDeque;

use outflow_media::Time;

use crate::limits::{ASK_AFTER, ASK_AGAIN, ASK_TIMES, MISSING_MAX};

/// What is missing of a track.
#[derive(Debug, Default)]
pub(super) struct Missing {
    packets: VecDeque<Packet>,
}

#[derive(Debug)]
struct Packet {
    sequence: u16,
    ask: Time,
    times: u8,
}

impl Missing {
    /// This many are missing before a packet.
    pub(super) fn add(&mut self, now: Time, before: u16, count: u16) {
        for back in (1..=count.min(MISSING_MAX as u16)).rev() {
            if self.packets.len() >= MISSING_MAX {
                self.packets.pop_front();
            }
            self.packets.push_back(Packet {
                sequence: before.wrapping_sub(back),
                ask: now + ASK_AFTER,
                times: 0,
            });
        }
    }

    /// One has come after all. Returns whether it was missing.
    pub(super) fn came(&mut self, sequence: u16) -> bool {
        let before = self.packets.len();
        self.packets.retain(|packet| packet.sequence != sequence);
        self.packets.len() < before
    }

    /// When some are to be asked for.
    pub(super) fn due(&self) -> Option<Time> {
        self.packets.iter().map(|packet| packet.ask).min()
    }

    /// What is to be asked for now. One that has not come after some times is given up.
    pub(super) fn ask(&mut self, now: Time) -> Vec<u16> {
        self.packets.retain(|packet| packet.times < ASK_TIMES || packet.ask > now);
        let due = self.packets.iter_mut().filter(|packet| packet.ask <= now);
        let asked = due.map(|packet| {
            packet.times += 1;
            packet.ask = now + ASK_AGAIN;
            packet.sequence
        });
        asked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_asked_for_until_it_comes_or_is_given_up() {
        let (mut missing, start) = (Missing::default(), Time::from_millis(1000));
        missing.add(start, 1, 3);
        assert_eq!((missing.due(), missing.ask(start)), (Some(start + ASK_AFTER), vec![]));
        missing.came(65_535);
        let mut now = start + ASK_AFTER;
        for _ in 0..ASK_TIMES {
            assert_eq!(missing.ask(now), [65_534, 0]);
            assert!(missing.ask(now).is_empty(), "once");
            now = missing.due().expect("again");
        }
        assert_eq!((missing.ask(now), missing.due()), (vec![], None));
    }

    #[test]
    fn no_more_are_kept_than_are_worth_asking_for() {
        let mut missing = Missing::default();
        missing.add(Time::ZERO, 10, 3000);
        missing.add(Time::ZERO, 20, 5);
        let asked = missing.ask(Time::ZERO + ASK_AFTER);
        assert_eq!((asked.len(), asked.last()), (MISSING_MAX, Some(&19)));
    }
}
