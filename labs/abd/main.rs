//! The whole of the paper's section 5, in virtual time: Figures 2 to 15 with its four policies, and whether what it
//! says of each holds. The same seeds give the same figures everywhere.

mod figures;
mod parameters;
mod plan;
mod sensitivity;
mod statements;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use outflow_labs::figures::{conclude, progress, rounded};
use outflow_study::Point;
use outflow_study::plot::{Panel, Spot, svg};
use serde_json::{Value, json};

use figures::{FIGURES, Figure, Series};
use parameters::Parameters;
use plan::{Experiment, Extent};
use statements::Holds;

/// Where pictures go: beside what is built.
const PICTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/abd");

/// What the lab can do.
#[derive(Debug, Parser)]
#[command(after_help = parameters::help())]
struct Arguments {
    /// Only this figure of the paper, 2 to 15; all if not given
    #[arg(long)]
    figure: Option<u32>,
    /// Another value of a parameter, as packet_bytes=1500
    #[arg(long, value_name = "PARAMETER=VALUE")]
    set: Vec<String>,
    /// Which statements survive other values of the parameters
    #[arg(long, conflicts_with = "figure")]
    sensitivity: bool,
    /// State and work per packet of each policy (the paper's Tables 3 and 4)
    #[arg(long, conflicts_with_all = ["figure", "sensitivity"])]
    work: bool,
    /// What is counted for --work
    #[arg(long, hide = true, value_name = "POLICY,FLOWS,PACKETS")]
    load: Option<work::Load>,
    /// A few points and replications, within a minute
    #[arg(long)]
    quick: bool,
    /// Print the figures as one line of JSON (they always are; for the habit's sake)
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    conclude("abd", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    let parameters = Parameters::default();
    let parameters =
        arguments.set.iter().try_fold(parameters, |parameters, change| parameters.with(change))?;
    if let Some(load) = &arguments.load {
        return Ok(json!({ "state_bytes": load.run() }));
    }
    if arguments.work {
        return work::measure();
    }
    let extent = if arguments.quick { Extent::Quick } else { Extent::Full };
    if arguments.sensitivity {
        return sensitivity::table(&parameters, if arguments.quick { Extent::Quick } else { Extent::Short });
    }
    let wanted: Vec<&Figure> = match arguments.figure {
        None => FIGURES.iter().collect(),
        Some(number) => match FIGURES.iter().find(|figure| figure.number == number) {
            Some(figure) => vec![figure],
            None => bail!("the paper has Figures 2 to 15, not {number}"),
        },
    };
    let mut played = BTreeMap::new();
    let mut told = Vec::new();
    for figure in wanted {
        let points = match played.entry(figure.experiment) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(play(figure.experiment, &parameters, extent)?)
            }
        };
        told.push(tell(figure, points, &parameters)?);
    }
    if arguments.figure.is_some() { Ok(told.swap_remove(0)) } else { Ok(json!({ "figures": told })) }
}

/// Runs an experiment.
fn play(experiment: Experiment, parameters: &Parameters, extent: Extent) -> Result<Vec<Point>> {
    let study = experiment.study(parameters, extent)?;
    progress(format!("{experiment:?}: {} points, {} runs each", study.points(), study.replications));
    Ok(study.run(&|_| {})?)
}

/// Whether each statement about a figure holds.
fn judged(figure: &Figure, points: &[Point]) -> Vec<(&'static str, Holds)> {
    let series = figure.series(points);
    let other = figures::of(figure.experiment).find(|other| other.number != figure.number);
    let other = other.map_or_else(Series::new, |other| other.series(points));
    figure.statements.iter().map(|statement| (statement.text, (statement.holds)(&series, &other))).collect()
}

fn tell(figure: &Figure, points: &[Point], parameters: &Parameters) -> Result<Value> {
    let series = figure.series(points);
    let statements = judged(figure, points);
    progress(format!("Figure {}: {}", figure.number, figure.title));
    for (text, holds) in &statements {
        let verdict = match holds {
            Holds::Yes => "holds".to_owned(),
            Holds::No => "does not hold".to_owned(),
            Holds::Only(condition) => condition.clone(),
        };
        progress(format!("  {text}: {verdict}"));
    }
    progress(format!("  drawn: {}", draw(figure, &series)?.display()));
    let point = |(x, mean, ci95): &(f64, f64, f64)| json!([x, rounded(*mean), rounded(*ci95)]);
    let lines = |line: &Vec<(f64, f64, f64)>| line.iter().map(point).collect::<Vec<_>>();
    let series: BTreeMap<_, _> = series.iter().map(|(name, line)| (name, lines(line))).collect();
    let statement = |(text, holds): &(&str, Holds)| json!({ "text": text, "holds": holds.figure() });
    Ok(json!({
        "figure": figure.number,
        "parameters": parameters.all(),
        "statements": statements.iter().map(statement).collect::<Vec<_>>(),
        "series": series,
    }))
}

fn draw(figure: &Figure, series: &Series) -> Result<PathBuf> {
    let spot = |(x, y, ci): &(f64, f64, f64)| Spot { x: *x, y: *y, ci: *ci };
    let line = |name: &&str| {
        let spots = series.get(*name).into_iter().flatten().map(spot).collect();
        ((*name).to_owned(), spots)
    };
    let names: Vec<&str> = figure.experiment.lines().iter().map(|line| line.0).collect();
    let panel = Panel {
        title: format!("Figure {}: {}", figure.number, figure.title),
        axes: (figure.axes.0.to_owned(), figure.axes.1.to_owned()),
        lines: names.iter().map(line).collect(),
    };
    std::fs::create_dir_all(PICTURES)?;
    let file = Path::new(PICTURES).join(format!("figure-{:02}.svg", figure.number));
    std::fs::write(&file, svg(&[panel])?)?;
    Ok(file)
}
