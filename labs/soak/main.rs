//! Is anything lost, and does anything grow, when a relay has many busy days one after the other? A relay with three
//! streams and 200 viewers of all kinds that stay. Others come and go, configurations are loaded, other processes take
//! over (upgrades), and faults happen, one or two at a time: all by chance from a seed, at ten times the rate of a busy
//! day, upgrades at more. Told are the packets that were lost by viewers that stay and that no fault concerned, and
//! what the relay has more of at the end than after the first half hour (of short runs: after the first quarter):
//! resident memory, descriptors, entries of the kernel's tables (BPF maps) that are not blank. For both looks all leave
//! that come and go.
//!
//! Faults are those of `labs/chaos` without those that end the process: the relay recovers from one a minute by another
//! process, and what is started after that begins with nothing. Should a fault leave damage, all are started again
//! (`restarts`), and growth is counted from that moment on.

mod holds;
mod life;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use outflow_labs::figures::{Options, conclude, progress, rounded};
use outflow_labs::process::be_preferred;
use outflow_labs::trouble::{Fault, Noticed, Places, Stage, Viewer, by_chance, cannot_be_made, chosen};
use serde_json::{Value, json};

use holds::Holds;
use life::Life;

const VIEWERS: usize = 200;
/// What a relay has warmed up by.
const WARM_AFTER: Duration = Duration::from_secs(30 * 60);
/// Ten times what is much for one day: six in an hour.
const BETWEEN_FAULTS: Duration = Duration::from_secs(60);
/// How long a fault lasts at most.
const FAULT_MAX: Duration = Duration::from_secs(8);
/// How long `--quick` takes.
const QUICK: Duration = Duration::from_secs(30);

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// How long it takes; parts of hours are possible, as 0.05
    #[arg(long, default_value_t = 2.0)]
    hours: f64,
    /// What happens by chance is up to this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these faults; all if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    conclude("soak", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    if let Some(why) = cannot_be_made() {
        bail!("{why}");
    }
    if !(arguments.hours > 0.0 && arguments.hours < 1e4) {
        bail!("--hours {}: say how long it shall take, as --hours 2", arguments.hours);
    }
    let time =
        if arguments.options.quick { QUICK } else { Duration::from_secs_f64(arguments.hours * 3600.0) };
    let faults: Vec<_> =
        chosen(&arguments.only)?.into_iter().filter(|fault| !fault.ends_the_relay()).collect();
    be_preferred();
    let places = Places::new()?;
    let mut soak = Soak {
        stage: Stage::new(&places, Viewer::all(VIEWERS)),
        random: fastrand::Rng::with_seed(arguments.seed),
        life: Life::new(&places, arguments.seed),
        sum: Noticed::nothing(),
        count: 0,
    };
    let began = Instant::now();
    soak.pass(&faults, time.div_f64(4.0).min(WARM_AFTER))?;
    let mut warm = soak.look()?;
    progress(format!("warm: {warm:?}"));
    while began.elapsed() < time {
        let restarts = soak.stage.restarts;
        soak.pass(&faults, BETWEEN_FAULTS.min(time.saturating_sub(began.elapsed())))?;
        if soak.stage.restarts > restarts {
            warm = soak.look()?;
        }
    }
    let last = soak.look()?;
    progress(format!("at the end: {last:?}"));
    let growth = last.since(&warm);
    Ok(json!({
        "hours": rounded(began.elapsed().as_secs_f64() / 3600.0),
        "rss_growth_mb": rounded(growth.resident as f64 / 1e6),
        "fd_growth": growth.descriptors,
        "map_growth": growth.entries,
        "lost": soak.sum.lost,
        "worst_gap_ms": rounded(soak.sum.gap.as_secs_f64() * 1e3),
        "noticed": soak.sum.figures(),
        "warm": warm.figures(),
        "faults": soak.count,
        "joins": soak.life.joins,
        "joins_refused": soak.life.refused,
        "reloads": soak.life.reloads,
        "upgrades": soak.life.upgrades,
        "upgrades_failed": soak.life.upgrades_failed,
        "restarts": soak.stage.restarts,
        "viewers": VIEWERS,
        "seed": arguments.seed,
    }))
}

/// What goes on.
struct Soak<'p> {
    stage: Stage<'p>,
    random: fastrand::Rng,
    life: Life<'p>,
    /// Of all that has happened.
    sum: Noticed,
    /// Faults so far.
    count: usize,
}

impl Soak<'_> {
    /// Quiet times and faults by turns, until this time is over.
    fn pass(&mut self, faults: &[&Fault], time: Duration) -> Result<()> {
        let began = Instant::now();
        let left = || time.saturating_sub(began.elapsed());
        while !left().is_zero() {
            let quiet = BETWEEN_FAULTS.mul_f64(0.5 + self.random.f64()).min(left());
            self.play(&[], quiet)?;
            let (together, lasts) = by_chance(faults, &mut self.random, FAULT_MAX);
            if !left().is_zero() && !together.is_empty() {
                self.play(&together, lasts)?;
            }
        }
        Ok(())
    }

    fn play(&mut self, faults: &[&Fault], time: Duration) -> Result<()> {
        let life = &mut self.life;
        // A reload would undo what a fault has loaded, and another process does not have what a fault has done to the
        // one before.
        let is_quiet = faults.is_empty();
        let noticed = self.stage.play(faults, time, &mut |scene| life.go_on(scene, is_quiet))?;
        if noticed.lost > 0 || !faults.is_empty() {
            let names: Vec<_> = faults.iter().map(|fault| fault.name).collect();
            progress(format!("{names:?}, for {time:.1?}: {}", noticed.figures()));
        }
        self.count += faults.len();
        self.sum.add(&noticed);
        Ok(())
    }

    /// What the relay holds when all have left that come and go.
    fn look(&mut self) -> Result<Holds> {
        self.life.all_leave();
        Holds::of(&mut self.stage.scene()?.relay)
    }
}
