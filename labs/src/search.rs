//! How many are too many? By doubling, then bisecting.

use std::time::Instant;

use anyhow::Result;

/// Where to look, and when to stop.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The first number that is tried.
    pub from: usize,
    /// The largest.
    pub up_to: usize,
    /// How far the result may be below the truth, as a share of it.
    pub precision: f64,
    /// No further number is tried from then on, if one has gone well.
    pub until: Instant,
}

/// What became of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It went well.
    Good,
    /// It did not. It is tried once more, which is counted: something else may have been in the way.
    Bad,
    /// It cannot go well.
    Impossible,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The largest number that went well; 0 if none did.
    pub most: usize,
    /// The smallest that did not; `None` if all went well that were tried.
    pub too_many: Option<usize>,
    /// Numbers that were tried a second time ...
    pub retried: usize,
    /// ... and those of them that went well then: the first time something was lost, or late.
    pub forgiven: usize,
}

impl Search {
    /// Tries numbers.
    pub fn run(&self, mut attempt: impl FnMut(usize) -> Result<Verdict>) -> Result<Found> {
        let mut twice = |number, found: &mut Found| -> Result<bool> {
            let first = attempt(number)?;
            if first != Verdict::Bad {
                return Ok(first == Verdict::Good);
            }
            let good = attempt(number)? == Verdict::Good;
            found.retried += 1;
            found.forgiven += usize::from(good);
            Ok(good)
        };
        let goes_on = |found: &Found| found.most == 0 || Instant::now() < self.until;
        let mut found = Found { most: 0, too_many: None, retried: 0, forgiven: 0 };
        let mut next = self.from.min(self.up_to);
        while goes_on(&found) && found.most < self.up_to {
            if !twice(next, &mut found)? {
                found.too_many = Some(next);
                break;
            }
            found.most = next;
            next = (2 * next).min(self.up_to);
        }
        while let Some(too_many) = found.too_many
            && goes_on(&found)
            && (too_many - found.most) as f64 > (self.precision * too_many as f64).max(1.0)
        {
            let middle = found.most.midpoint(too_many);
            if twice(middle, &mut found)? {
                found.most = middle;
            } else {
                found.too_many = Some(middle);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn search(from: usize, limit: usize) -> (Found, Vec<usize>) {
        let until = Instant::now() + Duration::from_secs(3600);
        let mut tried = Vec::new();
        let search = Search { from, up_to: 100_000, precision: 0.01, until };
        let found = search.run(|number| {
            tried.push(number);
            Ok(if number <= limit { Verdict::Good } else { Verdict::Impossible })
        });
        (found.expect("nothing fails"), tried)
    }

    #[test]
    fn the_limit_is_found_within_the_precision() {
        for limit in [1, 3, 999, 1000, 1001, 4200, 65_000] {
            let (found, tried) = search(1000, limit);
            assert!(found.most <= limit && found.most + 1 + limit / 100 >= limit, "{limit}: {found:?}");
            assert!(found.too_many.is_some_and(|too_many| too_many > limit));
            assert!(tried.len() < 20, "{tried:?}");
        }
        let none = Found { most: 0, too_many: None, retried: 0, forgiven: 0 };
        assert_eq!(search(1000, usize::MAX).0, Found { most: 100_000, ..none });
        assert_eq!(search(1000, 0).0, Found { too_many: Some(1), ..none });
    }

    #[test]
    fn one_mishap_is_forgiven_and_counted_and_time_is_kept() {
        let until = Instant::now() + Duration::from_secs(3600);
        let search = Search { from: 1, up_to: 4, precision: 0.1, until };
        let mut verdicts = [Verdict::Bad, Verdict::Good].into_iter().cycle();
        let found = search.run(|_| Ok(verdicts.next().expect("they never end"))).expect("nothing fails");
        assert_eq!(found, Found { most: 4, too_many: None, retried: 3, forgiven: 3 });
        let found = search.run(|number| Ok(if number < 4 { Verdict::Good } else { Verdict::Bad }));
        let found = found.expect("nothing fails");
        assert_eq!(found, Found { most: 3, too_many: Some(4), retried: 1, forgiven: 0 });
        let over = Search { until: Instant::now(), ..search };
        assert_eq!(over.run(|_| Ok(Verdict::Good)).expect("nothing fails").most, 1);
    }
}
