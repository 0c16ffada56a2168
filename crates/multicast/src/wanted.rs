//! What is wanted of a group, and of several interfaces together.

use std::net::IpAddr;

use outflow_routing::membership::{self, Level, Mode, limits::SOURCES_MAX};

/// What is wanted of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Whether only some sources are wanted, or all but some.
    pub mode: Mode,
    /// These, in their order.
    pub sources: Vec<IpAddr>,
    /// The best level that is wanted.
    pub level: Level,
}

impl From<membership::Wanted<'_>> for Wanted {
    fn from(wanted: membership::Wanted<'_>) -> Self {
        Wanted { mode: wanted.mode, sources: wanted.sources().collect(), level: wanted.level }
    }
}

impl Wanted {
    /// Whether packets of a source are wanted.
    pub fn receives(&self, source: IpAddr) -> bool {
        self.sources.contains(&source) == (self.mode == Mode::Include)
    }

    /// What is wanted if either is (RFC 3376 section 3.2): a list that is too long is of all sources.
    pub(crate) fn or(self, other: Wanted) -> Wanted {
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
            return Wanted { mode: Mode::Exclude, sources: Vec::new(), level };
        }
        Wanted { mode, sources, level }
    }
}

fn keep(mut sources: Vec<IpAddr>, is_kept: impl Fn(&IpAddr) -> bool) -> Vec<IpAddr> {
    sources.retain(is_kept);
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(mode: Mode, sources: &[u8], level: u8) -> Wanted {
        let sources = sources.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect();
        Wanted { mode, sources, level: Level::new(level).expect("not zero") }
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
