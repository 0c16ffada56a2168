//! Sinks that are up with the newest packet and want the same: they share a cursor.

use outflow_media::Time;

use super::pace::Pace;
use super::{Counters, Priority, SinkKey, SinkSpec, Timing, TrackMask};
use crate::buffer::Seq;
use crate::drops::Drops;
use crate::schedule::{Carriage, Transport};

/// What the members of a cohort have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) priority: Priority,
    pub(crate) carriage: Carriage,
    pub(crate) transport: Transport,
    pub(crate) tracks: TrackMask,
    pub(crate) timing: Timing,
}

impl Class {
    pub(crate) fn of(spec: &SinkSpec) -> Self {
        Class {
            priority: spec.priority,
            carriage: spec.carriage,
            transport: spec.transport,
            tracks: spec.tracks,
            timing: spec.timing,
        }
    }
}

/// A class's members and how far they are.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) class: Class,
    pub(crate) members: Vec<SinkKey>,
    /// The next packet that is owed to those who have not had their part of the turn.
    pub(crate) cursor: Seq,
    /// Packets that are being handed out now.
    pub(crate) turn: Option<Turn>,
    /// What one who had been a member from the beginning would have been sent, turn included.
    pub(crate) totals: Counters,
    /// What such a one would have lost because the ring refused it.
    pub(crate) refused: Drops,
    pub(crate) pace: Option<Pace>,
    /// Packets are owed, but their time has not come.
    pub(crate) waits_until: Option<Time>,
}

/// The same packets for all members, who get them a few at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The packet behind the last.
    pub(crate) to: Seq,
    /// So many members, from the first on, have been given them.
    pub(crate) served: usize,
    /// What a member is sent.
    pub(crate) sent: Counters,
}

impl Cohort {
    pub(crate) fn new(class: Class, cursor: Seq, now: Time) -> Self {
        Cohort {
            class,
            members: Vec::new(),
            cursor,
            turn: None,
            totals: Counters::default(),
            refused: Drops::default(),
            pace: class.timing.pace_bps.map(|bps| Pace::smooth(now, bps)),
            waits_until: None,
        }
    }

    /// Whether one who has seen everything up to `at` can become a member now.
    pub(crate) fn takes(&self, at: Seq) -> bool {
        self.cursor == at && self.turn.is_none()
    }

    /// The next packet that is owed to the member at `slot`.
    pub(crate) fn cursor_of(&self, slot: usize) -> Seq {
        match self.turn {
            Some(turn) if slot < turn.served => turn.to,
            _ => self.cursor,
        }
    }

    /// What a member at `slot` would have been sent, had it been one from the beginning.
    pub(crate) fn totals_of(&self, slot: usize) -> Counters {
        match self.turn {
            Some(turn) if slot >= turn.served => Counters {
                packets: self.totals.packets - turn.sent.packets,
                bytes: self.totals.bytes - turn.sent.bytes,
            },
            _ => self.totals,
        }
    }

    /// Takes the member at `slot` out. Those who stand elsewhere afterwards are handed to `moved`
    /// with their new slots; who has been served in this turn, and who not, stays so.
    pub(crate) fn remove(&mut self, slot: usize, mut moved: impl FnMut(SinkKey, usize)) {
        let mut hole = slot;
        if let Some(turn) = &mut self.turn
            && slot < turn.served
        {
            turn.served -= 1;
            hole = turn.served;
            self.members.swap(slot, hole);
            moved(self.members[slot], slot);
        }
        self.members.swap_remove(hole);
        if let Some(&key) = self.members.get(hole) {
            moved(key, hole);
        }
        self.end_turn_if_served();
    }

    /// When everyone has had the turn's packets, the next are owed.
    pub(crate) fn end_turn_if_served(&mut self) {
        if let Some(turn) = self.turn
            && turn.served >= self.members.len()
        {
            self.cursor = turn.to;
            self.turn = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cohort(members: usize, served: usize) -> Cohort {
        let class = Class {
            priority: Priority::Normal,
            carriage: Carriage::Rtp,
            transport: Transport::Datagram,
            tracks: TrackMask::ALL,
            timing: Timing::default(),
        };
        let mut cohort = Cohort::new(class, 10, Time::ZERO);
        cohort.members = (0..members).map(SinkKey).collect();
        let sent = Counters { packets: 2, bytes: 200 };
        cohort.totals = sent;
        cohort.turn = Some(Turn { to: 12, served, sent });
        cohort
    }

    /// Whoever leaves, in whatever order: those served stay served, those not are still owed.
    #[test]
    fn leaving_within_a_turn_changes_nothing_for_the_others() {
        for members in 1..6 {
            for served in 0..members {
                for slot in 0..members {
                    let mut cohort = cohort(members, served);
                    let mut slots: Vec<usize> = (0..members).collect();
                    cohort.remove(slot, |key, slot| slots[key.0] = slot);
                    for (key, &now_at) in slots.iter().enumerate().filter(|(key, _)| *key != slot) {
                        assert_eq!(cohort.members[now_at], SinkKey(key));
                        let expected = if key < served { 12 } else { 10 };
                        assert_eq!(cohort.cursor_of(now_at), expected, "{members} {served} {slot} {key}");
                        let packets = if key < served { 2 } else { 0 };
                        assert_eq!(cohort.totals_of(now_at).packets, packets);
                    }
                }
            }
        }
    }
}
