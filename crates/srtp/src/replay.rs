//! Which packets came already (RFC 3711, section 3.3.2).

use crate::Refused;
use crate::limits::WINDOW;

const WORDS: usize = (WINDOW / 64) as usize;

/// The packets of a source up to the newest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window {
    newest: Option<u64>,
    /// A bit for each of the last: that of index `i` is bit `i % WINDOW`.
    came: [u64; WORDS],
}

impl Window {
    /// The newest index.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Whether a packet with this index may be new.
    pub(crate) fn check(&self, index: u64) -> Result<(), Refused> {
        let Some(newest) = self.newest else { return Ok(()) };
        let is_old = index + WINDOW <= newest;
        match index <= newest && (is_old || self.came[word(index)] & bit(index) != 0) {
            true => Err(Refused::Replayed),
            false => Ok(()),
        }
    }

    /// It came, and is authentic.
    pub(crate) fn add(&mut self, index: u64) {
        let newest = self.newest.unwrap_or(index);
        let skipped = index.saturating_sub(newest);
        if skipped >= WINDOW {
            self.came = [0; WORDS];
        } else {
            (newest + 1..=index).for_each(|index| self.came[word(index)] &= !bit(index));
        }
        self.came[word(index)] |= bit(index);
        self.newest = Some(newest.max(index));
    }
}

fn word(index: u64) -> usize {
    (index % WINDOW / 64) as usize
}

fn bit(index: u64) -> u64 {
    1 << (index % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_that_came_twice_or_is_too_old_is_refused() {
        let mut window = Window::default();
        window.add(1000);
        assert_eq!(window.check(1000), Err(Refused::Replayed));
        assert_eq!(window.check(1001), Ok(()));
        assert_eq!(window.check(1001 - WINDOW), Ok(()));
        assert_eq!(window.check(1000 - WINDOW), Err(Refused::Replayed));
        window.add(999);
        assert_eq!((window.newest(), window.check(999)), (Some(1000), Err(Refused::Replayed)));
    }

    proptest! {
        #[test]
        fn it_knows_what_a_set_of_all_would(steps in proptest::collection::vec(0_i64..1200, 1..300)) {
            let (mut window, mut all) = (Window::default(), BTreeSet::new());
            let mut at = 5000_i64;
            for step in steps {
                at += step - 500;
                let index = at.max(0) as u64;
                let newest = all.last().copied();
                let refused = newest.is_some_and(|newest| index + WINDOW <= newest || all.contains(&index));
                prop_assert_eq!(window.check(index).is_err(), refused);
                if !refused {
                    window.add(index);
                    all.insert(index);
                }
                prop_assert_eq!(window.newest(), all.last().copied());
            }
        }
    }
}
