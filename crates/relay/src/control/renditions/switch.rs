//! Where receivers may go from one rendition to another: which key frames have come, and where frames end.

use std::collections::{BTreeSet, VecDeque};

use outflow_media::Tag;
use outflow_packet::Packet;
use outflow_packet::receive::Timeline;
use outflow_rtp::HEADER;

use crate::schedule::SinkKey;
use outflow_ring::{Ring, Seq};

/// Key frames at which receivers may come that are kept in mind, of all renditions together.
const ENTRANCES_MAX: usize = 64;

/// Where receivers may change.
#[derive(Debug, Default)]
pub(super) struct Switch {
    entrances: VecDeque<Entrance>,
    /// How far the frames of each branch are, by its index.
    progress: Vec<Progress>,
    /// Something is known that was not when sinks were looked at last.
    news: bool,
    /// Renditions have come or gone: all sinks are to be looked at.
    all: bool,
    /// Sinks that take another rendition than they want.
    changing: Vec<SinkKey>,
    /// Renditions without a key frame at which those could change.
    awaited: BTreeSet<usize>,
}

/// A key frame, and where receivers of other renditions leave for it.
#[derive(Debug)]
struct Entrance {
    to: usize,
    at: Seq,
    exits: Vec<Exit>,
}

#[derive(Debug)]
struct Exit {
    from: usize,
    /// `None` until the frame that was coming has come.
    leaves: Option<Leaves>,
}

/// Where receivers leave a branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaves {
    pub(super) at: Seq,
    /// Packets of the datagram there that belong to the frame before.
    pub(super) skip: usize,
    /// The sequence number of the main track there.
    pub(super) sequence: u16,
    /// Up to here, a sink that leaves has had what is beside the main track of the branch that it goes to.
    pub(super) had: Seq,
}

/// Where a frame of a branch ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    at: Seq,
    /// Packets of the datagram there that belong to it.
    skip: usize,
    /// The sequence number of the main track behind it.
    sequence: u16,
}

/// A key frame that has come into a branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyFrame {
    pub(super) branch: usize,
    /// Of this rendition.
    pub(super) rendition: usize,
    pub(super) at: Seq,
    /// The head of the ring.
    pub(super) head: Seq,
    /// Its timestamp.
    pub(super) timestamp: u32,
    /// Nothing behind it needs what was before it.
    pub(super) is_closed: bool,
    /// The branch is a transport stream.
    pub(super) is_ts: bool,
}

/// How far the frames of a branch are.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    in_frame: bool,
    /// The sequence number behind the newest packet of the main track.
    sequence: u16,
    /// Its timestamp.
    timestamp: u32,
    /// Something of the main track has come.
    is_begun: bool,
    /// Where the frame before the newest ended, and its timestamp.
    before: Option<(End, u32)>,
    /// Of a transport stream: the newest frame.
    frame: Option<u32>,
    /// There are key frames of closed groups. Receivers change at those only, then: what is shown before one
    /// of an open group, and comes behind it, needs what they have not had.
    has_closed: bool,
}

/// How a packet came into a ring.
#[derive(Debug, Clone, Copy)]
pub(in crate::control) struct Pushed {
    pub(super) tag: Tag,
    sequence: u16,
    timestamp: u32,
    /// The head of the ring before.
    head: Seq,
    /// Its newest key frame before.
    pub(super) key: Option<Seq>,
}

/// Sequence number and timestamp.
pub(super) fn numbers(header: &[u8; HEADER]) -> (u16, u32) {
    (outflow_rtp::sequence(header), outflow_rtp::timestamp(header))
}

impl Pushed {
    pub(in crate::control) fn new(packet: &Packet, apart: &[u8; HEADER], ring: &Ring) -> Self {
        let header = packet.rtp_header(apart).copied().unwrap_or_default();
        let (sequence, timestamp) = numbers(&header);
        Pushed { tag: packet.tag, sequence, timestamp, head: ring.head(), key: ring.newest_key() }
    }
}

impl Switch {
    /// Renditions have come or gone.
    pub(super) fn look_at_all(&mut self) {
        (self.news, self.all) = (true, true);
    }

    /// A sink may want another rendition than it takes.
    pub(super) fn wants_other(&mut self, key: SinkKey) {
        self.news = true;
        if !self.changing.contains(&key) {
            self.changing.push(key);
        }
    }

    /// Sinks that take another rendition than they want.
    pub(super) fn changing(&self) -> &[SinkKey] {
        &self.changing
    }

    /// If more is known than before: the sinks to be looked at, which are those of `all` if renditions have come
    /// or gone.
    pub(super) fn take_news(&mut self, all: impl FnOnce() -> Vec<SinkKey>) -> Option<Vec<SinkKey>> {
        if !core::mem::take(&mut self.news) {
            return None;
        }
        self.awaited.clear();
        let changing = core::mem::take(&mut self.changing);
        Some(if core::mem::take(&mut self.all) { all() } else { changing })
    }

    /// These still take another rendition than they want.
    pub(super) fn keep(&mut self, mut changing: Vec<SinkKey>) {
        self.changing.append(&mut changing);
    }

    /// A sink waits for a key frame of a rendition, to go from one branch to another; unless it only waits for the end
    /// of a frame.
    pub(super) fn awaits_key(&mut self, rendition: usize, (from, to): (usize, usize)) {
        let is_coming = |exit: &Exit| exit.from == from && exit.leaves.is_none();
        let mut there = self.entrances.iter().filter(|entrance| entrance.to == to);
        if !there.any(|entrance| entrance.exits.iter().any(is_coming)) {
            self.awaited.insert(rendition);
        }
    }

    /// Renditions whose next key frame sinks wait for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = usize> {
        self.awaited.iter().copied()
    }

    /// What has come into a branch so far is for those that join: others have had it where they are.
    pub(super) fn forget_entrances(&mut self, index: usize) {
        self.entrances.retain(|entrance| entrance.to != index);
    }

    /// A branch is gone; its index may be another one's.
    pub(super) fn forget_branch(&mut self, index: usize) {
        self.forget_entrances(index);
        self.entrances.iter_mut().for_each(|entrance| entrance.exits.retain(|exit| exit.from != index));
        *self.progress(index) = Progress::default();
    }

    fn progress(&mut self, index: usize) -> &mut Progress {
        if self.progress.len() <= index {
            self.progress.resize(index + 1, Progress::default());
        }
        &mut self.progress[index]
    }

    /// A datagram has come into a transport stream, whose newest frame begins there, if frames can be told.
    /// Returns where the one before ended, if that is new.
    pub(super) fn datagram(
        &mut self,
        index: usize,
        newest: Option<(u32, Seq, usize)>,
        pushed: &Pushed,
    ) -> Option<End> {
        let progress = self.progress(index);
        let is_new = newest.map(|(frame, ..)| frame) != progress.frame;
        (progress.frame, progress.in_frame) = (newest.map(|(frame, ..)| frame), newest.is_some());
        progress.sequence = pushed.sequence.wrapping_add(1);
        let end = newest.filter(|_| is_new);
        end.map(|(_, at, skip)| End { at, skip, sequence: pushed.sequence })
    }

    /// A packet of the main track has come into a branch. Returns where the frame before ended, if it turns out
    /// with this one.
    pub(super) fn packet(&mut self, index: usize, pushed: &Pushed) -> Option<End> {
        let progress = self.progress(index);
        let ends = pushed.tag.first && progress.in_frame;
        let end = End { at: pushed.head, skip: 0, sequence: progress.sequence };
        if !progress.is_begun || progress.timestamp != pushed.timestamp {
            progress.before = progress.is_begun.then_some((end, progress.timestamp));
        }
        progress.is_begun = true;
        progress.in_frame = !pushed.tag.last;
        (progress.sequence, progress.timestamp) = (pushed.sequence.wrapping_add(1), pushed.timestamp);
        ends.then_some(end)
    }

    /// The frame that was coming into a branch is over.
    pub(super) fn pause(&mut self, index: usize) {
        self.progress(index).in_frame = false;
    }

    /// A branch is between two frames, at the head of its ring.
    pub(super) fn here(&mut self, index: usize, head: Seq) -> End {
        End { at: head, skip: 0, sequence: self.progress(index).sequence }
    }

    /// A sink that was to leave a branch behind the frame that was coming does so there. `head` says how far
    /// the ring of a branch is.
    pub(super) fn settle(&mut self, from: usize, end: End, head: impl Fn(usize) -> Option<Seq>) {
        let End { at, skip, sequence } = end;
        for entrance in &mut self.entrances {
            let Some(had) = head(entrance.to) else { continue };
            let mut exits = entrance.exits.iter_mut();
            if let Some(exit) = exits.find(|exit| exit.from == from && exit.leaves.is_none()) {
                exit.leaves = Some(Leaves { at, skip, sequence, had });
                self.news = true;
            }
        }
    }

    /// Receivers of the branches `beside` may come where a key frame has, and leave these at the heads of their
    /// rings, or behind the frame that is just coming; or in front of that, if it is of the same time and they have
    /// had nothing of it: where a way carries less than it did, it may be a key frame that takes seconds. `is_alone`
    /// says whether nothing has come beside the main track of a branch since a position.
    pub(super) fn key_frame(
        &mut self,
        came: KeyFrame,
        beside: impl Iterator<Item = (usize, Seq)>,
        (timeline, is_alone): (&Timeline, impl Fn(usize, Seq) -> bool),
    ) {
        let KeyFrame { branch, rendition, at: key, head, timestamp, is_closed, is_ts } = came;
        let progress = self.progress(branch);
        progress.has_closed |= is_closed;
        if !is_closed && progress.has_closed {
            return;
        }
        self.awaited.remove(&rendition);
        let mut exits = Vec::new();
        for (from, at) in beside {
            let Progress { in_frame, sequence, timestamp: newest, before, .. } = *self.progress(from);
            let late = newest.wrapping_sub(timestamp).cast_signed();
            if !is_ts && !timeline.is_at_once(late) {
                continue;
            }
            let here = Leaves { at, skip: 0, sequence, had: head };
            let is_same_time = |before: u32| {
                let step = newest.wrapping_sub(before).cast_signed();
                step > 0 && late.unsigned_abs() < step.unsigned_abs() / 2
            };
            if let Some((end, _)) = before.filter(|(_, before)| !is_ts && is_same_time(*before))
                && is_alone(from, end.at)
            {
                let leaves = Leaves { at: end.at, skip: 0, sequence: end.sequence, had: head };
                exits.push(Exit { from, leaves: Some(leaves) });
            }
            exits.push(Exit { from, leaves: (!in_frame).then_some(here) });
        }
        self.news = true;
        self.entrances.push_back(Entrance { to: branch, at: key, exits });
        if self.entrances.len() > ENTRANCES_MAX {
            self.entrances.pop_front();
        }
    }

    /// The first place behind a position at which one can leave a branch for another, whose ring begins at
    /// `first`.
    pub(super) fn way(&self, from: usize, to: usize, cursor: Seq, first: Seq) -> Option<(Seq, Leaves)> {
        let mut there = self.entrances.iter().filter(|entrance| entrance.to == to && entrance.at >= first);
        there.find_map(|entrance| {
            let mut exits = entrance.exits.iter().filter(|exit| exit.from == from);
            let leaves = exits.find_map(|exit| exit.leaves.filter(|leaves| leaves.at >= cursor))?;
            Some((entrance.at, leaves))
        })
    }
}
