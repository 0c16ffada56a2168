mod cost;
mod scene;
mod source;
mod video;

use std::process::ExitCode;
use anyhow::Result;
use outflow_labs::bench::Bench;
use outflow_labs::figures::{Options, progress, run_lab};
use serde_json::{Value, json};

fn main() -> ExitCode {
    run_lab("levels", lab)
}

fn lab(_options: &Options) -> Result<Value> {
    let bench = Bench::new()?;
    let video = video::Video::of_clip()?;
    for way in scene::WAYS {
        let mut cost = cost::Cost::open(&bench, &video, way)?;
        for _ in 0..3 {
            for f in [true, false] {
                progress(format!("{} {f}: {}", way.name, cost.measure(f)?));
            }
        }
    }
    Ok(json!({}))
}
