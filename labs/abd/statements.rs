//! What the paper says of its figures, as assertions over what came out here.

use serde_json::{Value, json};

use crate::figures::Series;

/// A statement: in words, and whether it holds of a figure and, where it compares two, of the other one of the
/// same experiment.
pub(crate) struct Statement {
    pub(crate) text: &'static str,
    pub(crate) holds: fn(&Series, &Series) -> Holds,
}

/// Whether a statement holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Holds {
    Yes,
    No,
    /// Only there.
    Only(String),
}

impl Holds {
    pub(crate) fn figure(&self) -> Value {
        match self {
            Holds::Yes => json!(true),
            Holds::No => json!(false),
            Holds::Only(condition) => json!(condition),
        }
    }

    fn is(yes: bool) -> Self {
        if yes { Holds::Yes } else { Holds::No }
    }

    /// Of places from left to right.
    fn at(places: &[(f64, bool)]) -> Self {
        let holding: Vec<String> =
            places.iter().filter(|(_, holds)| *holds).map(|(x, _)| x.to_string()).collect();
        match holding.len() {
            0 => Holds::No,
            all if all == places.len() => Holds::Yes,
            _ => Holds::Only(format!(
                "only at {} of {} points: {}",
                holding.len(),
                places.len(),
                holding.join(", ")
            )),
        }
    }
}

/// The height of a line at a place; a value that was sought and is not there is beyond all others.
fn height(series: &Series, line: &str, x: f64) -> f64 {
    let points = series.get(line).into_iter().flatten();
    points.into_iter().find(|point| point.0 == x).map_or(f64::INFINITY, |point| point.1)
}

/// All places of a figure.
fn places(series: &Series) -> Vec<f64> {
    let mut places: Vec<f64> = series.values().flatten().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn everywhere(series: &Series, holds: impl Fn(f64) -> bool) -> Holds {
    Holds::at(&places(series).into_iter().map(|x| (x, holds(x))).collect::<Vec<_>>())
}

/// The ends of a line, from left to right.
fn ends(series: &Series, line: &str) -> Option<((f64, f64), (f64, f64))> {
    let points = series.get(line)?;
    Some(((points.first()?.0, points.first()?.1), (points.last()?.0, points.last()?.1)))
}

/// How well a straight line fits (the coefficient of determination), from three points on.
fn straightness(series: &Series, line: &str) -> Option<f64> {
    let points = series.get(line).filter(|points| points.len() >= 3)?;
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xy) = (sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.0 - x) * (p.1 - y)));
    let yy = sum(&|p| (p.1 - y).powi(2));
    (yy > 0.0).then(|| xy * xy / (xx * yy))
}

/// Whether these lines are straight and rise; which of them, if not all.
fn straight_and_rising(series: &Series, lines: &[&str], least: f64) -> Holds {
    let rises = |line: &str| ends(series, line).is_some_and(|(first, last)| last.1 > first.1);
    let are: Vec<(&str, f64)> =
        lines.iter().map(|line| (*line, straightness(series, line).unwrap_or(0.0))).collect();
    let straight = |(line, fit): &(&str, f64)| *fit >= least && rises(line);
    match are.iter().filter(|one| straight(one)).count() {
        0 => Holds::No,
        all if all == lines.len() => Holds::Yes,
        _ => {
            let told: Vec<_> = are.iter().map(|(line, fit)| format!("{line} {fit:.3}")).collect();
            Holds::Only(format!("R²: {}", told.join(", ")))
        }
    }
}

/// By how much a line rises from 14 to 15 of 30, as a factor.
fn jump(series: &Series, line: &str) -> f64 {
    let at = |x| height(series, line, x);
    at(15.0) / at(14.0)
}

fn jumps_at_the_middle(series: &Series, _: &Series) -> Holds {
    if [14.0, 15.0].iter().any(|x| !places(series).contains(x)) {
        return Holds::Only("not played at 14 and 15".to_owned());
    }
    let others =
        ["shb", "pfb", "pfb-ad", "abd"].map(|line| jump(series, line)).into_iter().fold(1.0, f64::max);
    let jump = jump(series, "abd-weq");
    let is_one = jump > 1.3 && jump > 1.15 * others;
    if is_one || !jump.is_finite() {
        Holds::is(is_one)
    } else {
        Holds::Only(format!("no jump: {jump:.2} times"))
    }
}

pub(crate) const BUFFER_A_CONNECTION: &[Statement] = &[
    Statement {
        text: "ABD needs less buffer per Video connection than SHB, PFB and PFB/AD",
        holds: |series, _| {
            let least = |x| {
                ["shb", "pfb", "pfb-ad"]
                    .map(|line| height(series, line, x))
                    .into_iter()
                    .fold(f64::INFINITY, f64::min)
            };
            everywhere(series, |x| height(series, "abd", x) < least(x))
        },
    },
    Statement {
        text: "ABD needs less buffer per Video connection than PFB and PFB/AD",
        holds: |series, _| {
            let least = |x| height(series, "pfb", x).min(height(series, "pfb-ad", x));
            everywhere(series, |x| height(series, "abd", x) < least(x))
        },
    },
    Statement {
        text: "ABD with equal weights jumps from 14 to 15 Video connections of 30",
        holds: jumps_at_the_middle,
    },
    Statement {
        text: "SHB does well when most of the traffic is Data, and needs much more with more Video",
        holds: |series, _| {
            let Some((first, last)) = ends(series, "shb") else { return Holds::No };
            let pfb = height(series, "pfb", first.0);
            Holds::is(first.1 < pfb && last.1 > 2.0 * first.1)
        },
    },
    Statement {
        text: "ABD takes increasing advantage of multiplexing: less a connection the more there are",
        holds: |series, _| ends(series, "abd").map_or(Holds::No, |(first, last)| Holds::is(last.1 < first.1)),
    },
];

pub(crate) const BUFFER_OF_ALL: &[Statement] = &[Statement {
    text: "PFB and PFB/AD grow linearly: they do not gain from multiplexing",
    holds: |series, _| straight_and_rising(series, &["pfb", "pfb-ad"], 0.98),
}];

pub(crate) const DELAY: &[Statement] = &[
    Statement {
        text: "mean delays stay below 33 ms",
        holds: |series, _| Holds::is(series.values().flatten().all(|point| point.1 < 33.0)),
    },
    Statement {
        text: "mean delays rise with the number of Video connections",
        holds: |series, _| {
            let lines = ["shb", "pfb", "pfb-ad", "abd"];
            let rising = |line: &&str| ends(series, line).is_some_and(|(first, last)| last.1 > first.1);
            let rise: Vec<&str> = lines.into_iter().filter(rising).collect();
            match rise.len() {
                0 => Holds::No,
                4 => Holds::Yes,
                _ => Holds::Only(format!("only {}", rise.join(", "))),
            }
        },
    },
    Statement {
        text: "the delay of ABD with equal weights jumps at about 15 of 30",
        holds: jumps_at_the_middle,
    },
    Statement {
        text: "PFB and PFB/AD have substantially larger mean delays than ABD",
        holds: |series, _| {
            let least = |x| height(series, "pfb", x).min(height(series, "pfb-ad", x));
            everywhere(series, |x| least(x) > 1.2 * height(series, "abd", x))
        },
    },
];

pub(crate) const LINKS: &[Statement] = &[
    Statement {
        text: "ABD needs significantly less buffer than SHB",
        holds: |series, _| everywhere(series, |x| height(series, "abd", x) < 0.9 * height(series, "shb", x)),
    },
    Statement {
        text: "SHB needs more the more is offered",
        holds: |series, _| ends(series, "shb").map_or(Holds::No, |(first, last)| Holds::is(last.1 > first.1)),
    },
    Statement {
        text: "what ABD needs stagnates, or falls, where most is offered",
        holds: |series, _| {
            let Some([.., before, last]) = series.get("abd").map(Vec::as_slice) else { return Holds::No };
            Holds::is(last.1 < 1.1 * before.1)
        },
    },
];

pub(crate) const SIZES: &[Statement] = &[
    Statement {
        text: "Data has a higher goodput than Video with as much buffer",
        holds: |video, data| {
            everywhere(video, |x| video.keys().all(|line| height(data, line, x) >= height(video, line, x)))
        },
    },
    Statement {
        text: "PFB and PFB/AD are significantly poorer than SHB and ABD, for Video",
        holds: |video, _| {
            let of = |lines: [&str; 2], x| lines.map(|line| height(video, line, x));
            everywhere(video, |x| {
                let (worse, better) = (of(["pfb", "pfb-ad"], x), of(["shb", "abd"], x));
                worse[0].max(worse[1]) < better[0].min(better[1])
            })
        },
    },
    Statement {
        text: "PFB and PFB/AD are significantly poorer than SHB and ABD, for Data",
        holds: |_, data| {
            let of = |lines: [&str; 2], x| lines.map(|line| height(data, line, x));
            everywhere(data, |x| {
                let (worse, better) = (of(["pfb", "pfb-ad"], x), of(["shb", "abd"], x));
                worse[0].max(worse[1]) < better[0].min(better[1])
            })
        },
    },
    Statement {
        text: "ABD is of more use to Video than to Data, against SHB",
        holds: |video, data| {
            let gain = |of: &Series, x| height(of, "abd", x) - height(of, "shb", x);
            everywhere(video, |x| gain(video, x) > gain(data, x))
        },
    },
];

/// Places where more is offered than the link takes: 22 Video and 11 Data are 20 Mbit/s.
fn overloaded(series: &Series, holds: impl Fn(f64) -> bool) -> Holds {
    let places = places(series).into_iter().filter(|x| *x > 22.0);
    Holds::at(&places.map(|x| (x, holds(x))).collect::<Vec<_>>())
}

const LINES: [&str; 4] = ["shb", "pfb", "pfb-ad", "abd"];

pub(crate) const DATA_UNDER_LOAD: &[Statement] = &[
    Statement {
        text: "Data gains most from ABD under overload, even more than from SHB",
        holds: |data, _| {
            overloaded(data, |x| LINES.iter().all(|line| height(data, "abd", x) >= height(data, line, x)))
        },
    },
    Statement {
        text: "Data gains least from PFB/AD under overload",
        holds: |data, _| {
            overloaded(data, |x| LINES.iter().all(|line| height(data, "pfb-ad", x) <= height(data, line, x)))
        },
    },
    Statement { text: "the goodput of all falls under load", holds: |data, _| falls(data) },
];

fn falls(series: &Series) -> Holds {
    let fall = |line: &&str| ends(series, line).is_some_and(|(first, last)| last.1 < first.1);
    let falling: Vec<&str> = LINES.into_iter().filter(fall).collect();
    match falling.len() {
        4 => Holds::Yes,
        0 => Holds::No,
        _ => Holds::Only(format!("only {}", falling.join(", "))),
    }
}

pub(crate) const VIDEO_UNDER_LOAD: &[Statement] = &[
    Statement {
        text: "ABD and PFB/AD keep a higher goodput of Video under overload than SHB and PFB",
        holds: |video, _| {
            overloaded(video, |x| {
                let of = |lines: [&str; 2]| lines.map(|line| height(video, line, x));
                let (better, worse) = (of(["abd", "pfb-ad"]), of(["shb", "pfb"]));
                better[0].min(better[1]) > worse[0].max(worse[1])
            })
        },
    },
    Statement {
        text: "ABD keeps a higher goodput of Video under overload than SHB",
        holds: |video, _| overloaded(video, |x| height(video, "abd", x) > height(video, "shb", x)),
    },
    Statement { text: "the goodput of all falls under load", holds: |video, _| falls(video) },
];

pub(crate) const SYNCHRONISED: &[Statement] = &[Statement {
    text: "without staggering it grows linearly with the number of Video connections",
    holds: |series, _| straight_and_rising(series, &["shb", "abd"], 0.95),
}];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(heights: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
        heights.iter().map(|(x, y)| (*x, *y, 0.0)).collect()
    }

    fn series(lines: &[(&str, &[(f64, f64)])]) -> Series {
        lines.iter().map(|(name, heights)| ((*name).to_owned(), line(heights))).collect()
    }

    #[test]
    fn a_statement_holds_everywhere_somewhere_or_nowhere() {
        let others: [(&str, &[(f64, f64)]); 3] = [
            ("shb", &[(2.0, 5.0), (30.0, 9.0)]),
            ("pfb", &[(2.0, 9.0), (30.0, 9.0)]),
            ("pfb-ad", &[(2.0, 9.0), (30.0, 9.0)]),
        ];
        let with = |heights: &'static [(f64, f64)]| {
            let all = series(&[others[0], others[1], others[2], ("abd", heights)]);
            (BUFFER_A_CONNECTION[0].holds)(&all, &all)
        };
        assert_eq!(with(&[(2.0, 4.0), (30.0, 8.0)]), Holds::Yes);
        assert_eq!(with(&[(2.0, 6.0), (30.0, 9.0)]), Holds::No);
        assert_eq!(with(&[(2.0, 6.0), (30.0, 8.0)]), Holds::Only("only at 1 of 2 points: 30".into()));
        assert_eq!(
            with(&[(2.0, 4.0)]),
            Holds::Only("only at 1 of 2 points: 2".into()),
            "none is enough at 30"
        );
    }

    #[test]
    fn straight_lines_are_told_from_others() {
        let straight = series(&[("pfb", &[(1.0, 2.0), (2.0, 4.1), (3.0, 6.0)])]);
        assert!(straightness(&straight, "pfb").is_some_and(|fit| fit > 0.99));
        let bent = series(&[("pfb", &[(1.0, 2.0), (2.0, 9.0), (3.0, 3.0)])]);
        assert!(straightness(&bent, "pfb").is_some_and(|fit| fit < 0.2));
        assert_eq!(straight_and_rising(&straight, &["pfb"], 0.98), Holds::Yes);
        assert_eq!(straight_and_rising(&bent, &["pfb"], 0.98), Holds::No);
    }
}
