//! What do viewers notice when the relay's program is exchanged while it runs? A relay with two workers and 1,000
//! viewers, of each kind as many: RTSP over UDP, RTSP over TCP, HTTP, sent to without asking (UDP and RTP), the
//! partial-order transport. They watch three streams, which are published by RTSP over UDP, RTSP over TCP and HTTP PUT.
//! Twenty times another process takes over, some seconds apart.
//!
//! Told are viewers that ended or got nothing more (`receivers_lost`), packets that were missing (`packets_lost`), and
//! of each viewer and upgrade the longest time for which nothing came in the seconds around it (`gap_ms_…`); next to
//! it, the same of seconds without an upgrade, which lie between (`calm_gap_ms_…`). `stop_ms_…` is what the relay
//! itself says of how long it stood still. `sequence_breaks` are places where the numbers, times or source of a
//! viewer's RTP did not run on, which a player would notice. `rss_mb` is what the last process has, `processes` how
//! many of them there are at the end: one that has something to bring to its end lives until then.
//!
//! Before that, the relay is told to give its place to what cannot take it: a program that ends at once, and a file
//! that is none (`refused`). It has to say so, and to go on; the upgrades that follow show that it can still be
//! upgraded.

mod refused;
mod scene;
mod tally;
mod viewers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use outflow_labs::figures::{Options, conclude, progress, quantile, rounded};
use outflow_labs::net::{Paths, cannot_make_namespaces};
use outflow_labs::process::be_preferred;
use outflow_labs::relay::Upgrade;
use serde_json::{Map, Value, json};

use scene::Scene;
use tally::{During, Tally};
use viewers::{Kind, VIEWERS_MAX, Viewer};

/// What gaps are looked for in: from the moment in which an upgrade is asked for ...
const WINDOW: Duration = Duration::from_secs(4);
/// ... up to this long after its answer, should that come late.
const AFTER: Duration = Duration::from_secs(2);

/// What the lab can do.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Viewers, all together; 1,000 if not given, 50 with --quick
    #[arg(long)]
    viewers: Option<usize>,
    /// Upgrades; 20 if not given, 3 with --quick. With 0 nothing happens at all
    #[arg(long)]
    upgrades: Option<usize>,
    /// A file for the relay's log, which says how long the steps of an upgrade took
    #[arg(long)]
    log: Option<PathBuf>,
    /// Only these kinds of viewers; all if not given
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
}

fn main() -> ExitCode {
    conclude("upgrade", lab(&Arguments::parse()))
}

fn lab(arguments: &Arguments) -> Result<Value> {
    if let Some(why) = cannot_make_namespaces() {
        bail!("{why}: see scripts/setup");
    }
    let (count, upgrades) = if arguments.options.quick { (50, 3) } else { (1_000, 20) };
    let (count, upgrades) = (arguments.viewers.unwrap_or(count), arguments.upgrades.unwrap_or(upgrades));
    if !(1..=VIEWERS_MAX).contains(&count) {
        bail!("--viewers {count}: there may be 1 to {VIEWERS_MAX}");
    }
    let kinds = if arguments.kinds.is_empty() { Kind::value_variants() } else { arguments.kinds.as_slice() };
    let viewers = Viewer::all(count, kinds);
    be_preferred();
    let paths = Paths::new()?;
    progress(format!("{count} viewers join"));
    let mut lab = Lab {
        scene: Scene::open(&paths, &viewers, arguments.log.as_deref())?,
        tally: Tally::new(&viewers),
        stops_ms: Vec::new(),
        took_ms: Vec::new(),
        failed: Vec::new(),
    };
    // What they missed before all had come is not asked.
    lab.scene.got()?;
    let refused = if upgrades > 0 { refused::all(&mut lab.scene, &mut lab.tally)? } else { Map::new() };
    for number in 1..=upgrades.max(1) {
        lab.calm()?;
        if upgrades > 0 {
            progress(format!("upgrade {number} of {upgrades}"));
            lab.upgrade()?;
        }
    }
    let figures = lab.end(&viewers, refused)?;
    // In short it is a test: what an upgrade must not do, however busy the machine is.
    let is_as_it_was = ["receivers_lost", "sequence_breaks"].iter().all(|figure| figures[figure] == json!(0));
    if arguments.options.quick && !(is_as_it_was && figures["failed"] == json!([])) {
        bail!("viewers noticed an upgrade, or one was refused: {figures}");
    }
    Ok(figures)
}

/// What goes on.
struct Lab<'p> {
    scene: Scene<'p>,
    tally: Tally,
    /// Of each upgrade, what the relay says.
    stops_ms: Vec<f64>,
    /// How long each took until it was answered.
    took_ms: Vec<f64>,
    /// What was answered to those that were not done.
    failed: Vec<String>,
}

impl Lab<'_> {
    /// Seconds without an upgrade.
    fn calm(&mut self) -> Result<()> {
        self.wait(During::Calm, Instant::now() + WINDOW)
    }

    /// The same with one.
    fn upgrade(&mut self) -> Result<()> {
        let began = Instant::now();
        match self.scene.relay.upgrade()? {
            Upgrade::Done { gap_ms } => {
                self.stops_ms.push(gap_ms);
                self.took_ms.push(began.elapsed().as_secs_f64() * 1e3);
                progress(format!(
                    "it stood still for {gap_ms} ms, and answered after {:.1?}",
                    began.elapsed()
                ));
            }
            Upgrade::Refused { status, why } => {
                progress(format!("it was refused: {status} {why}"));
                self.failed.push(format!("{status} {why}"));
            }
        }
        self.wait(During::Upgrade, (began + WINDOW).max(Instant::now() + AFTER))
    }

    /// Lets viewers watch until then.
    fn wait(&mut self, during: During, until: Instant) -> Result<()> {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        self.tally.add(during, &self.scene.got()?);
        Ok(())
    }

    fn end(mut self, viewers: &[Viewer], refused: Map<String, Value>) -> Result<Value> {
        let tally = &mut self.tally;
        let sent = self.scene.catch_up(viewers, |got| tally.add(During::Else, got))?;
        tally.end(sent);
        self.scene.relay.healthy()?;
        let of = |values: &[f64], place| rounded(quantile(values, place));
        let mut figures = self.tally.figures();
        figures["upgrades"] = json!(self.stops_ms.len());
        figures["stop_ms_p50"] = json!(of(&self.stops_ms, 0.5));
        figures["stop_ms_max"] = json!(of(&self.stops_ms, 1.0));
        figures["answer_ms_p50"] = json!(of(&self.took_ms, 0.5));
        figures["answer_ms_max"] = json!(of(&self.took_ms, 1.0));
        figures["rss_mb"] = json!(rounded(self.scene.relay.resident()? as f64 / 1e6));
        figures["processes"] = json!(self.scene.relay.processes()?.len());
        figures["refused"] = refused.into();
        figures["failed"] = json!(self.failed);
        Ok(figures)
    }
}
