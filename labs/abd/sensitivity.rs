//! Which of the paper's statements survive other values of what it does not say.

use std::collections::BTreeMap;

use anyhow::Result;
use outflow_labs::figures::progress;
use serde_json::{Value, json};

use crate::figures::{self, FIGURES};
use crate::parameters::{PARAMETERS, Parameters};
use crate::plan::{Experiment, Extent};
use crate::statements::Holds;
use crate::{judged, play};

/// By figure and statement: for which values it holds.
pub(crate) fn table(parameters: &Parameters, extent: Extent) -> Result<Value> {
    let mut variants = vec![("as in the figures".to_owned(), parameters.clone())];
    for parameter in PARAMETERS {
        for value in parameter.values.iter().filter(|value| parameters.all()[parameter.name] != **value) {
            let change = format!("{}={value}", parameter.name);
            variants.push((change.clone(), parameters.clone().with(&change)?));
        }
    }
    let mut experiments: Vec<Experiment> = FIGURES.iter().map(|figure| figure.experiment).collect();
    experiments.sort_unstable();
    experiments.dedup();
    let mut verdicts: BTreeMap<(u32, &str), Vec<(String, Holds)>> = BTreeMap::new();
    for (name, parameters) in &variants {
        progress(format!("with {name}"));
        for experiment in &experiments {
            let points = play(*experiment, parameters, extent)?;
            for figure in figures::of(*experiment) {
                for (text, holds) in judged(figure, &points) {
                    verdicts.entry((figure.number, text)).or_default().push((name.clone(), holds));
                }
            }
        }
    }
    let statements = verdicts.into_iter().map(|((figure, text), verdicts)| {
        let survives = verdicts.iter().all(|(_, holds)| *holds == verdicts[0].1);
        let holds: BTreeMap<_, _> = verdicts.iter().map(|(name, holds)| (name, holds.figure())).collect();
        json!({ "figure": figure, "text": text, "same_for_all": survives, "holds": holds })
    });
    Ok(json!({ "sensitivity": statements.collect::<Vec<_>>() }))
}
