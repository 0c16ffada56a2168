//! How many viewers does one core sustain? More and more come, until packets are lost or late.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::{Bench, Outcome, Stage};
use outflow_labs::figures::progress;

use crate::{Results, Setup, Variant, in_a_line};

/// Of which variants that is measured.
pub(crate) const IS_OF: [&str; 2] = ["outflow", "pion"];

const TIME: Duration = Duration::from_secs(3);
/// A relay that keeps up has sent everything so soon after the source's end.
const BEHIND: Duration = Duration::from_millis(250);
/// Where to begin, as a share of what the cost of a packet promises.
const BEGIN: f64 = 0.6;
/// Steps of so much.
const STEP: f64 = 1.1;
const STEPS: usize = 12;

impl Results {
    /// The largest number of viewers that went well.
    pub(crate) fn capacity(&self, bench: &Bench, variant: &Variant) -> Result<usize, String> {
        self.sustained(bench, variant).map_err(|error| in_a_line(&error))
    }

    fn sustained(&self, bench: &Bench, variant: &Variant) -> Result<usize> {
        let load = self.median(variant.name, |outcome| outcome.load - outcome.idle);
        let promised = variant.viewers as f64 / load.context("no packet's cost is known")?;
        let first = (promised * BEGIN).max(1.0);
        let mut stage = bench.open(&Setup { sinks: first as usize, ..variant.setup() })?;
        let mut most = 0;
        for step in 0..STEPS {
            let viewers = (first * STEP.powi(i32::try_from(step)?)) as usize;
            if step > 0
                && let Err(error) = stage.resize(viewers)
            {
                progress(format!("{:<20}{viewers} viewers: {error:#}", variant.name));
                break;
            }
            // What else runs on the machine may have been in the way once.
            let goes_well = (0..2).any(|_| goes_well(&mut stage, variant.name, viewers));
            if !goes_well {
                break;
            }
            most = viewers;
        }
        ensure!(most > 0, "{} viewers are too many already", first as usize);
        Ok(most)
    }
}

fn goes_well(stage: &mut Stage<'_>, name: &str, viewers: usize) -> bool {
    match stage.measure(TIME) {
        Ok(outcome) => {
            let Outcome { lost, behind, .. } = outcome;
            progress(format!("{name:<20}{viewers} viewers: {outcome}, behind {behind:?}"));
            lost == 0 && behind <= BEHIND
        }
        Err(error) => {
            progress(format!("{name:<20}{viewers} viewers: {error:#}"));
            false
        }
    }
}
