//! Queries of a group and of its sources: which are still to be sent (RFC 3376 section 6.6.3).

use std::net::IpAddr;

use outflow_media::Time;

use super::timing::{Asks, Timing};
use super::wanted::Source;

/// The queries of a group that are still to be sent. Those of its sources stand beside them.
#[derive(Debug)]
pub(super) struct Asking {
    /// How many of the whole group, and whether one is now.
    left: u8,
    is_due: bool,
    /// When the next ones are.
    next: Option<Time>,
}

/// What a query that is now to be sent is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The whole group.
    Group {
        /// The S flag.
        suppress: bool,
    },
    /// Sources of the group: those that [`About::names`].
    Sources {
        /// The S flag.
        suppress: bool,
    },
}

impl About {
    /// The S flag.
    pub(super) const fn suppresses(self) -> bool {
        let (About::Group { suppress } | About::Sources { suppress }) = self;
        suppress
    }

    /// Whether the query is about this source.
    pub(super) fn names(self, source: &Source, last_chance: Time) -> bool {
        match self {
            About::Group { .. } => false,
            About::Sources { suppress } => is_asked(source, suppress, last_chance),
        }
    }
}

/// Whether a source belongs to the query that is due with or without the S flag.
fn is_asked(source: &Source, suppress: bool, last_chance: Time) -> bool {
    source.is_due && source.timer.is_some_and(|timer| timer > last_chance) == suppress
}

impl Asking {
    pub(super) const fn new() -> Self {
        Asking { left: 0, is_due: false, next: None }
    }

    /// When queries are to be sent again.
    pub(super) const fn next(&self) -> Option<Time> {
        self.next
    }

    /// What has begun is sent again, before long.
    fn begin(&mut self, timing: &Timing) {
        if timing.count > 1 {
            let next = timing.now + timing.last_member;
            self.next = Some(self.next.map_or(next, |before| before.min(next)));
        }
    }

    /// "Send Q(G)": the group's timer is lowered, and members are asked, unless they are already and none has
    /// answered. What the timer is then.
    pub(super) fn ask_group(&mut self, timer: Option<Time>, timing: &Timing) -> Option<Time> {
        let is_asked = self.left > 0 && timer.is_some_and(|timer| timer <= timing.last_chance());
        match timing.asks {
            Asks::Nothing => timer,
            Asks::AtOnce => timer.map(|timer| timer.min(timing.now)),
            Asks::Groups | Asks::All if is_asked => timer,
            Asks::Groups | Asks::All => {
                (self.left, self.is_due) = (timing.count, true);
                self.begin(timing);
                timer.map(|timer| timer.min(timing.last_chance()))
            }
        }
    }

    /// "Send Q(G,X)" for those sources of which it holds and that are wanted, unless they are asked about
    /// already (RFC 3376 section 6.6.3.2).
    pub(super) fn ask_sources(
        &mut self,
        sources: &mut [Source],
        timing: &Timing,
        is_meant: impl Fn(IpAddr) -> bool,
    ) {
        let last_chance = timing.last_chance();
        let mut begins = false;
        for source in sources.iter_mut().filter(|source| is_meant(source.address)) {
            let Some(timer) = source.timer else { continue };
            match timing.asks {
                Asks::AtOnce => source.timer = Some(timer.min(timing.now)),
                Asks::All if timer > last_chance => {
                    source.timer = Some(last_chance);
                    (source.left, source.is_due, begins) = (timing.count, true, true);
                }
                Asks::All | Asks::Groups | Asks::Nothing => (),
            }
        }
        if begins {
            self.begin(timing);
        }
    }

    /// Makes those due that are to be sent again, if it is time.
    pub(super) fn ask_again(&mut self, sources: &mut [Source], timing: &Timing) {
        if self.next.is_none_or(|next| next > timing.now) {
            return;
        }
        self.is_due |= self.left > 0;
        let mut most = self.left;
        for source in sources {
            source.is_due |= source.left > 0;
            most = most.max(source.left);
        }
        self.next = (most > 1).then_some(timing.now + timing.last_member);
    }

    /// Whether any query is due.
    pub(super) fn has_query(&self, sources: &[Source]) -> bool {
        self.is_due || sources.iter().any(|source| source.is_due)
    }

    /// The next query that is due. Of sources, those that a host has asked for since get the S flag, so
    /// that no router lowers its timers again.
    pub(super) fn next_query(
        &self,
        timer: Option<Time>,
        sources: &[Source],
        last_chance: Time,
    ) -> Option<About> {
        if self.is_due {
            return Some(About::Group { suppress: timer.is_some_and(|timer| timer > last_chance) });
        }
        let is_due = |suppress| sources.iter().any(|one| is_asked(one, suppress, last_chance));
        [false, true]
            .into_iter()
            .find(|suppress| is_due(*suppress))
            .map(|suppress| About::Sources { suppress })
    }

    /// A query is sent.
    pub(super) fn sent(&mut self, sources: &mut [Source], about: About, last_chance: Time) {
        match about {
            About::Group { .. } => {
                self.is_due = false;
                self.left = self.left.saturating_sub(1);
            }
            About::Sources { suppress } => {
                let asked = sources.iter_mut().filter(|one| is_asked(one, suppress, last_chance));
                for source in asked {
                    source.is_due = false;
                    source.left = source.left.saturating_sub(1);
                }
            }
        }
    }
}
