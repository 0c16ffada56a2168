//! What is owed to cohorts: gathered as long as the latency budget allows, spread out where a pace
//! is asked for, and handed out to a part of the members at a time, so that a higher class never waits long.

use outflow_media::Time;

use super::branch::Branch;
use super::cohort::Cohort;
use super::ids::SinkKey;
use super::room::Room;
use super::share::Share;
use super::sink::{Place, Sink, Sinks};
use super::spec::Priority;
use crate::limits::{GATHER_BYTES_MAX, ORDER_PACKETS_MAX};
use crate::send::{Order, Recipients};
use outflow_ring::{Entry, Ring, Seq};

impl Branch {
    /// The next order to members of a cohort of this class.
    pub(super) fn next_cohort_order(
        &mut self,
        now: Time,
        sinks: &mut Sinks,
        priority: Priority,
        room: Room,
    ) -> Option<Order> {
        // The one after the last to be served comes first, so that none has to wait for ever.
        for step in 0..self.cohorts.len() {
            let index = (self.last_cohort + 1 + step) % self.cohorts.len();
            let cohort = &mut self.cohorts[index];
            if cohort.class.priority != priority || !begin_turn(cohort, &self.ring, now) {
                continue;
            }
            let from = cohort.cursor;
            let Some(turn) = &mut cohort.turn else { continue };
            let first = turn.served;
            let room = room.of(cohort.class.transport, turn.packets);
            if first == 0 && room < cohort.members.len() {
                arrange(cohort, index, sinks);
            }
            let Some(turn) = &mut cohort.turn else { continue };
            let count = (cohort.members.len() - first).min(room);
            turn.served += count;
            let to = turn.to;
            let share = cohort.common_share();
            let order = Order {
                branch: self.index,
                recipients: Recipients::Cohort { cohort: index, first, count },
                from,
                to,
                tracks: cohort.class.tracks,
                share,
                preamble: false,
                leaves: false,
            };
            cohort.end_turn_if_served();
            if cohort.turn.is_none() {
                self.last_cohort = index;
                self.wake_idle(sinks);
            }
            return Some(order);
        }
        None
    }

    /// When packets that wait for company or for their pace have to go.
    pub(super) fn next_gathered(&self) -> Option<Time> {
        self.cohorts.iter().filter_map(|cohort| cohort.waits_until).min()
    }

    /// How far sinks of this class may go on their own: to where their cohort is.
    pub(super) fn cohort_front(&self, index: Option<usize>) -> Seq {
        match index.map(|index| &self.cohorts[index]) {
            Some(cohort) if !cohort.members.is_empty() => cohort.cursor,
            _ => self.ring.head(),
        }
    }

    /// What of an order to a cohort one of its members gets.
    pub fn share(&self, cohort: usize, member: &Sink) -> Share {
        self.cohorts
            .get(cohort)
            .map_or(Share::WHOLE, |cohort| cohort.share(member.max_layer, member.sequence_offset))
    }

    /// What members that take the same get of an order to a cohort: each maximum layer once.
    pub fn shares(&self, cohort: usize) -> impl Iterator<Item = Share> + '_ {
        let cohort = self.cohorts.get(cohort);
        cohort
            .into_iter()
            .flat_map(|cohort| cohort.groups.iter().map(|group| cohort.share(group.max_layer, 0)))
    }

    /// Rises with every member of a cohort that comes, goes or changes.
    pub fn version(&self, cohort: usize) -> u64 {
        self.cohorts.get(cohort).map_or(0, |cohort| cohort.version)
    }

    /// The sinks that an order goes to.
    pub fn ordered<'a>(&'a self, recipients: &'a Recipients) -> &'a [SinkKey] {
        match recipients {
            Recipients::One(key) => core::slice::from_ref(key),
            Recipients::Cohort { cohort, first, count } => {
                self.members(*cohort).get(*first..first + count).unwrap_or_default()
            }
        }
    }
}

/// Puts members of a cohort that take the same side by side.
fn arrange(cohort: &mut Cohort, index: usize, sinks: &mut Sinks) {
    let mut slots = Vec::new();
    let takes = |key: &SinkKey| sinks.get(key.0).map(|sink| (sink.max_layer, sink.sequence_offset));
    cohort.arrange(takes, |key, slot| slots.push((key, slot)));
    for (key, slot) in slots {
        if let Some(sink) = sinks.get_mut(key.0) {
            sink.place = Place::Live { cohort: index, slot };
        }
    }
}

/// Whether a turn is going on, begun now if something is owed and its time has come.
fn begin_turn(cohort: &mut Cohort, ring: &Ring, now: Time) -> bool {
    cohort.waits_until = None;
    if cohort.members.is_empty() {
        cohort.turn = None;
        cohort.cursor = ring.head();
        return false;
    }
    while cohort.turn.is_none() {
        if cohort.cursor >= ring.head() {
            return false;
        }
        if let Some(due) = gathers_until(cohort, ring).filter(|due| *due > now) {
            cohort.waits_until = Some(due);
            return false;
        }
        let room = match (&mut cohort.pace, cohort.class.timing.pace_bps) {
            (Some(pace), Some(bps)) => match pace.allowance(now, bps) {
                Ok(bytes) => bytes,
                Err(due) => {
                    cohort.waits_until = Some(due);
                    return false;
                }
            },
            _ => usize::MAX,
        };
        let to = reach(cohort, ring, room);
        let most = cohort.begin_turn(ring, to);
        if let Some(pace) = &mut cohort.pace {
            pace.spend(most.bytes as usize);
        }
    }
    true
}

/// Until when the packets owed may wait for more; `None` if there are enough.
fn gathers_until(cohort: &Cohort, ring: &Ring) -> Option<Time> {
    let budget = cohort.class.timing.latency_budget;
    if budget.is_zero() || ring.head() - cohort.cursor >= ORDER_PACKETS_MAX as Seq {
        return None;
    }
    let owed = || ring.range(cohort.cursor, ring.head()).map(|(_, entry)| &entry.packet);
    let due = owed().find(|packet| cohort.class.tracks.has(packet.tag.track))?.arrived + budget;
    let bytes: usize = owed().map(|packet| packet.bytes.len()).sum();
    (bytes < GATHER_BYTES_MAX).then_some(due)
}

/// How far a turn goes, at most `room` bytes (but a packet in any case).
fn reach(cohort: &Cohort, ring: &Ring, room: usize) -> Seq {
    let most = ring.head().min(cohort.cursor + ORDER_PACKETS_MAX as Seq);
    if room == usize::MAX {
        return most;
    }
    let mut bytes = 0;
    let fits = |(_, entry): &(Seq, &Entry)| {
        let fits = bytes < room;
        bytes += entry.packet.bytes.len();
        fits
    };
    cohort.cursor + ring.range(cohort.cursor, most).take_while(fits).count() as Seq
}
