//! The paper's Figures 2 to 15: which experiment, what goes up, and what the paper says of it.

use std::collections::BTreeMap;

use outflow_study::{Interval, Point};

use crate::plan::{Experiment, videos_of};
use crate::statements::{self, Statement};

/// A figure of the paper.
pub(crate) struct Figure {
    pub(crate) number: u32,
    pub(crate) title: &'static str,
    pub(crate) axes: (&'static str, &'static str),
    pub(crate) experiment: Experiment,
    /// What goes up at a point whose experiment has this many connections of Video from left to right.
    value: fn(&Point, f64) -> Option<Interval>,
    /// What the paper says of it.
    pub(crate) statements: &'static [Statement],
}

/// Points of a line: from left to right, upwards, and half of the confidence interval.
pub(crate) type Series = BTreeMap<String, Vec<(f64, f64, f64)>>;

const VIDEOS: &str = "Video connections";

/// All of them.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        number: 2,
        title: "Buffer a Video connection, 90 % utilisation, 90 % goodput",
        axes: (VIDEOS, "buffer a connection (bytes)"),
        experiment: Experiment::Buffer { goodput: 90 },
        value: a_connection,
        statements: statements::BUFFER_A_CONNECTION,
    },
    Figure {
        number: 3,
        title: "Buffer of all Video, 90 % utilisation, 90 % goodput",
        axes: (VIDEOS, "buffer (bytes)"),
        experiment: Experiment::Buffer { goodput: 90 },
        value: of_all_video,
        statements: statements::BUFFER_OF_ALL,
    },
    Figure {
        number: 4,
        title: "Buffer a Video connection, 90 % utilisation, 70 % goodput",
        axes: (VIDEOS, "buffer a connection (bytes)"),
        experiment: Experiment::Buffer { goodput: 70 },
        value: a_connection,
        statements: statements::BUFFER_A_CONNECTION,
    },
    Figure {
        number: 5,
        title: "Buffer of all Video, 90 % utilisation, 70 % goodput",
        axes: (VIDEOS, "buffer (bytes)"),
        experiment: Experiment::Buffer { goodput: 70 },
        value: of_all_video,
        statements: statements::BUFFER_OF_ALL,
    },
    Figure {
        number: 6,
        title: "Delay of Video, 90 % utilisation, 70 % goodput",
        axes: (VIDEOS, "mean delay (ms)"),
        experiment: Experiment::Buffer { goodput: 70 },
        value: delay,
        statements: statements::DELAY,
    },
    Figure {
        number: 7,
        title: "Delay of Video, 90 % utilisation, 90 % goodput",
        axes: (VIDEOS, "mean delay (ms)"),
        experiment: Experiment::Buffer { goodput: 90 },
        value: delay,
        statements: statements::DELAY,
    },
    Figure {
        number: 8,
        title: "Buffer of all, links from T1 to OC3, 90 % utilisation, 70 % goodput",
        axes: ("connections", "buffer (bytes)"),
        experiment: Experiment::Links { goodput: 70 },
        value: of_all,
        statements: statements::LINKS,
    },
    Figure {
        number: 9,
        title: "Buffer of all, links from T1 to OC3, 90 % utilisation, 90 % goodput",
        axes: ("connections", "buffer (bytes)"),
        experiment: Experiment::Links { goodput: 90 },
        value: of_all,
        statements: statements::LINKS,
    },
    Figure {
        number: 10,
        title: "Goodput of Data, 20 Video and 10 Data through 20 Mbit/s",
        axes: ("buffer a connection (bytes)", "goodput (%)"),
        experiment: Experiment::Sizes,
        value: data_goodput,
        statements: &[],
    },
    Figure {
        number: 11,
        title: "Goodput of Video, 20 Video and 10 Data through 20 Mbit/s",
        axes: ("buffer a connection (bytes)", "goodput (%)"),
        experiment: Experiment::Sizes,
        value: video_goodput,
        statements: statements::SIZES,
    },
    Figure {
        number: 12,
        title: "Goodput of Data, 1.5 kB a connection, half as many Data as Video",
        axes: (VIDEOS, "goodput (%)"),
        experiment: Experiment::Load,
        value: data_goodput,
        statements: statements::DATA_UNDER_LOAD,
    },
    Figure {
        number: 13,
        title: "Goodput of Video, 1.5 kB a connection, half as many Data as Video",
        axes: (VIDEOS, "goodput (%)"),
        experiment: Experiment::Load,
        value: video_goodput,
        statements: statements::VIDEO_UNDER_LOAD,
    },
    Figure {
        number: 14,
        title: "Buffer of all Video, all at once, 90 % goodput",
        axes: (VIDEOS, "buffer (bytes)"),
        experiment: Experiment::Synchronised,
        value: of_all_video,
        statements: statements::SYNCHRONISED,
    },
    Figure {
        number: 15,
        title: "Delay of Video, all at once, 90 % goodput",
        axes: (VIDEOS, "mean delay (ms)"),
        experiment: Experiment::Synchronised,
        value: delay,
        statements: statements::SYNCHRONISED,
    },
];

fn found(point: &Point, times: f64) -> Option<Interval> {
    point.found.map(|found| Interval { mean: found as f64 * times, ci95: 0.0 })
}

fn a_connection(point: &Point, _: f64) -> Option<Interval> {
    found(point, 1.0)
}

fn of_all_video(point: &Point, x: f64) -> Option<Interval> {
    found(point, x)
}

fn of_all(point: &Point, x: f64) -> Option<Interval> {
    debug_assert!(videos_of(x as usize) <= x as usize);
    found(point, x)
}

fn delay(point: &Point, _: f64) -> Option<Interval> {
    point.traffic.get("video").map(|of| of.delay_ms)
}

fn goodput(point: &Point, name: &str) -> Option<Interval> {
    let of = point.traffic.get(name)?.goodput;
    Some(Interval { mean: 100.0 * of.mean, ci95: 100.0 * of.ci95 })
}

fn data_goodput(point: &Point, _: f64) -> Option<Interval> {
    goodput(point, "data")
}

fn video_goodput(point: &Point, _: f64) -> Option<Interval> {
    goodput(point, "video")
}

impl Figure {
    /// Its lines.
    pub(crate) fn series(&self, points: &[Point]) -> Series {
        let mut series = Series::new();
        for point in points {
            let (Some(x), Some(policy)) = (point.label("x").and_then(|x| x.number()), point.label("policy"))
            else {
                continue;
            };
            let line = series.entry(policy.to_string()).or_default();
            if let Some(Interval { mean, ci95 }) = (self.value)(point, x) {
                line.push((x, mean, ci95));
            }
        }
        series
    }
}

/// The figures of an experiment.
pub(crate) fn of(experiment: Experiment) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(move |figure| figure.experiment == experiment)
}
