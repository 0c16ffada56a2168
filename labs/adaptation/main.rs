//! The paper's Figures 3 and 4 (GMS, section IV.C): wavelet video of 33 layers at 15 frames a second goes from a
//! source through the relay to a client; from the fifth second on the link to the client carries 100 kbit/s
//! instead of 100 Mbit/s, until 300 frames have been sent; after 18 seconds there is another scene. Once without
//! adaptation, once with the paper's algorithm, once with ours; and at single levels about the one that fits,
//! found by trying, of which the best is the oracle.
//!
//! Told are frames that were shown, in time, and their mean PSNR over all 300 (0 dB where none was shown, as the
//! paper counts); after the limit: milliseconds to the first request, until no level is asked for that is too
//! much, and, after it was lifted, until the best level is asked for and kept. `swings` counts turns by three
//! levels or more while the link is narrow.

mod scene;
mod score;
mod video;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use outflow_adapt::{Gradient, Paper, Policy};
use outflow_labs::figures::{Options, progress, run_lab};
use outflow_labs::programs::missing;
use outflow_study::plot::{Panel, svg};
use serde_json::{Map, Value, json};

use scene::{Client, NARROW_RATE, Plan, Run, Scene, run};
use score::{Score, adapted};
use video::{LEAD, RATE, Video};

const LEVELS: u8 = 33;
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/adaptation.svg");

const FULL: Plan = Plan { narrow_from: 5 * RATE, narrow_until: 300, end: 300 + 7 * RATE };
const QUICK: Plan = Plan { narrow_from: 2 * RATE, narrow_until: 6 * RATE, end: 10 * RATE };

fn main() -> ExitCode {
    run_lab("adaptation", lab)
}

fn lab(options: &Options) -> Result<Value> {
    if let Some(why) = missing("ffmpeg") {
        bail!("{why}");
    }
    let (plan, beside) = if options.quick { (QUICK, 0) } else { (FULL, 2) };
    progress(format!("{} pictures are coded", plan.end));
    let lab = Lab { scene: Scene::new()?, video: Video::new(LEAD + plan.end)?, plan };
    let (mut figures, mut lines) = (Map::new(), Vec::new());
    let clients: [(&str, Option<Box<dyn Policy>>); 3] = [
        ("without", None),
        ("paper", Some(Box::new(Paper::default()))),
        ("ours", Some(Box::new(Gradient::default()))),
    ];
    for (name, policy) in clients {
        let adapts = policy.is_some();
        let (run, score) = lab.play(Client { level: 1, policy })?;
        let mut told = score.figures();
        if adapts {
            told.extend(adapted(&run, &lab.video));
            run.changes.iter().for_each(|change| tell(&run, change));
        }
        progress(format!("{name}: {}", json!(told)));
        figures.insert(name.to_owned(), json!(told));
        lines.push((name.to_owned(), score));
    }
    let (level, score) = lab.oracle(beside)?;
    let mut told = score.figures();
    told.insert("level", json!(level));
    figures.insert("oracle".to_owned(), json!(told));
    lines.push((format!("oracle (level {level})"), score));
    if !options.quick {
        draw(&lines)?;
        progress(format!("drawn: {PICTURE}"));
    }
    Ok(figures.into())
}

fn tell(run: &Run, change: &outflow_client::Change) {
    progress(format!("{:7.3} s: {change}", change.at.since(run.began).as_secs_f64()));
}

struct Lab {
    scene: Scene,
    video: Video,
    plan: Plan,
}

impl Lab {
    fn play(&self, client: Client) -> Result<(Run, Score)> {
        let run = run(&self.scene, &self.video, self.plan, client)?;
        let score = Score::of(&run, &self.video, self.plan)?;
        Ok((run, score))
    }

    /// The single level that is best, of those about the first that fits.
    fn oracle(&self, beside: u8) -> Result<(u8, Score)> {
        let fits = |level: &u8| self.video.rate_of((*level).into()) <= NARROW_RATE;
        let first = (1..=LEVELS).find(fits).unwrap_or(LEVELS);
        let mut best: Option<(u8, Score)> = None;
        for level in first.saturating_sub(beside).max(1)..=(first + beside).min(LEVELS) {
            let (_, score) = self.play(Client { level, policy: None })?;
            progress(format!("level {level}: {}", json!(score.figures())));
            if best.as_ref().is_none_or(|(_, known)| known.mean_db() < score.mean_db()) {
                best = Some((level, score));
            }
        }
        best.context("no level was tried")
    }
}

/// The PSNR of each frame.
fn draw(lines: &[(String, Score)]) -> Result<()> {
    let points = |score: &Score| {
        let at = |(number, db): (usize, &f64)| (number as f64 / RATE as f64, *db).into();
        score.psnr_db.iter().enumerate().map(at).collect()
    };
    let lines = lines.iter().map(|(name, score)| (name.clone(), points(score))).collect();
    let title = "100 kbit/s from 5 s on, another scene at 18 s".to_owned();
    let axes = ("time (s)".to_owned(), "PSNR (dB)".to_owned());
    Ok(std::fs::write(PICTURE, svg(&[Panel { title, axes, lines }])?)?)
}
