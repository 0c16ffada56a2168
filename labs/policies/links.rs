//! The policies of a link over the same packets: the paper's 20 Video and 10 Data connections through 20 Mbit/s, 90 %
//! of it, with the buffer that gives a shared one 70 % goodput of Video.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use outflow_labs::figures::{progress, rounded};
use outflow_link::Policy;
use outflow_study::{Interval, Point, Study, set};
use toml::{Table, Value};

const SCENARIO: &str = include_str!("../../crates/sim/scenarios/abd.toml");
pub(crate) const PAGE: &str = "docs/links.md";

/// What came of it, by policy.
pub(crate) struct Comparison {
    pub(crate) buffer_bytes: u64,
    pub(crate) video_goodput_pct: BTreeMap<String, f64>,
    pub(crate) data_goodput_pct: BTreeMap<String, f64>,
    pub(crate) video_frames_ok_pct: BTreeMap<String, f64>,
    pub(crate) table: String,
}

pub(crate) fn compare(quick: bool) -> Result<Comparison> {
    let buffer_bytes = buffer_of_shb(quick)?;
    progress(format!("with {buffer_bytes} bytes a connection, 70 % of Video is good in a shared buffer"));
    let mut study = scenario(quick)?;
    set(&mut study, "links.out.buffer_per_flow", format!("{buffer_bytes} B").into())?;
    study.insert("sweep".to_owned(), Value::Array(vec![Value::Table(policies())]));
    let points = Study::from_table(study)?.run(&|_| {})?;
    let percent = |of: Interval| rounded(100.0 * of.mean);
    let by_policy = |figure: &dyn Fn(&Point) -> Option<f64>| -> BTreeMap<String, f64> {
        points.iter().filter_map(|point| Some((name(point), figure(point)?))).collect()
    };
    Ok(Comparison {
        buffer_bytes,
        video_goodput_pct: by_policy(&|point| Some(percent(point.traffic.get("video")?.goodput))),
        data_goodput_pct: by_policy(&|point| Some(percent(point.traffic.get("data")?.goodput))),
        video_frames_ok_pct: by_policy(&|point| {
            Some(rounded(100.0 - 100.0 * point.traffic.get("video")?.frames_lost.mean))
        }),
        table: table(&points),
    })
}

fn scenario(quick: bool) -> Result<Table> {
    let mut study: Table = SCENARIO.parse()?;
    study.remove("plot");
    if quick {
        set(&mut study, "replications", Value::Integer(4))?;
        set(&mut study, "duration", "15 s".into())?;
    }
    Ok(study)
}

/// The buffer a connection with which 70 % of Video is good in a shared one, on average.
fn buffer_of_shb(quick: bool) -> Result<u64> {
    let mut study = scenario(quick)?;
    study.remove("sweep");
    set(&mut study, "links.out.policy", "shb".into())?;
    let search = "key = 'links.out.buffer_per_flow'\nunit = 'B'\nfrom = 100\nto = 10000\nwithin = '1 %'\n\
                  goodput = '70 %'\neach = 'off'\nof = ['video']\nconfident = false\n";
    study.insert("search".to_owned(), Value::Table(search.parse()?));
    let points = Study::from_table(study)?.run(&|_| {})?;
    points.first().and_then(|point| point.found).context("no buffer is enough for a shared one")
}

/// All of them, and the paper's with equal weights.
fn policies() -> Table {
    let all: Vec<_> = Policy::ALL.iter().map(|policy| (policy.as_str(), policy.as_str(), "wrr")).collect();
    let all = [&all[..], &[("abd-weq", "abd", "weq")]].concat();
    let list = |of: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        Value::Array(all.iter().map(|one| of(one).into()).collect())
    };
    let mut sweep = Table::new();
    sweep.insert("name".to_owned(), "policy".into());
    sweep.insert("labels".to_owned(), list(|one| one.0));
    sweep.insert("links.out.policy".to_owned(), list(|one| one.1));
    sweep.insert("links.out.scheduler".to_owned(), list(|one| one.2));
    sweep
}

fn name(point: &Point) -> String {
    point.label("policy").map_or_else(String::new, ToString::to_string)
}

fn table(points: &[Point]) -> String {
    let mut text = String::from(
        "| policy | Video goodput (%) | Video frames that can be decoded (%) | Data goodput (%) | \
         mean delay of Video (ms) | 99 % within (ms) |\n|---|---|---|---|---|---|\n",
    );
    let interval = |of: Interval| format!("{:.1} ± {:.1}", 100.0 * of.mean, 100.0 * of.ci95);
    for point in points {
        let (Some(video), Some(data)) = (point.traffic.get("video"), point.traffic.get("data")) else {
            continue;
        };
        let frames = Interval { mean: 1.0 - video.frames_lost.mean, ci95: video.frames_lost.ci95 };
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {:.1} | {:.1} |",
            name(point),
            interval(video.goodput),
            interval(frames),
            interval(data.goodput),
            video.delay_ms.mean,
            video.delays.quantile_ms(0.99),
        );
    }
    text
}
