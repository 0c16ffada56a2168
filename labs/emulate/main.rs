//! `outflow emulate` against what was asked of it, against the simulator, and against the kernel's own forwarding.
//!
//! Datagrams go from a sender, by `outflow emulate --link …`, to a receiver in the namespace that it makes. Both ends
//! of a packet's way are stamped by the same clock, the far one by the kernel when the packet comes in. The rate is
//! what arrives at 1.2 times the link's rate; the delay's error is how far packets are from the time at which a link
//! of that rate and delay should deliver them, which follows from when they were sent; the loss is compared in
//! standard deviations of what chance allows. A transport stream goes through three links in virtual time
//! (`outflow sim`) and live, and three files with simulated nodes run both ways: how far the goodputs are apart (of the
//! latter, the shares of packets that come). In the end core time a packet: of the emulator, without a rate or a delay,
//! and of the kernel that forwards between two veths (`kernel_forward_ratio`: how many times as many the emulator does);
//! and the packets a second that go through the emulator when more are sent (`pps`).

mod core_time;
mod receiver;
mod sender;
mod virtual_time;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use serde_json::{Value, json};

use receiver::Came;
use sender::{Behind, Load};

/// Bytes of a datagram's packet of IP.
const PACKET: usize = 1228;

/// What the links are asked for.
const RATE_BPS: f64 = 100e6;
const DELAY: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(receiver::WORD) => receiver::run(),
        _ => run_lab("emulate", lab),
    }
}

fn lab(options: &Options) -> Result<Value> {
    let lasts = Duration::from_secs(if options.quick { 2 } else { 20 });
    let rate_error = rate(lasts)?;
    let delay_error = delay(lasts)?;
    let sigma = loss(lasts)?.max(loss_in_bursts(lasts)?);
    let mut apart: f64 = 0.0;
    for scenario in virtual_time::SCENARIOS {
        apart = apart.max(virtual_time::apart(scenario)?);
    }
    for nodes in virtual_time::NODES {
        apart = apart.max(virtual_time::nodes_apart(nodes)?);
    }
    let rounds = if options.quick { 1 } else { 5 };
    let (emulated, forwarded) = core_time::measure(rounds)?;
    let sustained = core_time::sustained(rounds, lasts / 5)?;
    Ok(json!({
        "rate_error_pct": rounded(rate_error),
        "delay_error_ms_p99": (delay_error * 1e3).round() / 1e3,
        "loss_error_sigma": rounded(sigma),
        "goodput_apart_points": rounded(apart),
        "pps": sustained.round(),
        "kernel_forward_ratio": rounded(forwarded / emulated),
    }))
}

/// How far what arrives at too much load is from the rate, in percent.
fn rate(lasts: Duration) -> Result<f64> {
    let behind = Behind::new("100 Mbit/s, 10 ms")?;
    let (_, came) = behind.send(Load { bps: 1.2 * RATE_BPS, packet: PACKET, lasts })?;
    // From when the link is busy on; the last one is the first that is not followed.
    let at: Vec<u64> = came.iter().map(|came| came.at).collect();
    let (first, last) = (at[at.len() / 10], at[at.len() - 1]);
    let packets = (at.len() - 1 - at.len() / 10) as f64;
    let bps = packets * PACKET as f64 * 8e9 / (last - first) as f64;
    progress(format!("100 Mbit/s: {:.4} Mbit/s arrive", bps / 1e6));
    Ok((bps / RATE_BPS - 1.0).abs() * 100.0)
}

/// How far packets are from their times, 99 % of them at most, in milliseconds.
fn delay(lasts: Duration) -> Result<f64> {
    let behind = Behind::new("100 Mbit/s, 10 ms")?;
    let (sent, came) = behind.send(Load { bps: 0.5 * RATE_BPS, packet: PACKET, lasts })?;
    let takes = PACKET as f64 * 8e9 / RATE_BPS;
    let (mut free, mut due) = (0.0_f64, Vec::with_capacity(sent.len()));
    for at in &sent {
        free = free.max(*at as f64) + takes;
        due.push(free + DELAY.as_nanos() as f64);
    }
    let error = |came: &Came| Some((came.at as f64 - due.get(came.number as usize)?).abs() / 1e6);
    let errors: Vec<f64> = came.iter().filter_map(error).collect();
    let (half, most) = (quantile(&errors, 0.5), quantile(&errors, 0.99));
    progress(format!("10 ms: {} packets, off by {half:.4} ms (half), {most:.4} ms (99 %)", errors.len()));
    Ok(most)
}

/// Lost packets of what should be lost, in standard deviations.
fn loss(lasts: Duration) -> Result<f64> {
    const SHARE: f64 = 0.02;
    let behind = Behind::new("loss 2 %")?;
    let (sent, came) = behind.send(Load { bps: 0.5 * RATE_BPS, packet: PACKET, lasts })?;
    let (all, lost) = (sent.len() as f64, (sent.len() - came.len()) as f64);
    let sigma = (lost - all * SHARE).abs() / (all * SHARE * (1.0 - SHARE)).sqrt();
    progress(format!("2 %: {lost} of {all} packets are lost, {sigma:.2} standard deviations off"));
    Ok(sigma)
}

/// The same of times in which all is lost. They come and go at random: of a time T, a share `p` is one with a
/// variance of 2 p (1 - p) / (T (1 / bad + 1 / good)).
fn loss_in_bursts(lasts: Duration) -> Result<f64> {
    const SHARE: f64 = 0.02;
    const BAD_S: f64 = 0.03;
    let behind = Behind::new("loss 2 % bursts 30 ms")?;
    let (sent, came) = behind.send(Load { bps: 0.5 * RATE_BPS, packet: PACKET, lasts })?;
    let lost = 1.0 - came.len() as f64 / sent.len() as f64;
    let good = BAD_S * (1.0 - SHARE) / SHARE;
    let changes = lasts.as_secs_f64() * (1.0 / BAD_S + 1.0 / good);
    let sigma = (lost - SHARE).abs() / (2.0 * SHARE * (1.0 - SHARE) / changes).sqrt();
    progress(format!("2 % of the time: {:.2} % are lost, {sigma:.2} standard deviations off", lost * 100.0));
    Ok(sigma)
}
