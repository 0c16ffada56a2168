//! What a viewer saw.

use std::collections::BTreeMap;

use outflow_labs::figures::rounded;
use serde_json::{Value, json};

use crate::video::{Level, RATE};

/// A picture counts for as long as it stands, up to this many times the time until the next should come; what stands
/// longer is frozen, and counts as 0 dB.
const STANDS: f64 = 2.0;
/// A level is settled on once nothing worse or better was shown for so long.
const SETTLED_MS: f64 = 2000.0;
/// Pauses that are told of, in pictures' times.
const TOLD_FROM: f64 = 2.5;

const PICTURE_MS: f64 = 1000.0 / RATE as f64;

/// A picture as it was shown. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shown {
    pub(crate) at_ms: f64,
    /// As it is drawn there, if it can be read.
    pub(crate) number: Option<u16>,
    pub(crate) width: u64,
    /// How many the browser says it has shown, those that it did not tell of included.
    pub(crate) count: u64,
}

/// When what happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) began_ms: f64,
    pub(crate) narrow_ms: f64,
    pub(crate) wide_ms: f64,
    pub(crate) ended_ms: f64,
}

/// A time in which no new picture was shown, beyond that of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pause {
    /// Since the beginning.
    pub(crate) at_ms: f64,
    pub(crate) ms: f64,
    /// Numbers of pictures that were passed over.
    pub(crate) missing: u16,
    pub(crate) widths: (u64, u64),
}

pub(crate) struct Score<'l> {
    levels: &'l [Level],
    shown: Vec<Shown>,
    moments: Moments,
    /// Levels that fit: while the link is wide, and while it is narrow.
    fit: (usize, usize),
}

impl<'l> Score<'l> {
    /// `shown` in order.
    pub(crate) fn new(levels: &'l [Level], shown: Vec<Shown>, moments: Moments, narrow_bps: f64) -> Self {
        let fits = levels.iter().position(|level| level.bps < narrow_bps);
        Score { levels, shown, moments, fit: (0, fits.unwrap_or(levels.len() - 1)) }
    }

    /// Two pictures, one shown after the other, of which the second was shown in the time that counts.
    fn pairs(&self) -> impl Iterator<Item = (&Shown, &Shown)> {
        let Moments { began_ms, ended_ms, .. } = self.moments;
        let pairs = self.shown.windows(2).map(|pair| (&pair[0], &pair[1]));
        pairs.filter(move |(_, next)| (began_ms..ended_ms).contains(&next.at_ms))
    }

    pub(crate) fn pauses(&self) -> Vec<Pause> {
        let pause = |(shown, next): (&Shown, &Shown)| {
            // The browser may have shown some between that it did not tell of.
            let parts = next.count.saturating_sub(shown.count).max(1) as f64;
            let numbers = shown.number.zip(next.number);
            let step = numbers.map_or(0, |(number, next)| step(number, next));
            Pause {
                at_ms: shown.at_ms - self.moments.began_ms,
                ms: (next.at_ms - shown.at_ms) / parts - PICTURE_MS,
                missing: step.saturating_sub(parts as u16),
                widths: (shown.width, next.width),
            }
        };
        self.pairs().map(pause).collect()
    }

    /// Pauses of several pictures.
    pub(crate) fn long_pauses(&self) -> impl Iterator<Item = Pause> {
        self.pauses().into_iter().filter(|pause| pause.ms >= (TOLD_FROM - 1.0) * PICTURE_MS)
    }

    /// What stands there then, and is not frozen, in dB: of each part of the time, its beginning, length and value.
    pub(crate) fn parts(&self) -> Vec<(f64, f64, f64)> {
        let mut parts = Vec::new();
        for (shown, next) in self.pairs() {
            let count = next.count.saturating_sub(shown.count).max(1) as f64;
            let stands = (next.at_ms - shown.at_ms).min(STANDS * count * PICTURE_MS);
            parts.push((shown.at_ms, stands, self.value_db(shown)));
            parts.push((shown.at_ms + stands, next.at_ms - shown.at_ms - stands, 0.0));
        }
        parts
    }

    fn value_db(&self, shown: &Shown) -> f64 {
        let level = self.levels.iter().find(|level| level.width == shown.width);
        let Some(level) = level else { return 0.0 };
        // One that cannot be read is one of this level all the same.
        let of_number = shown.number.and_then(|number| level.psnr_db.get(usize::from(number)));
        of_number.copied().unwrap_or_else(|| level.mean_db())
    }

    pub(crate) fn mean_db(&self) -> f64 {
        let all: f64 = self.parts().iter().map(|(_, length, db)| length * db).sum();
        all / (self.moments.ended_ms - self.moments.began_ms)
    }

    /// The best level that fits at each time, changed without delay.
    pub(crate) fn oracle_db(&self) -> f64 {
        let Moments { began_ms, narrow_ms, wide_ms, ended_ms } = self.moments;
        let narrow = (wide_ms - narrow_ms) / (ended_ms - began_ms);
        let mean_db = |level: usize| self.levels[level].mean_db();
        mean_db(self.fit.0) * (1.0 - narrow) + mean_db(self.fit.1) * narrow
    }

    /// When a level was settled on, after `from` and before `to`: from then on nothing else was shown for a while.
    fn settled(&self, level: usize, from: f64, to: f64) -> Option<f64> {
        let width = self.levels[level].width;
        let mut since: Option<f64> = None;
        for shown in self.shown.iter().filter(|shown| (from..to).contains(&shown.at_ms)) {
            match since {
                Some(since) if shown.at_ms - since >= SETTLED_MS => return Some(since),
                _ if shown.width != width => since = None,
                _ => since = since.or(Some(shown.at_ms)),
            }
        }
        since.filter(|since| to - since >= SETTLED_MS)
    }

    pub(crate) fn down_ms(&self) -> Option<f64> {
        let Moments { narrow_ms, wide_ms, .. } = self.moments;
        Some(self.settled(self.fit.1, narrow_ms, wide_ms)? - narrow_ms)
    }

    pub(crate) fn up_ms(&self) -> Option<f64> {
        let Moments { wide_ms, ended_ms, .. } = self.moments;
        Some(self.settled(self.fit.0, wide_ms, ended_ms)? - wide_ms)
    }

    /// Changes of the level that was shown.
    fn changes(&self) -> usize {
        self.pairs().filter(|(shown, next)| shown.width != next.width).count()
    }

    pub(crate) fn figures(&self) -> BTreeMap<&'static str, Value> {
        let pauses = self.pauses();
        let most = pauses.iter().map(|pause| pause.ms).fold(0.0, f64::max);
        let frozen =
            |from: f64| pauses.iter().filter(|pause| pause.ms >= from).map(|pause| pause.ms).sum::<f64>();
        let unread = self.pairs().filter(|(_, next)| next.number.is_none()).count();
        BTreeMap::from([
            ("freeze_ms_most", json!(most.round())),
            ("frozen_ms", json!(frozen((STANDS - 1.0) * PICTURE_MS).round())),
            ("freezes_over_300_ms", json!(pauses.iter().filter(|pause| pause.ms > 300.0).count())),
            ("psnr_db", json!(rounded(self.mean_db()))),
            ("oracle_db", json!(rounded(self.oracle_db()))),
            ("score_of_oracle", json!((1000.0 * self.mean_db() / self.oracle_db()).round() / 1000.0)),
            ("down_ms", json!(self.down_ms().map(f64::round))),
            ("up_ms", json!(self.up_ms().map(f64::round))),
            ("changes", json!(self.changes())),
            ("pictures", json!(pauses.len())),
            ("unread", json!(unread)),
        ])
    }
}

/// How many pictures further one is; they come over and over.
fn step(from: u16, to: u16) -> u16 {
    let all = crate::video::PICTURES;
    (to + all - from % all) % all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENTS: Moments =
        Moments { began_ms: 0.0, narrow_ms: 10_000.0, wide_ms: 20_000.0, ended_ms: 30_000.0 };

    fn levels() -> Vec<Level> {
        let level = |width: u64, bps: f64, db: f64| Level { width, bps, psnr_db: vec![db; 320] };
        vec![level(960, 2.5e6, 40.0), level(480, 9e5, 34.0), level(240, 3e5, 28.0)]
    }

    /// A picture each picture's time, of the width that `width` says, but for those that it leaves out.
    fn shown(width: impl Fn(f64) -> Option<u64>) -> Vec<Shown> {
        let mut count = 0;
        let one = |number: u64| {
            let at_ms = number as f64 * PICTURE_MS;
            let width = width(at_ms)?;
            count += 1;
            Some(Shown { at_ms, number: Some((number % 320) as u16), width, count })
        };
        (0..1000).filter_map(one).collect()
    }

    fn as_fits(at: f64) -> u64 {
        if (10_000.0..20_000.0).contains(&at) { 240 } else { 960 }
    }

    #[test]
    fn the_oracle_has_all_of_its_own_score() {
        let levels = levels();
        let score = Score::new(&levels, shown(|at| Some(as_fits(at))), MOMENTS, 5e5);
        assert!((score.mean_db() / score.oracle_db() - 1.0).abs() < 0.003, "{}", score.mean_db());
        assert_eq!(score.long_pauses().count(), 0);
        assert!(
            score.down_ms().is_some_and(|ms| ms < PICTURE_MS)
                && score.up_ms().is_some_and(|ms| ms < PICTURE_MS)
        );
    }

    #[test]
    fn what_is_frozen_is_worth_nothing_and_told() {
        let levels = levels();
        let seen = shown(|at| (!(10_010.0..15_000.0).contains(&at)).then(|| as_fits(at)));
        let score = Score::new(&levels, seen, MOMENTS, 5e5);
        let lost = score.oracle_db() - score.mean_db();
        assert!((lost - 28.0 * 4.93 / 30.0).abs() < 0.1, "{lost}");
        let pauses: Vec<_> = score.long_pauses().collect();
        assert!(pauses.len() == 1 && (pauses[0].ms - 4966.7).abs() < 40.0, "{pauses:?}");
        assert_eq!(pauses[0].missing, 149);
    }

    #[test]
    fn pictures_of_which_the_browser_does_not_tell_are_no_pause() {
        let levels = levels();
        let seen: Vec<_> = shown(|at| Some(as_fits(at))).into_iter().step_by(4).collect();
        let score = Score::new(&levels, seen, MOMENTS, 5e5);
        assert!(score.long_pauses().count() == 0 && score.mean_db() / score.oracle_db() > 0.98);
    }

    #[test]
    fn a_level_is_settled_on_when_it_stays() {
        let levels = levels();
        let seen = shown(|at| match at as u64 {
            11_000..12_000 | 13_500..20_000 => Some(240),
            10_000..20_000 | 24_000..25_000 => Some(480),
            20_000..23_000 => Some(240),
            _ => Some(960),
        });
        let score = Score::new(&levels, seen, MOMENTS, 5e5);
        assert!(score.down_ms().is_some_and(|ms| (ms - 3500.0).abs() < 40.0), "{:?}", score.down_ms());
        assert!(score.up_ms().is_some_and(|ms| (ms - 5000.0).abs() < 40.0), "{:?}", score.up_ms());
        let never = Score::new(&levels, shown(|_| Some(480)), MOMENTS, 5e5);
        assert_eq!((never.down_ms(), never.up_ms()), (None, None));
    }

    #[test]
    fn numbers_go_round() {
        assert_eq!((step(3, 5), step(319, 0), step(319, 2)), (2, 1, 3));
    }
}
