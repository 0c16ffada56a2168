//! What a viewer saw, and how fast the client was.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use outflow_client::Change;
use outflow_labs::figures::rounded;
use outflow_media::Time;
use outflow_wavelet::openjpeg;
use outflow_wavelet::psnr::Mse;
use serde_json::{Value, json};

use crate::scene::{NARROW_RATE, Plan, Run};
use crate::video::{LEAD, RATE, Video};

/// A frame is shown so long after it was sent; what comes later is too late.
const PLAYOUT_MS: u64 = 1000;
/// It has settled where nothing that is too much is asked for, for so long.
const SETTLED_MS: u64 = 1000;
/// Pictures that are alike would be infinitely near.
const PSNR_MAX: f64 = 60.0;

/// A run as a viewer saw it.
pub(crate) struct Score {
    /// Of each frame of the experiment; 0 where none was shown (as the paper counts).
    pub(crate) psnr_db: Vec<f64>,
    pub(crate) frames: usize,
}

impl Score {
    pub(crate) fn of(run: &Run, video: &Video, plan: Plan) -> Result<Self> {
        let mut psnr_db = vec![0.0; plan.narrow_until];
        let mut frames = 0;
        for shown in &run.shown {
            let sent = run.began.as_millis() + (shown.number * 1000 / RATE) as u64;
            let is_late = shown.at.as_millis() > sent + PLAYOUT_MS;
            let Some(place) = psnr_db.get_mut(shown.number).filter(|_| !is_late) else { continue };
            let Ok(picture) = openjpeg::decode(&shown.codestream.to_bytes()) else { continue };
            let mse =
                Mse::between(&picture, &video.pictures[LEAD + shown.number]).context("another shape")?;
            *place = mse.psnr_db().min(PSNR_MAX);
            frames += 1;
        }
        Ok(Score { psnr_db, frames })
    }

    pub(crate) fn mean_db(&self) -> f64 {
        self.psnr_db.iter().sum::<f64>() / self.psnr_db.len() as f64
    }

    pub(crate) fn figures(&self) -> BTreeMap<&'static str, Value> {
        BTreeMap::from([("frames", json!(self.frames)), ("psnr_db", json!(rounded(self.mean_db())))])
    }
}

/// What is to be told of how a client adapted.
pub(crate) fn adapted(run: &Run, video: &Video) -> BTreeMap<&'static str, Value> {
    let within = |from: Time, to: Option<Time>| {
        run.changes.iter().filter(move |change| change.at >= from && to.is_none_or(|to| change.at < to))
    };
    let after = |at: Time, since: Time| json!(rounded(at.since(since).as_secs_f64() * 1000.0));
    let narrow: Vec<&Change> = within(run.narrow_at, Some(run.wide_at)).collect();
    let fits = |level: u8| video.rate_of(level.into()) <= NARROW_RATE;
    let mut figures = BTreeMap::from([
        ("changes", json!(run.changes.len())),
        ("changes_while_narrow", json!(narrow.len())),
        ("swings", json!(swings(&narrow))),
    ]);
    if let Some(first) = narrow.first() {
        figures.insert("first_change_ms", after(first.at, run.narrow_at));
    }
    if let Some(settled) = held(&narrow, fits) {
        figures.insert("settled_ms", after(settled, run.narrow_at));
    }
    let wide: Vec<&Change> = within(run.wide_at, None).collect();
    let ideal = if run.changes.last().is_none_or(|change| change.to > 1) {
        None
    } else {
        held(&wide, |level| level == 1)
    };
    if let Some(recovered) = ideal {
        figures.insert("recovered_ms", after(recovered, run.wide_at));
    }
    figures
}

/// When a level of this kind was asked for that was held for as long as it takes.
fn held(changes: &[&Change], is_good: impl Fn(u8) -> bool) -> Option<Time> {
    let mut since = None;
    for change in changes {
        match since {
            Some(since) if change.at.since(since).as_millis() as u64 >= SETTLED_MS => return Some(since),
            _ if !is_good(change.to) => since = None,
            _ => since = since.or(Some(change.at)),
        }
    }
    since
}

/// How often it turned round after having gone by three levels or more.
fn swings(changes: &[&Change]) -> usize {
    let mut turns: Vec<i16> = Vec::new();
    for change in changes {
        let step = i16::from(change.to) - i16::from(change.from);
        match turns.last_mut() {
            Some(last) if last.signum() == step.signum() => *last += step,
            _ => turns.push(step),
        }
    }
    turns.retain(|turn| turn.abs() >= 3);
    turns.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use outflow_adapt::Reason;

    use super::*;

    fn change(ms: u64, from: u8, to: u8) -> Change {
        Change { at: Time::from_millis(ms), from, to, why: Reason::Probing }
    }

    #[test]
    fn it_has_settled_when_it_stays() {
        let all = [change(100, 1, 30), change(600, 30, 2), change(800, 2, 28), change(1900, 28, 27)];
        let all: Vec<&Change> = all.iter().collect();
        assert_eq!(held(&all, |level| level > 20), Some(Time::from_millis(800)));
        assert_eq!(held(&all[..2], |level| level > 20), None);
    }

    #[test]
    fn turning_round_by_little_is_no_swing() {
        let all =
            [change(0, 1, 30), change(1, 30, 28), change(2, 28, 27), change(3, 27, 29), change(4, 29, 10)];
        assert_eq!(swings(&all.iter().collect::<Vec<_>>()), 2, "29 down, 3 up, 2 and -17 are one each");
    }
}
