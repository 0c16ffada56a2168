//! Receivers go from one rendition to another.
//!
//! They enter one at a key frame, and leave the other one between two frames: where it is between two when that
//! key frame comes, or behind the frame that is just coming. Those that lag leave it in front of a frame of the
//! same time: renditions have their key frames together, and that of the better one is what a narrow way carries
//! last. What comes beside the main track is the same in all renditions; of that, a receiver is sent nothing
//! twice, and misses nothing. For byte streams that lag, all this is so at the position at which they are.
//!
//! A transport stream of another encoder goes on with other counters and clocks: that is announced by
//! `discontinuity_indicator` (ISO/IEC 13818-1, section 2.4.3.5), in front of its tables.

use bytes::Bytes;
use outflow_media::{Format, Time};
use outflow_rtp::set_sequence;
use outflow_ts::{PACKET_BYTES, TsReader, announce_discontinuity};

use super::simulcast::Simulcast;
use super::switch::{End, KeyFrame, Leaves, Pushed, Switch, numbers};
use crate::control::branches::{Made, Slot, What};
use crate::control::distribution::Distribution;
use crate::schedule::{Encapsulation, Entered, Place, SinkKey, Splice, Stop};
use outflow_ring::Seq;

/// What is made of renditions: receivers change among those of the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Rtp,
    Ts,
    /// RTP with sound as Opus.
    Opus,
}

impl Simulcast {
    /// A sink may want another rendition than it takes.
    pub(super) fn wants_other(self, out: &mut Distribution, key: SinkKey) {
        if let Some(renditions) = &mut out.renditions {
            renditions.switch_mut().wants_other(key);
        }
    }

    /// A branch is gone; its index may be another one's.
    pub(super) fn forget_branch(self, out: &mut Distribution, index: usize) {
        if let Some(renditions) = &mut out.renditions {
            renditions.switch_mut().forget_branch(index);
        }
    }

    /// Receivers of other branches come to this one with what comes from now on.
    pub(super) fn comes_behind_held(self, out: &mut Distribution, index: usize) {
        if let Some(renditions) = &mut out.renditions {
            renditions.switch_mut().forget_entrances(index);
        }
    }

    /// Whether a sink is about to go to a branch.
    pub(super) fn awaits(self, out: &mut Distribution, now: Time, index: usize) -> bool {
        let changing = out.renditions.as_ref().map_or_else(Vec::new, |all| all.switch().changing().to_vec());
        let specs: Vec<_> = changing.iter().filter_map(|key| Some(out.sinks.get(key.0)?.spec)).collect();
        specs.iter().any(|spec| out.slot_for(now, spec) == Some(index))
    }

    /// Branches are made again: nothing is known of their frames.
    pub(super) fn forget_entrances(self, out: &mut Distribution) {
        if let Some(renditions) = &mut out.renditions {
            *renditions.switch_mut() = Switch::default();
        }
    }

    /// The rendition that a branch carries, if it does so as a whole, and in which form.
    pub(super) fn carries(self, out: &Distribution, index: usize) -> Option<(usize, Form)> {
        match &out.branches.slot(index)?.made {
            Made::Original | Made::Rendition if out.branch_format(index) == Some(&Format::Ts) => {
                Some((index, Form::Ts))
            }
            Made::Original | Made::Rendition => Some((index, Form::Rtp)),
            Made::Derived { base, what: What::Ts, .. } => Some((self.carries(out, *base)?.0, Form::Ts)),
            Made::Derived { base, what: What::Opus, .. } | Made::Joined { base, .. } => {
                Some((self.carries(out, *base)?.0, Form::Opus))
            }
            _ => None,
        }
    }

    /// The other branches among which receivers change that have this one.
    fn beside(self, out: &Distribution, index: usize) -> Vec<usize> {
        let Some((rendition, form)) = self.carries(out, index) else { return Vec::new() };
        let is_beside =
            |other: &usize| self.carries(out, *other).is_some_and(|(of, its)| of != rendition && its == form);
        (0..out.branches.end()).filter(is_beside).collect()
    }

    /// The position of the newest frame of a transport stream, with its number, if frames can be told.
    fn newest_start(self, out: &Distribution, index: usize) -> Option<(u32, Seq, usize)> {
        out.branches.slot(index)?.levels.as_ref()?.newest_start()
    }

    /// A packet has come into a branch.
    pub(super) fn look_for_entrances(self, out: &mut Distribution, index: usize, pushed: Pushed) {
        let Some((_, form)) = self.carries(out, index) else { return };
        let is_ts = form == Form::Ts;
        let newest = self.newest_start(out, index);
        let main = out.branches.get(index).map(|branch| branch.ring().main_track());
        let Some(renditions) = &mut out.renditions else { return };
        let switch = renditions.switch_mut();
        let end = if is_ts {
            switch.datagram(index, newest, &pushed)
        } else if main == Some(pushed.tag.track) {
            switch.packet(index, &pushed)
        } else {
            None
        };
        if let Some(end) = end {
            self.settle_exits(out, index, end);
        }
        if !is_ts && pushed.tag.last && main == Some(pushed.tag.track) {
            self.settle_here(out, index);
        }
        self.look_for_key(out, index, pushed.key);
    }

    /// The source of a rendition is away: its last frame is over.
    pub(super) fn pauses(self, out: &mut Distribution, rendition: usize) {
        for index in 0..out.branches.end() {
            if self.carries(out, index).is_some_and(|(of, _)| of == rendition) {
                if let Some(renditions) = &mut out.renditions {
                    renditions.switch_mut().pause(index);
                }
                self.settle_here(out, index);
            }
        }
    }

    /// A branch is between two frames now.
    fn settle_here(self, out: &mut Distribution, index: usize) {
        let head = out.branches.get(index).map_or(0, |branch| branch.ring().head());
        let Some(renditions) = &mut out.renditions else { return };
        let end = renditions.switch_mut().here(index, head);
        self.settle_exits(out, index, end);
    }

    /// A sink that was to leave a branch behind the frame that was coming does so there.
    fn settle_exits(self, out: &mut Distribution, index: usize, end: End) {
        let Distribution { renditions: Some(renditions), branches, .. } = out else { return };
        let head = |index| branches.get(index).map(|branch| branch.ring().head());
        renditions.switch_mut().settle(index, end, head);
    }

    /// If a key frame has come, receivers of other renditions may come there.
    fn look_for_key(self, out: &mut Distribution, index: usize, before: Option<Seq>) {
        let Some(ring) = out.branches.get(index).map(|branch| branch.ring()) else { return };
        let (head, Some(key)) = (ring.head(), ring.newest_key()) else { return };
        if before >= Some(key) {
            return;
        }
        let Some(entry) = ring.get(key) else { return };
        let (is_closed, (_, timestamp)) = (entry.opens_all, numbers(&entry.rtp_header));
        let Some((rendition, form)) = self.carries(out, index) else { return };
        let is_ts = form == Form::Ts;
        let came = KeyFrame { branch: index, rendition, at: key, head, timestamp, is_closed, is_ts };
        let beside = self.beside(out, index);
        let Distribution { renditions: Some(renditions), branches, .. } = out else { return };
        let head = |at: usize| branches.get(at).map_or(0, |branch| branch.ring().head());
        let is_alone = |at: usize, since: Seq| {
            branches.get(at).map(|branch| branch.ring()).is_some_and(|ring| {
                let mut all = ring.range(since, ring.head());
                all.all(|(_, entry)| entry.packet.tag.track == ring.main_track())
            })
        };
        renditions.key_frame(came, beside.into_iter().map(|at| (at, head(at))), is_alone);
    }

    /// Looks where sinks change that want another rendition. Returns whether any may have something to do.
    pub(super) fn look_at_news(self, out: &mut Distribution, now: Time) -> bool {
        let Distribution { renditions: Some(renditions), sinks, .. } = out else { return false };
        let all = || sinks.iter().map(|(key, _)| SinkKey(key)).collect();
        let Some(mut changing) = renditions.switch_mut().take_news(all) else { return false };
        changing.retain(|key| self.go_or_stop(out, now, *key));
        if let Some(renditions) = &mut out.renditions {
            renditions.switch_mut().keep(changing);
        }
        true
    }

    /// Lets a sink go on in the rendition that it wants if this is where it can, or stop where that will be.
    /// Returns whether it still takes another one.
    pub(super) fn go_or_stop(self, out: &mut Distribution, now: Time, key: SinkKey) -> bool {
        let Some(sink) = out.sinks.get(key.0) else { return false };
        let (Some(from), place, spec) = (sink.branch, sink.place, sink.spec) else { return false };
        let (entered, needs_preamble) = (sink.entered, sink.needs_preamble);
        let wish = out.slot_for(now, &spec).unwrap_or(from);
        out.left_branch(now, wish);
        if wish == from || place == Place::Paused {
            out.go_on(from, key);
            return false;
        }
        // A sink that has been sent nothing joins again.
        let is_begun = out.sent_to(key).packets > 0;
        if place == Place::Waiting || (!is_begun && needs_preamble) {
            out.take_out(from, key);
            out.place(now, key);
            out.left_branch(now, from);
            return false;
        }
        let cursor = out.branches.get(from).and_then(|branch| branch.cursor(&out.sinks, key));
        // The sequence numbers of what it is sent first here are given: it cannot leave before.
        let is_new = |cursor| !is_begun || entered.is_some_and(|entered| entered.at == cursor);
        let way = cursor.and_then(|cursor| {
            Some((cursor, self.way(out, from, wish, cursor + Seq::from(is_new(cursor)))?))
        });
        match way {
            Some((cursor, (at, leaves))) if leaves.at == cursor => {
                self.enter(out, now, key, (from, leaves), (wish, at));
                return false;
            }
            Some((_, (_, leaves))) => {
                if let Some(branch) = out.branches.get_mut(from) {
                    let stop = Stop { at: leaves.at, begins_again: true };
                    branch.stop_at(&mut out.sinks, key, stop);
                }
            }
            None => {
                self.awaits_key(out, (from, wish));
                out.go_on(from, key);
            }
        }
        true
    }

    /// A sink goes from one branch to another with the next key frame there: that is asked for, unless it has come.
    fn awaits_key(self, out: &mut Distribution, (from, wish): (usize, usize)) {
        let rendition = self.carries(out, wish).map(|(rendition, _)| rendition);
        if let (Some(rendition), Some(renditions)) = (rendition, &mut out.renditions) {
            renditions.switch_mut().awaits_key(rendition, (from, wish));
        }
    }

    /// The first place behind a position at which one can leave a branch for another.
    fn way(self, out: &Distribution, from: usize, to: usize, cursor: Seq) -> Option<(Seq, Leaves)> {
        let first = out.branches.get(to)?.ring().first();
        out.renditions.as_ref()?.switch().way(from, to, cursor, first)
    }

    fn enter(
        self,
        out: &mut Distribution,
        now: Time,
        key: SinkKey,
        (from, leaves): (usize, Leaves),
        (to, at): (usize, Seq),
    ) {
        let splice = self.announcement(out, (from, leaves), (to, at));
        let entry = out.branches.get(to).and_then(|branch| branch.ring().get(at));
        let first = entry.map_or([0; 12], |entry| match entry.preamble {
            Some(_) => entry.preamble_header(),
            None => entry.rtp_header,
        });
        let sequence = numbers(&first).0.wrapping_sub(splice.len() as u16);
        out.take_out(from, key);
        let Some(sink) = out.sinks.get_mut(key.0) else { return };
        let next = leaves.sequence.wrapping_sub(sink.sequence_offset);
        let sequence_offset = match sink.spec.encapsulation {
            Encapsulation::Rtp | Encapsulation::Tracks => sequence.wrapping_sub(next),
            Encapsulation::Ts => 0,
        };
        (sink.needs_preamble, sink.entered) = (true, Some(Entered { at, had: leaves.had }));
        let header = |index: usize| {
            let mut header = first;
            if header[0] != 0 {
                set_sequence(&mut header, sequence.wrapping_add(index as u16));
            }
            header
        };
        let splice = splice.into_iter().enumerate().map(|(index, bytes)| (bytes, header(index)));
        let splice = Splice::new(splice.collect());
        if let Some(slot) = out.branches.slot_mut(to) {
            slot.idle_since = None;
            slot.branch.enter(&mut out.sinks, key, (None, at, sequence_offset), splice);
        }
        out.left_branch(now, from);
    }

    /// What receivers of a transport stream are sent in between: the rest of the frame before, and that all
    /// begins again.
    fn announcement(
        self,
        out: &Distribution,
        (from, leaves): (usize, Leaves),
        (to, at): (usize, Seq),
    ) -> Vec<Bytes> {
        let is_ts = self.carries(out, to).is_some_and(|(_, form)| form == Form::Ts);
        let slot = out.branches.slot(to).filter(|_| is_ts);
        let Some(entry) = slot.and_then(|slot: &Slot| slot.branch.ring().get(at)) else { return Vec::new() };
        let before = out.branches.get(from).and_then(|branch| branch.ring().get(leaves.at));
        let rest = before.and_then(|before| {
            let bytes = &before.packet.bytes;
            (leaves.skip > 0).then(|| bytes.slice(..bytes.len().min(leaves.skip * PACKET_BYTES)))
        });
        let mut reader = TsReader::default();
        let tables = entry.preamble.clone().unwrap_or_default();
        // They came from a reader.
        let _ = reader.read(&tables);
        let next = [&tables[..], &entry.packet.bytes].concat();
        let announced = reader.programme().map(|programme| announce_discontinuity(programme, &next));
        rest.into_iter().chain(announced).collect()
    }
}
