//! A branch of a stream in its place: what makes it, and what it carries.

use outflow_graph::{GoesOn, Graph, Tracks, View};
use outflow_media::{Format, Time};
use outflow_packet::gmc::Marks;

use super::senders::Senders;
use crate::control::levels::{Showing, TsLevelBranch, TsLevels};
use crate::schedule::{Branch, BranchId};

/// A branch in its place. Its index in the stream is that of its orders.
#[derive(Debug)]
pub(in crate::control) struct Slot {
    pub(in crate::control) branch: Branch,
    /// What it carries; `None` for the stream's own format.
    pub(super) format: Option<Format>,
    pub(in crate::control) made: Made,
    /// Where its frames begin, and what its levels are, if it is a whole transport stream.
    pub(in crate::control) levels: Option<Box<TsLevels>>,
    /// In which order its pictures are shown.
    pub(in crate::control) showing: Showing,
    /// What its packets say of each track, where they are not the stream's own.
    pub(super) senders: Senders,
    /// How it is numbered, where another process has made it up to now and this one begins it afresh.
    pub(super) goes_on: Option<GoesOn>,
    /// Since when nothing wants it.
    pub(in crate::control) idle_since: Option<Time>,
}

/// What makes a branch.
#[derive(Debug)]
pub(in crate::control) enum Made {
    /// The source; or the first of the stream's renditions.
    Original,
    /// Another of its renditions.
    Rendition,
    /// The stream's services, under this name.
    Declared(BranchId),
    /// A chain of its own, from the packets of another branch.
    Derived { base: usize, what: What, chain: Box<Graph> },
    /// The packets of another branch, which say what they are.
    Marked { base: usize, marks: Marks },
    /// The main track of a branch, and all others of another one, which makes something else of them: they are the same in
    /// all renditions, so that is done once.
    Joined { base: usize, others: usize },
    /// The filter, from the packets of another branch that is a transport stream.
    Level { base: usize, level: Box<TsLevelBranch> },
}

/// What is made of another branch because receivers want it like that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::control) enum What {
    /// A transport stream.
    Ts,
    /// Streams of a transport stream, as RTP.
    Tracks(Tracks),
    /// The same with sound as Opus.
    Opus,
    /// What some of them want to see.
    View(View),
}

impl Slot {
    /// Its next packet follows this number, which was the last that another process gave. Numbers that are signed stay as
    /// they are.
    pub(in crate::control) fn go_on_after(&mut self, number: u16) {
        let tracks: &[_] = if let Some(Format::Rtp(tracks)) = &self.format { tracks } else { &[] };
        if !tracks.iter().any(|track| track.codec.is_srtp()) {
            self.goes_on = Some(GoesOn::after(number));
        }
    }

    pub(super) fn new(branch: Branch, made: Made, format: Option<Format>) -> Self {
        let levels = format.as_ref().and_then(TsLevels::of);
        let (senders, showing) = (Senders::default(), Showing::default());
        Slot { branch, format, made, levels, showing, senders, goes_on: None, idle_since: None }
    }

    /// A level of another branch, which no sink reads yet.
    pub(in crate::control) fn of_level(
        now: Time,
        branch: Branch,
        (base, level): (usize, Box<TsLevelBranch>),
    ) -> Self {
        let slot = Slot::new(branch, Made::Level { base, level }, Some(Format::Ts));
        Slot { levels: None, idle_since: Some(now), ..slot }
    }

    /// The branch that it is a level of, and how it is made.
    pub(in crate::control) fn level(&self) -> Option<(usize, &TsLevelBranch)> {
        match &self.made {
            Made::Level { base, level } => Some((*base, level)),
            _ => None,
        }
    }

    pub(super) fn chain(&self) -> Option<&Graph> {
        match &self.made {
            Made::Derived { chain, .. } => Some(chain),
            Made::Original
            | Made::Rendition
            | Made::Declared(_)
            | Made::Marked { .. }
            | Made::Joined { .. }
            | Made::Level { .. } => None,
        }
    }

    /// The branch that most of it is made of.
    pub(super) fn base(&self) -> Option<usize> {
        match self.made {
            Made::Derived { base, .. }
            | Made::Marked { base, .. }
            | Made::Joined { base, .. }
            | Made::Level { base, .. } => Some(base),
            Made::Original | Made::Rendition | Made::Declared(_) => None,
        }
    }

    /// Whether anything of it is made of this branch.
    pub(super) fn needs(&self, index: usize) -> bool {
        self.base() == Some(index) || matches!(self.made, Made::Joined { others, .. } if others == index)
    }

    /// The branch from which a track comes as it is, if it is joined of two.
    pub(super) fn joins(&self, track: u8) -> Option<usize> {
        let Made::Joined { base, others } = self.made else { return None };
        Some(if track == self.branch.ring().main_track() { base } else { others })
    }

    pub(super) fn is_derived(&self, of: usize, wanted: What) -> bool {
        matches!(self.made, Made::Derived { base, what, .. } if (base, what) == (of, wanted))
    }
}
