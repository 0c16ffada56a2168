//! Figures: what a lab prints.

use clap::Parser;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// What every lab understands.
#[derive(Debug, Clone, Parser)]
pub struct Options {
    /// End within a minute, with fewer repetitions.
    #[arg(long)]
    pub quick: bool,
    /// Print the figures as one line of JSON (they always are; for the habit's sake).
    #[arg(long)]
    pub json: bool,
}

/// Microseconds, from 1 to 100 s, two digits exact.
pub type Delays = Histogram<u32>;

/// An empty histogram of delays.
pub fn delays() -> Delays {
    Histogram::new_with_bounds(1, 100_000_000, 2).expect("the bounds are right")
}

/// The percentiles of delays in microseconds.
pub fn percentiles(delays: &Delays) -> Value {
    json!({
        "p50_us": delays.value_at_quantile(0.5),
        "p99_us": delays.value_at_quantile(0.99),
        "p999_us": delays.value_at_quantile(0.999),
    })
}

/// The value at a quantile (0 to 1) of a few measurements, by the nearest rank.
pub fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// A figure with as many digits as it deserves.
pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Says what a lab is about to do.
pub fn progress(text: impl std::fmt::Display) {
    eprintln!("  {text}");
}

/// Runs a lab that needs network namespaces: prints its figures as the last line on standard
/// output, or why there are none.
pub fn run_lab(name: &str, lab: impl FnOnce(&Options) -> anyhow::Result<Value>) -> std::process::ExitCode {
    let options = Options::parse();
    if let Some(why) = crate::net::cannot_make_namespaces() {
        eprintln!("{name}: cannot measure: {why}");
        return std::process::ExitCode::FAILURE;
    }
    conclude(name, lab(&options))
}

/// Runs a lab that needs no leave of the system: it measures in virtual time, or without a network.
pub fn run_anywhere(
    name: &str,
    lab: impl FnOnce(&Options) -> anyhow::Result<Value>,
) -> std::process::ExitCode {
    conclude(name, lab(&Options::parse()))
}

/// Prints figures as the last line on standard output, or why there are none.
pub fn conclude(name: &str, figures: anyhow::Result<Value>) -> std::process::ExitCode {
    match figures {
        Ok(figures) => {
            println!("{figures}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{name}: could not measure: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            (quantile(&values, 0.5), quantile(&values, 0.95), quantile(&values, 0.0)),
            (2.0, 4.0, 1.0)
        );
        assert!(quantile(&[], 0.5).is_nan());
    }
}
