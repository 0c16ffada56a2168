//! Is the relay never down? A relay with two workers, three streams and 500 viewers of all kinds: sent to by UDP, RTSP
//! over UDP and over TCP, HTTP, the partial-order transport. First nothing happens, then one fault after the other,
//! and in the end faults at random, one or two at a time. Of each are told the packets that were lost by viewers that
//! it does not concern, and the longest time for which one of them got none (`gap_ms`; compare it with that of the
//! `calm` time, which the machine causes); the most memory that the relay had; and whether health told the truth:
//! `/healthz` answers 200 while media flow, and something else, or not at all, when those of a stream have been away
//! for two seconds. A relay that ended tells nothing: that is false. `health_lie` is the first answer that was not
//! true: what it was, when (`at_ms`, from when the fault began), and for how long nothing had come of a stream then
//! (`still_ms`). What viewers that a fault concerns noticed is told as `own_lost` and `own_gap_ms`, and `back_ms` is
//! how long after the fault all of them were up again.
//!
//! Numbers in the packets say what was lost, up to what the source has sent, three seconds after the fault at the
//! latest. Viewers that it concerns may take longer where something has to be tried again: TCP, a program that has
//! died (`back_within` in `labs/src/trouble/faults`). If the relay or a viewer does not recover from a fault by then
//! (`recovered`), all are started again for the next one (`restarts`). Attackers are other hosts, which stand back
//! behind relay and viewers here, as they would have machines of their own.
//!
//! A worker or a task of control panics (`worker_panics`, `control_panics`). The relay has no door for that: its clock
//! fails once, as far as that thread is concerned, and Rust's library panics then. Another process goes on with the
//! relay; `done` is 1 if it does. The lab hears of it as systemd would. If the last time is less than a minute ago, the
//! relay is to end with status 70 (`done` is 1 if it does).
//!
//! One fault ends the process: a worker is killed by a signal (`worker_killed`). The lab does what a supervisor does,
//! 100 ms later, and viewers and the publisher come back when the relay is there. All viewers are concerned by each of
//! the three; their gap is expected to be a second at most (after the third, hundreds of them ask again at once, on one
//! machine, which takes its part).
//!
//! The relay's clock is not the machine's: `labs/chaos/clock.c` is loaded into the relay for that.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use outflow_labs::figures::{Options, conclude, progress, rounded};
use outflow_labs::process::be_preferred;
use outflow_labs::trouble::{Fault, Noticed, Places, Stage, Viewer, by_chance, cannot_be_made, chosen};
use serde_json::{Map, Value, json};

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// The faults at random are up to this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these faults; all if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How much of everything.
struct Plan {
    viewers: usize,
    /// Without a fault.
    calm: Duration,
    /// Each fault.
    fault: Duration,
    /// Faults at random, all together.
    random: Duration,
}

impl Plan {
    fn new(is_quick: bool) -> Self {
        let [calm, fault, random] = if is_quick { [3000, 700, 0] } else { [20_000, 8_000, 180_000] };
        Plan {
            viewers: if is_quick { 100 } else { 500 },
            calm: Duration::from_millis(calm),
            fault: Duration::from_millis(fault),
            random: Duration::from_millis(random),
        }
    }
}

fn main() -> ExitCode {
    conclude("chaos", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    if let Some(why) = cannot_be_made() {
        bail!("{why}");
    }
    let faults = chosen(&arguments.only)?;
    let plan = Plan::new(arguments.options.quick);
    be_preferred();
    let places = Places::new()?;
    let mut stage = Stage::new(&places, Viewer::all(plan.viewers));
    progress(format!("{} viewers, nothing else, for {:?}", plan.viewers, plan.calm));
    let calm = play(&mut stage, &[], plan.calm)?;
    progress(calm.figures());
    let mut all = Map::new();
    for fault in &faults {
        let noticed = play(&mut stage, &[fault], plan.fault)?;
        progress(format!("{}: {}", fault.name, noticed.figures()));
        all.insert(fault.name.to_owned(), noticed.figures());
    }
    let at_random = play_at_random(&mut stage, &faults, arguments.seed, &plan)?;
    let mut figures = json!({
        "faults": all,
        "lost": stage.lost,
        "worst_gap_ms": rounded(stage.worst_gap.as_secs_f64() * 1e3),
        "calm": calm.figures(),
        "seed": arguments.seed,
        "viewers": plan.viewers,
        "restarts": stage.restarts,
    });
    if let Some(at_random) = at_random {
        figures["at_random"] = at_random;
    }
    Ok(figures)
}

/// Has faults happen while nothing else does.
fn play(stage: &mut Stage<'_>, faults: &[&Fault], time: Duration) -> Result<Noticed> {
    stage.play(faults, time, &mut |_| Ok(()))
}

/// Faults by chance, one or two at a time, until the time is over.
fn play_at_random(stage: &mut Stage<'_>, faults: &[&Fault], seed: u64, plan: &Plan) -> Result<Option<Value>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (began, mut count) = (Instant::now(), 0);
    let mut sum = Noticed::nothing();
    while began.elapsed() < plan.random {
        let (both, time) = by_chance(faults, &mut random, plan.fault);
        let noticed = play(stage, &both, time)?;
        let names = both.iter().map(|fault| fault.name).collect::<Vec<_>>().join(" and ");
        progress(format!("{names}, for {time:.1?}: {}", noticed.figures()));
        count += both.len();
        sum.add(&noticed);
    }
    Ok((count > 0).then(|| {
        let mut figures = sum.figures();
        figures["count"] = json!(count);
        figures
    }))
}
