//! Studies: a network played many times, with other seeds, with other values, or until a value is found that is
//! enough.
//!
//! A [`Study`] is a network's file with a few keys more:
//!
//! ```toml
//! replications = 20
//!
//! [[sweep]]                              # every value of it, with every value of the others
//! name = "connections"
//! "traffic.video.flows" = [10, 20, 30]   # keys of one sweep change together
//! "traffic.data.flows" = [20, 10, 0]
//!
//! [search]                               # the smallest value that is enough
//! key = "links.out.buffer_per_flow"
//! unit = "B"
//! from = 50
//! to = 200000
//! goodput = "90 %"
//!
//! [plot]
//! x = "connections"
//! y = "found"                            # or a figure of some traffic, as "video.goodput_pct", or of a node or link
//! ```
//!
//! Runs are spread over all cores. What comes out does not depend on how many there are: every run has its seed,
//! and results are put together in their order.

mod axis;
mod error;
mod limits;
mod picture;
pub mod plot;
mod search;
mod stats;
mod summary;
mod table;

#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Deserialize;

pub use axis::{Axis, Label};
pub use error::StudyError;
pub use picture::Plot;
pub use search::{Search, Sufficient};
pub use stats::Interval;
pub use summary::{Point, TrafficSummary};
pub use table::{csv, json, words};

use crate::limits::{POINTS_MAX, REPLICATIONS_MAX};
use axis::apply;
use outflow_sim::network::{Captures, Network, NetworkOutcome, play};

/// What is to be found out.
#[derive(Debug, Clone)]
pub struct Study {
    /// The network as it is written, for values to be changed in it.
    base: toml::Table,
    captures: Captures,
    /// Runs of each point, with seeds that follow each other.
    pub replications: u64,
    /// Values that vary.
    pub axes: Vec<Axis>,
    /// A value that is sought at each point.
    pub search: Option<Search>,
    /// What is to be drawn.
    pub plot: Option<Plot>,
}

/// How far a study is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Points that are done, and all of them.
    pub points: (u64, u64),
    /// Runs so far.
    pub runs: u64,
}

#[derive(Debug, Deserialize)]
struct Outline {
    #[serde(default = "one")]
    replications: u64,
    #[serde(default)]
    sweep: Vec<toml::Table>,
    search: Option<Search>,
    plot: Option<Plot>,
}

fn one() -> u64 {
    1
}

/// Keys of a study that are none of a network.
const KEYS: [&str; 4] = ["replications", "sweep", "search", "plot"];

impl Study {
    /// Reads a study.
    ///
    /// # Errors
    /// It is not TOML, names what is not there, or is no network at some point of it.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let table = text.parse().map_err(|error: toml::de::Error| StudyError::Syntax(error.to_string()))?;
        Study::from_table(table)
    }

    /// The study of a table.
    ///
    /// # Errors
    /// The same.
    pub fn from_table(mut table: toml::Table) -> Result<Self, StudyError> {
        let own = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), table.remove(*key)?))).collect();
        let outline: Outline = toml::Value::Table(own)
            .try_into()
            .map_err(|error: toml::de::Error| StudyError::Syntax(error.to_string()))?;
        if !(1..=REPLICATIONS_MAX).contains(&outline.replications) {
            return Err(StudyError::Values(format!("replications must be 1 to {REPLICATIONS_MAX}")));
        }
        let axes = outline.sweep.into_iter().map(Axis::new).collect::<Result<Vec<_>, _>>()?;
        let Outline { replications, search, plot, .. } = outline;
        let captures = Captures::default();
        let mut study = Study { base: table, captures, replications, axes, search, plot };
        let points = study.points();
        if points > POINTS_MAX {
            return Err(StudyError::Values(format!(
                "the sweeps have {points} points together, more than {POINTS_MAX}: take fewer values"
            )));
        }
        // Whatever is wrong is told before anything runs.
        let tables = ["nodes", "links"].into_iter().filter_map(|key| study.base.get(key)?.as_table());
        let others: Vec<String> = tables.flat_map(|table| table.keys().cloned()).collect();
        study.plot.iter().try_for_each(|plot| plot.check(&study.axes, &others))?;
        let mut captures = Captures::default();
        (0..points).try_for_each(|point| study.check(point, &mut captures))?;
        study.captures = captures;
        Ok(study)
    }

    /// How many points there are.
    pub fn points(&self) -> usize {
        self.axes.iter().map(Axis::len).fold(1, usize::saturating_mul)
    }

    /// Runs all of it, and tells how far it is.
    ///
    /// # Errors
    /// A value that is tried by the search makes no network.
    pub fn run(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Vec<Point>, StudyError> {
        let (points, runs, all) = (AtomicU64::new(0), AtomicU64::new(0), self.points() as u64);
        let tell = |point_done: bool, run_done: bool| {
            let points = points.fetch_add(u64::from(point_done), Ordering::Relaxed) + u64::from(point_done);
            let runs = runs.fetch_add(u64::from(run_done), Ordering::Relaxed) + u64::from(run_done);
            progress(Progress { points: (points, all), runs });
        };
        let point = |at: usize| {
            let (labels, table) = self.at(at)?;
            let play = |table: &toml::Table, sufficient: Option<&Sufficient>| {
                self.replicate(table, sufficient, &|| tell(false, true))
            };
            let result = match &self.search {
                None => play(&table, None)?.map(|runs| (None, runs)),
                Some(search) => search.find(&table, &play)?.map(|(value, runs)| (Some(value), runs)),
            };
            tell(true, false);
            Ok(Point::new(labels, result))
        };
        (0..self.points()).into_par_iter().map(point).collect()
    }

    /// The values at a point, and the network with them.
    fn at(&self, mut point: usize) -> Result<(Vec<(String, Label)>, toml::Table), StudyError> {
        let mut table = self.base.clone();
        let mut labels = Vec::new();
        // The last one changes fastest.
        for axis in self.axes.iter().rev() {
            let place = point % axis.len();
            point /= axis.len();
            axis.put(place, &mut table)?;
            labels.push((axis.name.clone(), axis.label(place)));
        }
        labels.reverse();
        Ok((labels, table))
    }

    /// Whether a point is a network. Captures that it names are read.
    fn check(&self, point: usize, captures: &mut Captures) -> Result<(), StudyError> {
        let (labels, mut table) = self.at(point)?;
        if let Some(search) = &self.search {
            search.put(search.to, &mut table)?;
        }
        let network = Network::from_table(table, captures);
        network.map(drop).map_err(|error| StudyError::Network { at: axis::at(&labels), error })
    }

    /// All replications of a network; `None` if one of them shows that it is not sufficient.
    fn replicate(
        &self,
        table: &toml::Table,
        sufficient: Option<&Sufficient>,
        ran: &(dyn Fn() + Sync),
    ) -> Result<Option<Vec<NetworkOutcome>>, StudyError> {
        let wrong = |error| StudyError::Network { at: String::new(), error };
        let network = Network::from_table(table.clone(), &mut self.captures.clone()).map_err(wrong)?;
        let run = |replication: u64| {
            let seed = network.seed.wrapping_add(replication);
            let outcome = play(&Network { seed, ..network.clone() }).map_err(|error| Some(wrong(error)))?;
            ran();
            // Nothing that others bring can make up for it.
            let is_hopeless = sufficient.is_some_and(|sufficient| !sufficient.least_holds(&outcome));
            if is_hopeless { Err(None) } else { Ok(outcome) }
        };
        let runs: Result<Vec<_>, _> = (0..self.replications).into_par_iter().map(run).collect();
        match runs {
            Ok(runs) if sufficient.is_none_or(|sufficient| sufficient.holds(&runs)) => Ok(Some(runs)),
            Ok(_) | Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }
}

/// Changes one value of a study or network, by its key, as `links.out.rate`.
///
/// # Errors
/// There is no such place.
pub fn set(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), StudyError> {
    apply(table, key, value)
}
