//! What is wanted of a group, and of several interfaces together.

use std::net::IpAddr;

use super::limits::SOURCES_MAX;
use super::{Interest, Level, Mode, Wanted};

/// What is wanted of a group, kept for longer than the router's [`Wanted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    /// Whether only some sources are wanted, or all but some.
    pub mode: Mode,
    /// These, in their order.
    pub sources: Vec<IpAddr>,
    /// The best level that is wanted.
    pub level: Level,
}

impl From<Wanted<'_>> for Wants {
    fn from(wanted: Wanted<'_>) -> Self {
        Wants { mode: wanted.mode, sources: wanted.sources().collect(), level: wanted.level }
    }
}

/// The same as a host's side is told it ([`Host::set`](super::Host::set)).
impl<'a> From<&'a Wants> for Interest<'a> {
    fn from(wants: &'a Wants) -> Self {
        Interest { mode: wants.mode, sources: &wants.sources, level: wants.level }
    }
}

impl Wants {
    /// Whether packets of a source are wanted.
    pub fn receives(&self, source: IpAddr) -> bool {
        self.sources.contains(&source) == (self.mode == Mode::Include)
    }

    /// What is wanted if either is (RFC 3376 section 3.2), at the better level. More than [`SOURCES_MAX`] sources
    /// become all sources.
    #[must_use]
    pub fn or(self, other: Wants) -> Wants {
        let level = self.level.min(other.level);
        let (mode, sources) = match (self.mode, other.mode) {
            (Mode::Include, Mode::Include) => {
                let mut sources = [self.sources, other.sources].concat();
                sources.sort_unstable();
                sources.dedup();
                (Mode::Include, sources)
            }
            (Mode::Exclude, Mode::Exclude) => {
                (Mode::Exclude, keep(self.sources, |source| other.sources.contains(source)))
            }
            (Mode::Exclude, Mode::Include) => {
                (Mode::Exclude, keep(self.sources, |source| !other.sources.contains(source)))
            }
            (Mode::Include, Mode::Exclude) => {
                (Mode::Exclude, keep(other.sources, |source| !self.sources.contains(source)))
            }
        };
        if sources.len() > SOURCES_MAX {
            return Wants { mode: Mode::Exclude, sources: Vec::new(), level };
        }
        Wants { mode, sources, level }
    }
}

fn keep(mut sources: Vec<IpAddr>, is_kept: impl Fn(&IpAddr) -> bool) -> Vec<IpAddr> {
    sources.retain(is_kept);
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(mode: Mode, sources: &[u8], level: u8) -> Wants {
        let sources = sources.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect();
        Wants { mode, sources, level: Level::new(level).expect("not zero") }
    }

    #[test]
    fn what_either_wants_is_wanted_at_the_better_level() {
        use Mode::{Exclude, Include};
        let cases = [
            ((Include, &[1, 3][..]), (Include, &[2, 3][..]), (Include, &[1, 2, 3][..])),
            ((Exclude, &[1, 2]), (Exclude, &[2, 3]), (Exclude, &[2])),
            ((Exclude, &[1, 2]), (Include, &[2, 3]), (Exclude, &[1])),
            ((Include, &[1]), (Exclude, &[1]), (Exclude, &[])),
        ];
        for (a, b, both) in cases {
            let (a, b) = (wanted(a.0, a.1, 3), wanted(b.0, b.1, 2));
            assert_eq!(a.clone().or(b.clone()), wanted(both.0, both.1, 2));
            assert_eq!(b.or(a), wanted(both.0, both.1, 2));
        }
        let (low, high): (Vec<_>, Vec<_>) = ((0..40).collect(), (40..80).collect());
        let all = wanted(Include, &low, 1).or(wanted(Include, &high, 1));
        assert_eq!(all, wanted(Exclude, &[], 1));
    }
}
