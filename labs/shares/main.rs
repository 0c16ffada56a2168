//! Does each get of a worker what it was promised? One worker is asked for twice what it can do: by a stream of the
//! high class that wants all of it, by three of the normal class with the weights 1, 2 and 4, which is promised 40 %
//! of the time, and by one that has reserved 20 %, goes before all of them within that, and needs less. Each share of
//! the time is to be what was configured, and the stream with the reserve is to lose nothing and wait no longer than
//! alone.
//!
//! Time is what the relay says that it has worked for each stream (`worker_us`), between the first and the last
//! snapshot that lie within an overload.

mod stage;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::net::Paths;
use outflow_labs::process::{be_preferred, keep_to_cpu};
use serde_json::{Map, Value, json};
use stage::{NORMAL_SHARE, Period, STREAMS, Stage};

fn main() -> ExitCode {
    run_lab("shares", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(OTHER_CPU)?;
    be_preferred();
    let paths = Paths::new()?.with_sinks()?;
    paths.relay_receives_on(RELAY_CPU)?;
    let mut stage = Stage::open(&paths)?;
    // A relay that is overloaded makes a snapshot each five seconds: an overload has two at least.
    let (rounds, alone, overload) = if options.quick { (4, 2, 12) } else { (20, 3, 16) };
    let full = stage.full()?;
    progress(format!("the core is full at {full:.0} packets a second"));
    let (mut calm, mut busy) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        calm.push(stage.period(Duration::from_secs(alone), None)?);
        busy.push(stage.period(Duration::from_secs(overload), Some(full))?);
        let [unloaded, overload] = [&calm, &busy].map(|periods| periods[periods.len() - 1]);
        progress(format!("round {round} of {rounds}: alone {unloaded}; overload {overload}"));
    }
    stage.healthy()?;
    figures(&calm, &busy, full)
}

fn figures(calm: &[Period], busy: &[Period], full: f64) -> Result<Value> {
    let late = |periods: &[Period], figure: fn(&Period) -> f64| {
        quantile(&periods.iter().map(figure).collect::<Vec<_>>(), 0.5)
    };
    let time: Vec<u64> = (0..STREAMS.len()).map(|at| busy.iter().map(|p| p.worked_us[at]).sum()).collect();
    ensure!(
        time.iter().all(|time| *time > 0),
        "no two snapshots lay within an overload: there are no figures"
    );
    let measured = shares(&time);
    let errors: Vec<f64> = busy.iter().filter(|p| p.is_measured()).map(|p| error_pct(&p.worked_us)).collect();
    for (at, stream) in STREAMS.iter().enumerate() {
        let lost: u64 = busy.iter().map(|p| p.lost[at]).sum();
        ensure!(stream.is_reserved() || lost > 0, "'{}' lost nothing: there was no overload", stream.name);
    }
    let [unloaded, overload] = [calm, busy].map(|periods| late(periods, |p| p.p99_us));
    let named = |values: &[f64]| -> Map<String, Value> {
        STREAMS
            .iter()
            .zip(values)
            .map(|(stream, value)| (stream.name.to_owned(), json!(rounded(*value))))
            .collect()
    };
    let lost_pct: Vec<f64> = (0..STREAMS.len())
        .map(|at| {
            let sum = |figure: fn(&Period) -> [u64; STREAMS.len()]| {
                busy.iter().map(|period| figure(period)[at]).sum::<u64>() as f64
            };
            100.0 * sum(|p| p.lost) / sum(|p| p.sent).max(1.0)
        })
        .collect();
    let reserved = STREAMS.iter().position(stage::Stream::is_reserved).unwrap_or(0);
    Ok(json!({
        "share_error_pct": rounded(error_pct(&time)),
        "share_error_pct_a_round": rounded(quantile(&errors, 0.5)),
        "reserved_lost": calm.iter().chain(busy).map(|p| p.lost[reserved]).sum::<u64>(),
        "reserved_p99_ratio": rounded(overload / unloaded),
        "reserved_p99_unloaded_us": rounded(unloaded),
        "reserved_p99_overload_us": rounded(overload),
        "reserved_p50_unloaded_us": rounded(late(calm, |p| p.p50_us)),
        "reserved_p50_overload_us": rounded(late(busy, |p| p.p50_us)),
        "time_pct": named(&measured.iter().map(|share| 100.0 * share).collect::<Vec<_>>()),
        "lost_pct": named(&lost_pct),
        "full_packets_per_second": rounded(full),
        "rounds": busy.len(),
        "rounds_measured": errors.len(),
    }))
}

/// The part of all time that each stream had.
fn shares(worked_us: &[u64]) -> Vec<f64> {
    let all = worked_us.iter().sum::<u64>().max(1);
    worked_us.iter().map(|time| *time as f64 / all as f64).collect()
}

/// How far the share that is furthest from what was configured is from that, in percent of that: of the normal class,
/// and of each of its streams in it.
fn error_pct(worked_us: &[u64]) -> f64 {
    let measured = shares(worked_us);
    let normal =
        || STREAMS.iter().zip(&measured).filter_map(|(stream, share)| Some((stream.weight?, *share)));
    let (weights, had) =
        (normal().map(|(weight, _)| weight).sum::<f64>(), normal().map(|(_, had)| had).sum::<f64>());
    let of_each = normal().map(|(weight, share)| share / had / (weight / weights));
    let ratios = of_each.chain([had / NORMAL_SHARE]);
    ratios.map(|ratio| 100.0 * (ratio - 1.0).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_share_that_is_furthest_off() {
        // reserved, high, one, two, four
        assert!(error_pct(&[50, 370, 40, 80, 160]) < 1e-9);
        assert!((error_pct(&[50, 370, 44, 80, 156]) - 10.0).abs() < 1e-6);
        assert!((error_pct(&[80, 570, 50, 100, 200]) - 12.5).abs() < 1e-6);
    }
}
