//! Queries of a group and of its sources: which are still to be sent (RFC 3376 section 6.6.3).

use std::net::IpAddr;

use outflow_media::Time;

use super::group::{Asks, Group, Source, Timing};

/// The queries of a group that are still to be sent. Those of its sources stand beside them.
#[derive(Debug)]
pub(super) struct Asking {
    /// How many of the whole group, and whether one is now.
    pub(super) left: u8,
    pub(super) is_due: bool,
    /// When the next ones are.
    pub(super) next: Option<Time>,
}

/// What a query that is now to be sent is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The whole group.
    Group {
        /// The S flag.
        suppress: bool,
    },
    /// Sources of the group: those for which [`Group::is_asked`].
    Sources {
        /// The S flag.
        suppress: bool,
    },
}

impl Asking {
    pub(super) const fn new() -> Self {
        Asking { left: 0, is_due: false, next: None }
    }

    /// What has begun is sent again, before long.
    fn begin(&mut self, timing: &Timing) {
        if timing.count > 1 {
            let next = timing.now + timing.last_member;
            self.next = Some(self.next.map_or(next, |before| before.min(next)));
        }
    }
}

impl Group {
    /// "Send Q(G)": the timer is lowered, and members are asked, unless they are already and none has answered.
    pub(super) fn ask_group(&mut self, timing: &Timing) {
        let is_asked = self.asking.left > 0 && self.timer.is_some_and(|timer| timer <= timing.last_chance());
        match timing.asks {
            Asks::Nothing => (),
            Asks::AtOnce => self.timer = self.timer.map(|timer| timer.min(timing.now)),
            Asks::Groups | Asks::All if is_asked => (),
            Asks::Groups | Asks::All => {
                self.timer = self.timer.map(|timer| timer.min(timing.last_chance()));
                (self.asking.left, self.asking.is_due) = (timing.count, true);
                self.asking.begin(timing);
            }
        }
    }

    /// "Send Q(G,X)" for those sources of which it holds and that are wanted, unless they are asked about
    /// already (RFC 3376 section 6.6.3.2).
    pub(super) fn ask_sources(&mut self, timing: &Timing, is_meant: impl Fn(IpAddr) -> bool) {
        let last_chance = timing.last_chance();
        let mut begins = false;
        for source in self.sources.iter_mut().filter(|source| is_meant(source.address)) {
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
            self.asking.begin(timing);
        }
    }

    /// Makes those due that are to be sent again, if it is time.
    pub(super) fn ask_again(&mut self, timing: &Timing) {
        if self.asking.next.is_none_or(|next| next > timing.now) {
            return;
        }
        self.asking.is_due |= self.asking.left > 0;
        let mut most = self.asking.left;
        for source in &mut self.sources {
            source.is_due |= source.left > 0;
            most = most.max(source.left);
        }
        self.asking.next = (most > 1).then_some(timing.now + timing.last_member);
    }

    /// Whether any query is due.
    pub(super) fn has_query(&self) -> bool {
        self.asking.is_due || self.sources.iter().any(|source| source.is_due)
    }

    /// The next query that is due. Of sources, those that a host has asked for since get the S flag, so
    /// that no router lowers its timers again.
    pub(super) fn next_query(&self, last_chance: Time) -> Option<About> {
        if self.asking.is_due {
            return Some(About::Group { suppress: self.timer.is_some_and(|timer| timer > last_chance) });
        }
        let is_asked = |suppress| self.sources.iter().any(|one| Self::is_asked(one, suppress, last_chance));
        [false, true]
            .into_iter()
            .find(|suppress| is_asked(*suppress))
            .map(|suppress| About::Sources { suppress })
    }

    /// Whether a source belongs to the query that is due with or without the S flag.
    pub(super) fn is_asked(source: &Source, suppress: bool, last_chance: Time) -> bool {
        source.is_due && source.timer.is_some_and(|timer| timer > last_chance) == suppress
    }

    /// A query is sent.
    pub(super) fn sent(&mut self, about: About, last_chance: Time) {
        match about {
            About::Group { .. } => {
                self.asking.is_due = false;
                self.asking.left = self.asking.left.saturating_sub(1);
            }
            About::Sources { suppress } => {
                let asked = self.sources.iter_mut().filter(|one| Self::is_asked(one, suppress, last_chance));
                for source in asked {
                    source.is_due = false;
                    source.left = source.left.saturating_sub(1);
                }
            }
        }
    }
}
