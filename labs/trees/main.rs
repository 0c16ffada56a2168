//! Trees of relays at scale, in virtual time with the code of the relay: ten to ten thousand relays with a hundred
//! receivers each, and a hundred streams at a thousand relays. How long until each has what it wants, what
//! relays say to each other, what they keep, and what comes of deaths, partitions and everything at once. The
//! same figures come out everywhere, but for what the run itself costs.
//!
//! `plan.rs` says what is played, `phases.rs` plays it, `draw.rs` draws.

mod draw;
mod phases;
mod plan;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use outflow_labs::figures::{conclude, progress};
use serde_json::{Value, json};

use phases::{Played, play};
use plan::Plan;

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    /// Up to a thousand relays and shorter phases, within a minute
    #[arg(long)]
    quick: bool,
    /// Print the figures as one line of JSON (they always are; for the habit's sake)
    #[arg(long)]
    json: bool,
    /// Where pictures go; none are drawn if not given
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
}

fn main() -> ExitCode {
    conclude("trees", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    let phase = Duration::from_secs(if arguments.quick { 20 } else { 60 });
    let sizes: &[usize] = if arguments.quick { &[10, 100, 1_000] } else { &[10, 100, 1_000, 10_000] };
    let of_one: Vec<Played> = sizes.iter().map(|size| play(Plan::of_one_stream(*size, phase))).collect();
    let relays = if arguments.quick { 200 } else { 1_000 };
    let of_many = play(Plan::of_many_streams(relays, phase));
    let of_a_site = play(Plan::of_one_site(relays * 3 / 10, phase));
    if let Some(directory) = &arguments.plots {
        for picture in draw::all(&of_one, directory)? {
            progress(format!("drawn: {}", picture.display()));
        }
    }
    Ok(json!({
        "sizes": of_one.iter().map(|played| &played.figures).collect::<Vec<_>>(),
        "many_streams": of_many.figures,
        "one_site": of_a_site.figures,
    }))
}
