//! The sources of a group, and which of them are wanted.

use std::net::IpAddr;

use outflow_media::Time;

use crate::membership::{Level, Mode};

/// A source of a group.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) address: IpAddr,
    /// Until when it is wanted. Without, it is one that is not, which only `Mode::Exclude` has.
    pub(super) timer: Option<Time>,
    /// Queries of it that are still to be sent, and whether one is now.
    pub(super) left: u8,
    pub(super) is_due: bool,
}

/// What is wanted of a group (RFC 3376 section 6.3).
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Whether only some sources are wanted, or all but some.
    pub mode: Mode,
    /// The best level that a host wants.
    pub level: Level,
    sources: &'a [Source],
}

impl<'a> Wanted<'a> {
    pub(super) const fn new(mode: Mode, level: Level, sources: &'a [Source]) -> Self {
        Wanted { mode, level, sources }
    }

    /// The sources that the mode is about, in their order.
    pub fn sources(&self) -> impl Iterator<Item = IpAddr> + 'a {
        let mode = self.mode;
        let is_listed = move |source: &&Source| (mode == Mode::Include) == source.timer.is_some();
        self.sources.iter().filter(is_listed).map(|source| source.address)
    }

    /// Whether packets of this source are wanted.
    pub fn receives(&self, source: IpAddr) -> bool {
        self.sources().any(|one| one == source) == (self.mode == Mode::Include)
    }
}
