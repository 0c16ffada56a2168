//! Sinks that are up with the newest packet and want the same: they share a cursor.

use outflow_media::Time;
use outflow_packet::{DropReason, Drops, MaxLayer, TrackMask};

use super::counters::Counters;
use super::ids::{LinkId, SinkKey};
use super::pace::Pace;
use super::share::Share;
use super::spec::{Encapsulation, Priority, SinkSpec, Timing, Transport};
use outflow_ring::{Ring, Seq};

/// What the members of a cohort have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) priority: Priority,
    encapsulation: Encapsulation,
    pub(crate) transport: Transport,
    pub(crate) tracks: TrackMask,
    pub(crate) timing: Timing,
    link: Option<LinkId>,
}

impl Class {
    pub(crate) fn of(spec: &SinkSpec) -> Self {
        Class {
            priority: spec.priority,
            encapsulation: spec.encapsulation,
            transport: spec.transport,
            tracks: spec.tracks,
            timing: spec.timing,
            link: spec.link,
        }
    }
}

/// A class's members and how far they are.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) class: Class,
    pub(crate) members: Vec<SinkKey>,
    /// Rises with every member that comes, goes or changes its place.
    pub(crate) version: u64,
    /// When members that take the same layers stood side by side: this version.
    arranged: u64,
    /// The members by how much they take; none is empty.
    pub(crate) groups: Vec<Group>,
    /// The next packet that is owed to the members that have not had their part of the turn.
    pub(crate) cursor: Seq,
    /// Packets that are being handed out now.
    pub(crate) turn: Option<Turn>,
    pub(crate) pace: Option<Pace>,
    /// Packets are owed, but their time has not come.
    pub(crate) waits_until: Option<Time>,
}

/// The same packets for all members, which get them a few at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The packet behind the last.
    pub(crate) to: Seq,
    /// This many members, from the first on, have been given them.
    pub(crate) served: usize,
    /// Packets for a member that takes all layers that any of them takes.
    pub(crate) packets: u64,
}

/// Members of a cohort that take the same layers.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) max_layer: MaxLayer,
    pub(crate) members: usize,
    /// Members whose sequence numbers are not those of the group, because they have changed to it.
    apart: usize,
    /// What a member from the beginning would have been sent, turn included.
    pub(crate) totals: Counters,
    /// What such a member would not have got: because the ring refused it, or it was left out.
    pub(crate) drops: Drops,
    /// What a member is sent by the turn, ...
    sent: Counters,
    /// ... and how many packets are left out.
    left_out: u16,
    /// [`Share::sequence_offset`] at the cursor, ...
    pub(crate) sequence_offset: u16,
    /// ... and at the beginning of the turn, or of the last if there is none.
    offset_before: u16,
}

impl Cohort {
    pub(crate) fn new(class: Class, cursor: Seq) -> Self {
        Cohort {
            class,
            members: Vec::new(),
            version: 0,
            arranged: 0,
            groups: Vec::new(),
            cursor,
            turn: None,
            pace: class.timing.pace_bps.map(Pace::smooth),
            waits_until: None,
        }
    }

    /// Whether a sink that has seen everything up to `at` can become a member now.
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

    /// The members that take layers up to `max_layer`.
    pub(crate) fn group(&self, max_layer: MaxLayer) -> Option<&Group> {
        self.groups.iter().find(|group| group.max_layer == max_layer)
    }

    /// What the member at `slot` has been sent and what not, and by how much its sequence numbers are lower
    /// than they came, as if it had been a member from the beginning.
    pub(crate) fn standing(&self, slot: usize, max_layer: MaxLayer) -> (Counters, Drops, u16) {
        let Some(group) = self.group(max_layer) else { return Default::default() };
        let (mut totals, mut drops, mut sequence_offset) = (group.totals, group.drops, group.sequence_offset);
        match self.turn {
            Some(turn) if slot >= turn.served => {
                totals.packets -= group.sent.packets;
                totals.bytes -= group.sent.bytes;
            }
            Some(_) => {
                drops.add(DropReason::Level, group.left_out.into());
                sequence_offset = sequence_offset.wrapping_add(group.left_out);
            }
            None => {}
        }
        (totals, drops, sequence_offset)
    }

    /// A new member that takes layers up to `max_layer`, and whose sequence numbers are `sequence_offset` at the cursor.
    /// Returns its slot, and what it would have got before.
    pub(crate) fn add(&mut self, key: SinkKey, max_layer: MaxLayer, sequence_offset: u16) -> (usize, &Group) {
        self.members.push(key);
        self.version += 1;
        let index = self.groups.iter().position(|group| group.max_layer == max_layer).unwrap_or_else(|| {
            self.groups.push(Group::new(max_layer, sequence_offset));
            self.groups.len() - 1
        });
        let group = &mut self.groups[index];
        group.members += 1;
        group.apart += usize::from(group.sequence_offset != sequence_offset);
        (self.members.len() - 1, group)
    }

    /// Puts members that take the same side by side, so that an order to a part of the members is the same
    /// packets for many. Each member with a new slot is handed to `moved`; none has had anything of the turn.
    pub(crate) fn arrange<K: Ord>(
        &mut self,
        takes: impl FnMut(&SinkKey) -> K,
        mut moved: impl FnMut(SinkKey, usize),
    ) {
        if self.arranged == self.version || self.groups.len() < 2 {
            return;
        }
        self.members.sort_by_cached_key(takes);
        self.members.iter().enumerate().for_each(|(slot, key)| moved(*key, slot));
        self.version += 1;
        self.arranged = self.version;
    }

    /// What of the turn's packets every member gets, if that is the same for all; see [`Cohort::share`].
    pub(crate) fn common_share(&self) -> Option<Share> {
        match &self.groups[..] {
            [only] if only.apart == 0 => {
                Some(Share { max_layer: only.max_layer, sequence_offset: only.offset_before })
            }
            _ => None,
        }
    }

    /// What of the turn's packets, or of the last if there is none, a member gets that takes layers up to
    /// `max_layer`, and whose sequence numbers are lower by `apart` than its group's.
    pub(crate) fn share(&self, max_layer: MaxLayer, apart: u16) -> Share {
        let sequence_offset = self.group(max_layer).map_or(0, |group| group.offset_before);
        Share { max_layer, sequence_offset: sequence_offset.wrapping_add(apart) }
    }

    /// The packets up to `to` are owed now. Returns how many these are for the member that gets most; if that
    /// is nothing, the cursor goes on, and else they are a turn.
    pub(crate) fn begin_turn(&mut self, ring: &Ring, to: Seq) -> Counters {
        let mut most = Counters::default();
        for group in &mut self.groups {
            group.owe(ring, self.class.tracks, (self.cursor, to));
            if group.sent.packets > most.packets {
                most = group.sent;
            }
        }
        self.turn = Some(Turn { to, served: 0, packets: most.packets });
        if most.packets == 0 {
            self.end_turn();
        }
        most
    }

    /// Takes the member at `slot` out, which took layers up to `max_layer`; `apart` is by how much its sequence
    /// numbers were lower than its group's. Members that stand elsewhere afterwards are handed to `moved`
    /// with their new slots; which have been served in this turn, and which not, stays so.
    pub(crate) fn remove(
        &mut self,
        slot: usize,
        max_layer: MaxLayer,
        apart: u16,
        mut moved: impl FnMut(SinkKey, usize),
    ) {
        self.version += 1;
        if let Some(at) = self.groups.iter().position(|group| group.max_layer == max_layer) {
            let group = &mut self.groups[at];
            group.members -= 1;
            group.apart -= usize::from(apart != 0);
            if group.members == 0 {
                self.groups.swap_remove(at);
            }
        }
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

    /// When every member has had the turn's packets, the next are owed.
    pub(crate) fn end_turn_if_served(&mut self) {
        if let Some(turn) = self.turn
            && turn.served >= self.members.len()
        {
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        self.cursor = turn.to;
        self.groups.iter_mut().for_each(Group::settle);
    }
}

impl Group {
    fn new(max_layer: MaxLayer, sequence_offset: u16) -> Self {
        Group {
            max_layer,
            members: 0,
            apart: 0,
            totals: Counters::default(),
            drops: Drops::default(),
            sent: Counters::default(),
            left_out: 0,
            sequence_offset,
            offset_before: sequence_offset,
        }
    }

    /// The packets between two positions are owed to its members.
    fn owe(&mut self, ring: &Ring, tracks: TrackMask, (from, to): (Seq, Seq)) {
        let (sent, left_out) = count(ring, from, to, tracks, self.max_layer);
        (self.sent, self.left_out, self.offset_before) = (sent, left_out as u16, self.sequence_offset);
        self.totals.packets += sent.packets;
        self.totals.bytes += sent.bytes;
    }

    /// All have had what was owed.
    fn settle(&mut self) {
        self.sent = Counters::default();
        let left_out = core::mem::take(&mut self.left_out);
        self.drops.add(DropReason::Level, left_out.into());
        self.sequence_offset = self.sequence_offset.wrapping_add(left_out);
    }
}

/// Packets and bytes of `tracks` between two positions for a member that takes layers up to `max_layer`, and how
/// many packets are left out because of that.
fn count(ring: &Ring, from: Seq, to: Seq, tracks: TrackMask, max_layer: MaxLayer) -> (Counters, u64) {
    let (mut sum, mut left_out) = (Counters::default(), 0);
    for (_, entry) in ring.range(from, to) {
        if !tracks.has(entry.packet.tag.track) {
            continue;
        }
        if ring.is_within(max_layer, &entry.packet.tag) {
            sum.packets += 1;
            sum.bytes += entry.packet.bytes.len() as u64;
        } else {
            left_out += 1;
        }
    }
    (sum, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cohort(members: usize, served: usize) -> Cohort {
        let class = Class {
            priority: Priority::Normal,
            encapsulation: Encapsulation::Rtp,
            transport: Transport::Datagram,
            tracks: TrackMask::ALL,
            timing: Timing::default(),
            link: None,
        };
        let mut cohort = Cohort::new(class, 10);
        (0..members).map(SinkKey).for_each(|key| {
            cohort.add(key, MaxLayer::ALL, 0);
        });
        let sent = Counters { packets: 2, bytes: 200 };
        (cohort.groups[0].totals, cohort.groups[0].sent) = (sent, sent);
        cohort.turn = Some(Turn { to: 12, served, packets: 2 });
        cohort
    }

    /// Whichever member leaves, in whatever order: those served stay served, those not are still owed.
    #[test]
    fn leaving_within_a_turn_changes_nothing_for_the_others() {
        for members in 1..6 {
            for served in 0..members {
                for slot in 0..members {
                    let mut cohort = cohort(members, served);
                    let mut slots: Vec<usize> = (0..members).collect();
                    cohort.remove(slot, MaxLayer::ALL, 0, |key, slot| slots[key.0] = slot);
                    for (key, &now_at) in slots.iter().enumerate().filter(|(key, _)| *key != slot) {
                        assert_eq!(cohort.members[now_at], SinkKey(key));
                        let expected = if key < served { 12 } else { 10 };
                        assert_eq!(cohort.cursor_of(now_at), expected, "{members} {served} {slot} {key}");
                        let packets = if key < served { 2 } else { 0 };
                        assert_eq!(cohort.standing(now_at, MaxLayer::ALL).0.packets, packets);
                    }
                }
            }
        }
    }
}
