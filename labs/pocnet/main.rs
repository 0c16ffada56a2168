//! What does the partial-order transport cost? The paper ("Implementing a user level multimedia transport protocol
//! in Java") gives under 1 ms a packet for its net, and 1.3 ms more in Java than in C with recovery.
//!
//! `net`: nanoseconds for which an engine works on a packet, by the paper's net of 180 places and a larger one of
//! 10,080 places, without losses and with one slice in twenty lost. `deliver`: from a datagram that comes to its
//! unit that is delivered, both ends' packets handled in one thread, with and without losses. `gbps`: one
//! connection over loopback, a core for each end, encrypted and not, and `srt-live-transmit` in the same run.

mod deliver;
mod net;
mod throughput;

use std::process::ExitCode;

use anyhow::Result;
use outflow_labs::figures::{Options, progress, run_anywhere};
use serde_json::{Value, json};

fn main() -> ExitCode {
    run_anywhere("pocnet", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let small = net::measure(12, options.quick)?;
    progress(format!("180 places: {small:?}"));
    let large = net::measure(672, options.quick)?;
    progress(format!("10,080 places: {large:?}"));
    let deliver = deliver::measure(options.quick)?;
    progress(format!("from a datagram to its unit: {deliver}"));
    let throughput = throughput::measure(options.quick)?;
    let mut figures = json!({
        "ns_per_packet_180": small.whole_ns,
        "ns_per_packet_10000": large.whole_ns,
        "ns_per_packet_180_lossy": small.lossy_ns,
        "ns_per_packet_10000_lossy": large.lossy_ns,
        "deliver": deliver,
    });
    if let (Some(all), Value::Object(more)) = (figures.as_object_mut(), throughput) {
        all.extend(more);
    }
    Ok(figures)
}
