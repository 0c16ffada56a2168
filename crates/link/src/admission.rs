//! Admission: receivers reserve what their level takes of a link, and what does not fit is not let in.

use std::collections::BTreeMap;

/// What receivers behind a link have reserved of it, bits a second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    by_receiver: BTreeMap<u64, u64>,
    sum: u64,
}

/// What was said of a rate before it could be measured, bits a second; 0 where nothing was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declared {
    /// What the best level takes at most.
    pub best_bps: u64,
    /// What each level takes at least.
    pub least_bps: u64,
}

impl Declared {
    /// What each level takes, the best first, where this was measured of them. If more was said of the best, all take
    /// more in proportion; if nothing is measured, it is what was said, whatever the level.
    pub fn beside(self, mut measured: Vec<u64>) -> Vec<u64> {
        let Declared { best_bps, least_bps } = self;
        let now_bps = measured.first().copied().unwrap_or(0);
        if now_bps == 0 {
            let said = best_bps.max(least_bps);
            return if said == 0 { measured } else { vec![said; measured.len().max(1)] };
        }
        for level in &mut measured {
            let part = u128::from(*level) * u128::from(best_bps.max(now_bps)) / u128::from(now_bps);
            *level = u64::try_from(part).unwrap_or(u64::MAX).max(least_bps);
        }
        measured
    }
}

/// A receiver does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// Bits a second that are left of the link.
    pub left_bps: u64,
    /// What the receiver takes at the level that it wants, and at the lowest that it may have.
    pub takes_bps: (u64, u64),
}

impl Admission {
    /// A receiver wants a level, 1 is the best; `rates` says what each takes, the best first, and is empty before that is
    /// known. If that fits a link of this rate beside what others have reserved, or, where it `may_lower`, a worse one
    /// does, the receiver has reserved what the answered level takes.
    ///
    /// # Errors
    /// There is no room; what the receiver had reserved before, it has still.
    pub fn admit(
        &mut self,
        receiver: u64,
        (rate_bps, rates): (u64, &[u64]),
        (level, may_lower): (u8, bool),
    ) -> Result<u8, NoRoom> {
        let others = self.sum - self.by_receiver.get(&receiver).copied().unwrap_or(0);
        let left_bps = rate_bps.saturating_sub(others);
        let Some(last) = rates.len().checked_sub(1) else {
            self.reserve(receiver, 0);
            return Ok(level);
        };
        // Beyond the last level there is the base.
        let wanted = usize::from(level).saturating_sub(1).min(last);
        let least = if may_lower { last } else { wanted };
        let fits = (wanted..=least).find(|at| rates[*at] <= left_bps);
        let at = fits.ok_or(NoRoom { left_bps, takes_bps: (rates[wanted], rates[least]) })?;
        self.reserve(receiver, rates[at]);
        Ok(if at == wanted { level } else { u8::try_from(at + 1).unwrap_or(level) })
    }

    /// A receiver takes so much from now on, whether there is room for it or not.
    pub fn reserve(&mut self, receiver: u64, bps: u64) {
        self.release(receiver);
        self.by_receiver.insert(receiver, bps);
        self.sum += bps;
    }

    /// A receiver has left.
    pub fn release(&mut self, receiver: u64) {
        self.sum -= self.by_receiver.remove(&receiver).unwrap_or(0);
    }

    /// What all have reserved, bits a second.
    pub fn reserved_bps(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 3] = [4_000, 2_000, 1_000];

    #[test]
    fn receivers_are_let_in_as_long_as_their_level_fits() {
        let mut link = Admission::default();
        let at = |level| (level, false);
        assert_eq!(link.admit(1, (10_000, &RATES), at(1)), Ok(1));
        assert_eq!(link.admit(2, (10_000, &RATES), at(1)), Ok(1));
        let full = NoRoom { left_bps: 2_000, takes_bps: (4_000, 4_000) };
        assert_eq!(link.admit(3, (10_000, &RATES), at(1)), Err(full));
        assert_eq!(link.admit(3, (10_000, &RATES), at(2)), Ok(2));
        assert_eq!(
            (link.admit(4, (10_000, &RATES), at(200)), link.reserved_bps()),
            (Err(NoRoom { left_bps: 0, takes_bps: (1_000, 1_000) }), 10_000)
        );
        link.release(1);
        link.release(1);
        assert_eq!((link.admit(4, (10_000, &RATES), at(200)), link.reserved_bps()), (Ok(200), 7_000));
    }

    #[test]
    fn where_it_may_be_lowered_a_receiver_gets_the_best_level_that_fits() {
        let mut link = Admission::default();
        let lowered = |level| (level, true);
        let got: Vec<_> = (1..5).map(|receiver| link.admit(receiver, (8_000, &RATES), lowered(1))).collect();
        let none = NoRoom { left_bps: 0, takes_bps: (4_000, 1_000) };
        assert_eq!(got, [Ok(1), Ok(1), Err(none), Err(none)]);
        link.release(2);
        let got: Vec<_> = (2..5).map(|receiver| link.admit(receiver, (7_000, &RATES), lowered(1))).collect();
        assert_eq!(got, [Ok(2), Ok(3), Err(none)]);
    }

    #[test]
    fn another_level_is_had_in_the_place_of_the_one_before() {
        let mut link = Admission::default();
        link.admit(1, (5_000, &RATES), (2, false)).expect("room");
        link.admit(2, (5_000, &RATES), (3, false)).expect("room");
        assert_eq!(link.admit(1, (5_000, &RATES), (1, false)), Ok(1));
        assert_eq!(link.admit(2, (5_000, &RATES), (2, false)).map_err(|full| full.left_bps), Err(1_000));
        assert_eq!(link.reserved_bps(), 5_000, "it has what it had");
    }

    #[test]
    fn what_was_said_counts_where_less_is_measured() {
        let [nothing, best] = [0, 8_000].map(|best_bps| Declared { best_bps, least_bps: 0 });
        assert_eq!(nothing.beside(RATES.to_vec()), RATES);
        assert_eq!((nothing.beside(vec![]), nothing.beside(vec![0, 0])), (vec![], vec![0, 0]));
        assert_eq!((best.beside(vec![]), best.beside(vec![0, 0])), (vec![8_000], vec![8_000; 2]));
        assert_eq!(best.beside(RATES.to_vec()), [8_000, 4_000, 2_000], "each level its part");
        assert_eq!(best.beside(vec![9_000, 3_000]), [9_000, 3_000], "it takes more than was said");
        let least = Declared { best_bps: 0, least_bps: 1_500 };
        assert_eq!(least.beside(RATES.to_vec()), [4_000, 2_000, 1_500]);
        assert_eq!((least.beside(vec![]), least.beside(vec![0, 0])), (vec![1_500], vec![1_500; 2]));
        let most = Declared { best_bps: u64::MAX, least_bps: 0 };
        assert_eq!(most.beside(vec![1, 2]), [u64::MAX; 2]);
    }

    #[test]
    fn what_was_said_is_reserved_before_anything_is_known() {
        let mut link = Admission::default();
        let rates = Declared { best_bps: 4_000, least_bps: 0 }.beside(Vec::new());
        assert_eq!(link.admit(1, (10_000, &rates), (1, false)), Ok(1));
        assert_eq!(link.admit(2, (10_000, &rates), (3, true)), Ok(3));
        let full = NoRoom { left_bps: 2_000, takes_bps: (4_000, 4_000) };
        assert_eq!((link.admit(3, (10_000, &rates), (1, true)), link.reserved_bps()), (Err(full), 8_000));
    }

    #[test]
    fn what_is_not_known_yet_takes_nothing_until_it_is() {
        let mut link = Admission::default();
        assert_eq!(link.admit(1, (1_000, &[]), (1, false)), Ok(1));
        assert_eq!(link.admit(2, (3_000, &RATES), (2, false)), Ok(2));
        link.reserve(1, 4_000);
        assert_eq!(link.reserved_bps(), 6_000, "more than there is, as the rate has changed");
        assert_eq!(link.admit(3, (3_000, &RATES), (3, true)).map_err(|full| full.left_bps), Err(0));
    }
}
