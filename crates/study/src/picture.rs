//! Results as a picture.

use serde::Deserialize;

use super::axis::{Axis, Label};
use super::error::StudyError;
use super::summary::Point;
use super::table;
use crate::plot::{Panel, Spot};

/// What is to be drawn: lines over one axis, one for each value of the others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// The sweep that goes from left to right; words stand side by side.
    pub x: String,
    /// The figure that goes up: `found`, or that of some traffic, as `video.goodput_pct`, or of a node or link, as
    /// `home.missing`.
    pub y: String,
    /// Stands above it; nothing if it is not given.
    #[serde(default)]
    pub title: String,
    /// What the axes are; their names if it is not given.
    pub axes: Option<(String, String)>,
}

impl Plot {
    /// Checks that what it names is there. Nodes and links have these names.
    pub(super) fn check(&self, axes: &[Axis], others: &[String]) -> Result<(), StudyError> {
        if !axes.iter().any(|axis| axis.name == self.x) {
            let names: Vec<_> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let what = format!("plot.x: there is no sweep '{}': possible are {}", self.x, names.join(", "));
            return Err(StudyError::Values(what));
        }
        let is_of_other =
            self.y.rsplit_once('.').is_some_and(|(name, _)| others.iter().any(|other| other == name));
        if !is_of_other && !table::is_figure(&self.y) {
            let figures = table::figures();
            let what =
                format!("plot.y: '{}' is no figure: write found, or TRAFFIC. and one of {figures}", self.y);
            return Err(StudyError::Values(what));
        }
        Ok(())
    }

    /// The picture of results.
    pub fn panel(&self, points: &[Point]) -> Panel {
        let mut lines: Vec<(String, Vec<Spot>)> = Vec::new();
        let mut words: Vec<&Label> = Vec::new();
        for point in points {
            let others = point.at.iter().filter(|(name, _)| *name != self.x);
            let name = others.map(|(_, label)| label.to_string()).collect::<Vec<_>>().join(", ");
            let Some(label) = point.label(&self.x) else { continue };
            let x = label.number().unwrap_or_else(|| {
                let known = words.iter().position(|word| *word == label);
                known.unwrap_or_else(|| {
                    words.push(label);
                    words.len() - 1
                }) as f64
            });
            let place = lines.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                lines.push((name, Vec::new()));
                lines.len() - 1
            });
            if let Some((y, ci)) = table::figure(point, &self.y) {
                lines[place].1.push(Spot { x, y, ci });
            }
        }
        let axes = self.axes.clone().unwrap_or_else(|| (self.x.clone(), self.y.clone()));
        Panel { title: self.title.clone(), axes, lines }
    }
}
