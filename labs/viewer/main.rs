//! What a viewer in a browser sees when its link becomes narrow, and wide again: Chromium behind 5 Mbit/s, 500 kbit/s
//! and 5 Mbit/s, 40 ms there and back, of a stream of 2.5 Mbit/s that has two lower levels. Beside it, relays without
//! levels: pion, and Janus.
//!
//! The video is coded before, and has in each picture its number, by which the browser's are told. Told are: the
//! longest time without a new picture (less that of one); until the level that fits was shown and stayed, and, once the
//! link is wide, the best; and a score: the PSNR of what was shown against the video before it was coded, 0 dB while
//! nothing new comes for two pictures' times, as a share of the oracle's: the best level that fits, at once.
//!
//! Figures: `viewer`: per source `{"freeze_ms_most", "score_of_oracle", "down_ms", "up_ms"}`, and more. What is not
//! there is in `not_measured`.

mod contenders;
mod scene;
mod score;
mod video;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use outflow_labs::browser::CHROMIUM;
use outflow_labs::figures::{Options, progress, quantile, run_lab};
use outflow_labs::programs::missing;
use outflow_study::plot::{Panel, svg};
use serde_json::{Map, Value, json};

use contenders::{Contender, Sources};
use scene::{NARROW_BPS, Plan, Scene};
use score::Score;
use video::Level;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/viewer.svg");

const FULL: Plan = plan(10, 20, 20);
const QUICK: Plan = plan(3, 10, 12);
/// How often a full run does it. Of times and scores the median is told, of freezes the longest.
const ROUNDS: usize = 3;

const fn plan(before: u64, narrow: u64, after: u64) -> Plan {
    Plan {
        before: Duration::from_secs(before),
        narrow: Duration::from_secs(narrow),
        after: Duration::from_secs(after),
    }
}

/// Figures of one round.
type Told = BTreeMap<&'static str, Value>;
/// A line of the picture.
type Line = (String, Vec<outflow_study::plot::Spot>);

fn main() -> ExitCode {
    run_lab("viewer", lab)
}

fn lab(options: &Options) -> Result<Value> {
    for program in ["ffmpeg", CHROMIUM] {
        if let Some(why) = missing(program) {
            bail!("{why}");
        }
    }
    let (plan, rounds) = if options.quick { (QUICK, 1) } else { (FULL, ROUNDS) };
    let sources = Sources::new()?;
    let scene = Scene::new()?;
    let (mut not_measured, mut all, mut lines) = (Map::new(), BTreeMap::new(), Vec::new());
    for round in 1..=rounds {
        for contender in Contender::ALL {
            let name = contender.name();
            progress(format!("round {round} of {rounds}: {name}"));
            let watched = contender.watched(&scene, plan, &sources);
            match watched.and_then(|watched| Ok((watched, contender.levels(&sources)?))) {
                Ok(((shown, moments), levels)) => {
                    let score = Score::new(levels, shown, moments, NARROW_BPS);
                    tell(name, &score);
                    if round == 1 {
                        lines.push(line(name, &score));
                    }
                    all.entry(contender).or_insert_with(Vec::new).push(score.figures());
                }
                Err(error) => {
                    progress(format!("{name}: not measured: {error:#}"));
                    not_measured.insert(name.to_owned(), json!(format!("{error:#}")));
                }
            }
        }
    }
    if !options.quick {
        draw(lines)?;
        progress(format!("drawn: {PICTURE}"));
    }
    let of = |is_ours: bool| -> Map<String, Value> {
        let some = all.iter().filter(|(contender, _)| contender.is_ours() == is_ours);
        some.map(|(contender, rounds)| (contender.name().to_owned(), over(rounds))).collect()
    };
    let levels: Map<String, Value> = Contender::ALL
        .into_iter()
        .filter_map(|contender| Some((contender.name().to_owned(), levels(contender.levels(&sources).ok()?))))
        .collect();
    Ok(json!({ "viewer": of(true), "beside": of(false), "levels": levels, "rounds": rounds,
        "not_measured": not_measured }))
}

fn tell(name: &str, score: &Score<'_>) {
    progress(format!("{name}: {}", json!(score.figures())));
    for pause in score.long_pauses() {
        progress(format!(
            "{:6.2} s: frozen for {:.0} ms, {} pictures were passed over, {} wide and then {}",
            pause.at_ms / 1000.0,
            pause.ms,
            pause.missing,
            pause.widths.0,
            pause.widths.1
        ));
    }
}

fn levels(levels: &[Level]) -> Value {
    let level = |level: &Level| {
        json!({ "width": level.width, "kbps": (level.bps / 1000.0).round(),
        "psnr_db": outflow_labs::figures::rounded(level.mean_db()) })
    };
    levels.iter().map(level).collect()
}

/// Of several rounds: the longest freeze, and medians. What did not come about in one of them is null.
fn over(rounds: &[Told]) -> Value {
    let keys = rounds.iter().flat_map(Told::keys).copied();
    let figure = |key: &'static str| {
        let values: Option<Vec<f64>> = rounds.iter().map(|round| round.get(key)?.as_f64()).collect();
        let value = values.map(|values| match key {
            "freeze_ms_most" => quantile(&values, 1.0),
            _ => quantile(&values, 0.5),
        });
        (key.to_owned(), json!(value))
    };
    keys.map(figure).collect::<Map<_, _>>().into()
}

/// What a viewer saw, half a second at a time.
fn line(name: &str, score: &Score<'_>) -> Line {
    const EVERY_MS: f64 = 500.0;
    let parts = score.parts();
    let began = parts.first().map_or(0.0, |(at, ..)| *at);
    let mut sums: Vec<f64> = Vec::new();
    for (at, length, db) in parts {
        let slot = ((at - began) / EVERY_MS) as usize;
        sums.resize(sums.len().max(slot + 1), 0.0);
        sums[slot] += length * db / EVERY_MS;
    }
    let spot = |(slot, db): (usize, f64)| (slot as f64 * EVERY_MS / 1000.0, db).into();
    (name.to_owned(), sums.into_iter().enumerate().map(spot).collect())
}

fn draw(lines: Vec<Line>) -> Result<()> {
    let seconds = FULL.before.as_secs();
    let title = format!("500 kbit/s from {seconds} s to {} s", seconds + FULL.narrow.as_secs());
    let axes = ("time (s)".to_owned(), "PSNR (dB)".to_owned());
    Ok(std::fs::write(PICTURE, svg(&[Panel { title, axes, lines }])?)?)
}
