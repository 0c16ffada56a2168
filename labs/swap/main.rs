//! What do packets notice when the services of their stream are swapped? A hundred thousand numbered
//! packets a second through a branch to one receiver, and other services through the API again and
//! again: elements are kept, added, removed; in a second series, some run in contexts of their own. The relay's
//! worker has a processor of its own (`limits.pin_workers`).
//! Counted are packets lost, repeated and out of order; timed, how long packets waited in the relay,
//! and how much longer than usual nothing came to the receiver (its kernel's time stamps, less what
//! the source itself left between the packets).

mod plans;
mod source;
mod windows;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::{Pulses, rtp, wall_nanos};
use outflow_labs::net::{PLAYER, Paths};
use outflow_labs::process::keep_to_cpu;
use outflow_labs::receive::{Account, Arrived, Numbered};
use outflow_labs::relay::{PATIENCE, Relay, listen};
use serde_json::{Map, Value, json};

use plans::SERIES;
use source::Source;
use windows::{Swap, gaps};

/// Source and receiver keep off the first core.
const OTHER_CPU: usize = 1;
const SOURCE_PORT: u16 = 5000;
const PLAYER_PORT: u16 = 6000;
const STREAM: &str = "live";
/// The packets that are wanted each second, sent in groups so small that a gap shows.
const RATE: f64 = 100_000.0;
const PULSES: Pulses = Pulses { payload: 200, packets: 5, per_second: RATE / 5.0 };
/// Below this share of the rate, it is not carried.
const CARRIED: f64 = 0.97;
/// Between two swaps: long enough to see what is usual.
const PAUSE: Duration = Duration::from_millis(15);

fn main() -> ExitCode {
    run_lab("swap", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(OTHER_CPU)?;
    let swaps = if options.quick { 200 } else { 1000 };
    let mut figures = Map::new();
    for series in &SERIES {
        progress(format!("{}: {swaps} swaps", series.name));
        let of_it = run(series, swaps)?;
        progress(&of_it);
        if series.name == "plain" {
            figures.extend(of_it.as_object().cloned().unwrap_or_default());
        } else {
            figures.insert(series.name.to_owned(), of_it);
        }
    }
    Ok(figures.into())
}

fn run(series: &plans::Series, swaps: usize) -> Result<Value> {
    let paths = Paths::new()?;
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("stream.sdp");
    std::fs::write(&sdp, rtp::description(SOURCE_PORT))?;
    let configuration = listen()
        + &format!(
            "[limits]\nworkers = 1\npin_workers = true\n[log]\nlevel = \"warn\"\n[streams.{STREAM}]\n\
             source = \"rtp://0.0.0.0:{SOURCE_PORT}\"\nsdp = \"{}\"\n{}\n\
             [[sinks]]\nstream = \"{STREAM}\"\nto = \"rtp://{PLAYER}:{PLAYER_PORT}\"\nbranch = \"out\"\n",
            sdp.display(),
            series.first
        );
    let socket = paths.players.run(|| std::net::UdpSocket::bind((PLAYER, PLAYER_PORT)))?;
    let receiver = Numbered::start(socket)?;
    let mut relay =
        Relay::start_as(&paths.relay, &configuration, |program| program.on_any_cpu().preferred())?;
    let source = Source::start(&paths.source, SOURCE_PORT, PULSES)?;
    relay.wait_up(STREAM)?;
    let until = Instant::now() + PATIENCE;
    while receiver.count() == 0 {
        ensure!(Instant::now() < until, "nothing comes: {}", relay.process().account());
        std::thread::sleep(PAUSE);
    }
    std::thread::sleep(Duration::from_secs(1));
    let done = swap_again_and_again(&relay, series, swaps);
    std::thread::sleep(PAUSE);
    let sent = source.stop();
    let arrived = drained(receiver);
    relay.healthy()?;
    let state = relay.stream(STREAM)?;
    figures(&done?, &arrived, sent, &state)
}

/// Carries out `swaps` swaps; what each took.
fn swap_again_and_again(relay: &Relay<'_>, series: &plans::Series, swaps: usize) -> Result<Vec<Swap>> {
    let path = format!("/api/v1/streams/{STREAM}/services");
    let plans = series.plans();
    let mut done = Vec::with_capacity(swaps);
    for plan in plans.iter().cycle().take(swaps) {
        let began = wall_nanos();
        let answer = relay.put(&path, plan)?;
        let ended = wall_nanos();
        let answer: Value = serde_json::from_str(&answer).context("no JSON")?;
        let waited_us = answer["waited_us"].as_f64().with_context(|| format!("not swapped: {answer}"))?;
        done.push(Swap { began, ended, waited_us });
        std::thread::sleep(PAUSE);
    }
    Ok(done)
}

/// All that came, once nothing more comes.
fn drained(receiver: Numbered) -> Vec<Arrived> {
    let mut last = None;
    while last != Some(receiver.count()) {
        last = Some(receiver.count());
        std::thread::sleep(Duration::from_millis(300));
    }
    receiver.stop()
}

fn figures(swaps: &[Swap], arrived: &[Arrived], sent: u32, state: &Value) -> Result<Value> {
    let account = Account::of(arrived, sent);
    let [first, .., last] = arrived else { anyhow::bail!("nothing came") };
    let rate = f64::from(last.number - first.number) * 1e9 / (last.at - first.at) as f64;
    let waited: Vec<f64> = swaps.iter().map(|swap| swap.waited_us).collect();
    let gaps = gaps(swaps, arrived);
    let gap = |q: f64| rounded(quantile(&gaps.swapped, q) - quantile(&gaps.usual, q));
    Ok(json!({
        "swaps": swaps.len(),
        "lost": account.lost,
        "repeated": account.repeated,
        "reordered": account.reordered,
        "rate_pps": rate.round(),
        "rate_carried": rate > CARRIED * RATE,
        "source_drops": state["source"]["drops"],
        "p50_us": rounded(quantile(&waited, 0.5)),
        "p99_us": rounded(quantile(&waited, 0.99)),
        "max_us": rounded(quantile(&waited, 1.0)),
        "gap_p50_us": gap(0.5),
        "gap_p99_us": gap(0.99),
        "usual_gap_p50_us": rounded(quantile(&gaps.usual, 0.5)),
        "usual_gap_p99_us": rounded(quantile(&gaps.usual, 0.99)),
    }))
}
