//! Do plug-ins that mean no good disturb others? A relay, a stream with a receiver, and beside it, at the same
//! worker, streams whose packets go through a plug-in each: one that is harmless, and after it each of those that
//! loop for ever, want all memory, stop, answer nonsense, or are slow at times; and a client that asks again
//! and again for one of another contract. Told is the 99th percentile of the delay of the stream that has none, and
//! how many times that is what it is beside the harmless one, just before or after. `busy` is none of these: a
//! program of its own that works as often and as much as the one that takes long now and then, beside the harmless
//! one. What it does to the delay, the machine does, whose cores share more than their name says; it is not among the
//! `worst`. Where the host took time from the machine meanwhile, that says nothing, and is left out. In every other
//! round the worker has a processor of its own (`limits.pin_workers`): these are the figures in `pinned`.

mod plugins;
mod scene;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::Pulse;
use outflow_labs::net::Paths;
use outflow_labs::process::keep_to_cpu;
use outflow_labs::relay::{Relay, listen};
use serde_json::{Map, Value, json};

use plugins::{HARMLESS, HOSTILE, Plugin};
use scene::{FIRST_PORT, Noticed, Scene, VICTIM, ask_in_vain, source, stream, work_sometimes};

/// What works beside the harmless plug-in and is none.
const BUSY: &str = "busy";
/// Source and receiver keep off the first core.
const OTHER_CPU: usize = 1;

fn main() -> ExitCode {
    run_lab("hostile", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(OTHER_CPU)?;
    let (rounds, time) = if options.quick { (3, 500) } else { (20, 1000) };
    let mut found = [Found::default(), Found::default()];
    let mut random = fastrand::Rng::with_seed(4);
    let paths = Paths::new()?;
    for number in 0..rounds {
        // Each is as often soon after the beginning as the others.
        let mut order: Vec<&Plugin> = HOSTILE.iter().collect();
        random.shuffle(&mut order);
        let is_pinned = number % 2 == 1;
        // A relay of its own: a plugin that failed too often rests, and would do no harm the next time.
        let round = Round { order, seed: random.u64(..), time: Duration::from_millis(time), is_pinned };
        round.run(&paths, &mut found[usize::from(is_pinned)])?;
        progress(format!("round {} of {rounds}", number + 1));
    }
    let [anywhere, pinned] = &found;
    let mut figures = anywhere.figures();
    progress("with a processor for the worker alone:");
    figures.insert("pinned".into(), pinned.figures().into());
    Ok(figures.into())
}

/// What was measured, by plug-in.
#[derive(Debug, Default)]
struct Found {
    p99_us: BTreeMap<&'static str, Vec<f64>>,
    ratios: BTreeMap<&'static str, Vec<f64>>,
    faults: BTreeMap<&'static str, u64>,
    lost: u64,
    pairs: u64,
    disturbed: u64,
}

impl Found {
    /// One of the two is the harmless one.
    fn pair(&mut self, one: &Noticed, other: &Noticed) {
        let (harmless, hostile) = if one.name == HARMLESS.name { (one, other) } else { (other, one) };
        self.pairs += 1;
        let Some((usual, p99)) = harmless.p99_us.zip(hostile.p99_us) else {
            self.disturbed += 1;
            return;
        };
        self.p99_us.entry(harmless.name).or_default().push(usual);
        self.p99_us.entry(hostile.name).or_default().push(p99);
        self.ratios.entry(hostile.name).or_default().push(p99 / usual);
    }

    fn figures(&self) -> Map<String, Value> {
        let mut figures = Map::new();
        for (name, times) in &self.p99_us {
            let mut of_it = json!({ "p99_us": rounded(quantile(times, 0.5)) });
            if let Some(ratios) = self.ratios.get(name) {
                of_it["p99_ratio"] = json!(rounded(quantile(ratios, 0.5)));
                of_it["faults"] = json!(self.faults.get(name).copied().unwrap_or(0));
            }
            progress(format!("{name}: {of_it}"));
            figures.insert((*name).to_owned(), of_it);
        }
        let plugins = self.ratios.iter().filter(|(name, _)| **name != BUSY);
        let ratios = plugins.map(|(_, ratios)| quantile(ratios, 0.5));
        figures.insert("worst_p99_ratio".into(), json!(rounded(ratios.fold(0.0, f64::max))));
        figures.insert("lost".into(), json!(self.lost));
        figures.insert("pairs".into(), json!(self.pairs));
        figures.insert("disturbed".into(), json!(self.disturbed));
        figures
    }
}

/// A relay, with the harmless plug-in and each of the others in this order.
struct Round {
    order: Vec<&'static Plugin>,
    seed: u64,
    /// Of a period.
    time: Duration,
    is_pinned: bool,
}

impl Round {
    fn run(&self, paths: &Paths, found: &mut Found) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let folder = folder.path();
        let refused = HOSTILE.iter().filter(|plugin| !plugin.is_taken());
        for plugin in refused {
            std::fs::write(folder.join(plugin.name), plugin.code()?)?;
        }
        let ports = || (FIRST_PORT + 2..).step_by(2);
        let pinned = self.is_pinned;
        let mut text = listen();
        text += &format!("[limits]\nworkers = 1\npin_workers = {pinned}\n[log]\nlevel = \"error\"\n");
        text += &stream(folder, VICTIM, FIRST_PORT, None)?;
        let mut beside = BTreeMap::new();
        for (plugin, port) in taken().zip(ports()) {
            text += &stream(folder, plugin.name, port, Some(plugin))?;
            beside.insert(plugin.name, source(paths, port)?);
        }
        let mut scene = Scene::open(paths, ports().take(beside.len()), self.seed)?;
        let mut relay = Relay::start_as(&paths.relay, &text, |program| program.on_any_cpu())?;
        scene.warm_up(&mut relay)?;
        self.periods(&mut scene, &relay, folder, &mut beside)?;
        for plugin in taken() {
            let faults = relay.stream(plugin.name)?["elements"][0]["faults"].as_u64();
            *found.faults.entry(plugin.name).or_default() += faults.context("there is no element")?;
        }
        relay.healthy()?;
        let (periods, lost) = scene.end()?;
        found.lost += lost;
        for pair in periods.chunks_exact(2) {
            found.pair(&pair[0], &pair[1]);
        }
        Ok(())
    }

    /// Each of them and the harmless one, in pairs.
    fn periods(
        &self,
        scene: &mut Scene,
        relay: &Relay<'_>,
        folder: &Path,
        beside: &mut BTreeMap<&str, Pulse>,
    ) -> Result<()> {
        let time = self.time;
        for plugin in self.order.iter().copied() {
            for one in [&HARMLESS, plugin, plugin, &HARMLESS] {
                match beside.get_mut(one.name) {
                    Some(pulse) => scene.period(one.name, time, || {
                        pulse.run(time);
                    })?,
                    None => {
                        let file = folder.join(one.name);
                        scene.period(one.name, time, || ask_in_vain(relay, &file, time))?;
                    }
                }
            }
        }
        for is_busy in [true, false, false, true] {
            let pulse = beside.get_mut(HARMLESS.name).context("the harmless one is taken")?;
            scene.period(if is_busy { BUSY } else { HARMLESS.name }, time, || {
                std::thread::scope(|scope| {
                    let working = is_busy.then(|| scope.spawn(|| work_sometimes(time)));
                    pulse.run(time);
                    let done = working.map(|thread| thread.join());
                    assert!(!matches!(done, Some(Err(_))), "it could not work: {done:?}");
                });
            })?;
        }
        Ok(())
    }
}

/// The plug-ins that the relay runs.
fn taken() -> impl Iterator<Item = &'static Plugin> {
    [&HARMLESS].into_iter().chain(HOSTILE.iter().filter(|plugin| plugin.is_taken()))
}
