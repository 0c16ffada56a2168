//! Do slow receivers hurt the others? 200 receivers of a 4 Mbit/s stream, half UDP and half TCP; a
//! tenth of the TCP ones are stopped with SIGSTOP. The same without stopping any is the measure.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::{Program, Running, keep_to_cpu};
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::{Relay, listen};
use serde_json::{Value, json};

const STREAM: Shape = Shape::of_rate(4_000_000);
const UDP: usize = 100;
const TCP: usize = 100;
const STALLED: usize = 10;
/// Four seconds of the stream: stalled receivers fall out of it early in the run.
const RING: &str = "2 MB";
const FIRST_PORT: u16 = 20_000;
/// The argument that makes this program one of the receivers that get stopped.
const VICTIM: &str = "--victim";

fn main() -> ExitCode {
    if let Some(how) = std::env::args().skip_while(|argument| argument != VICTIM).nth(1) {
        return be_a_victim(&how);
    }
    run_lab("slow", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(1)?;
    let (calm, stalled) = if options.quick { (12, 20) } else { (40, 60) };
    progress(format!("{} receivers, all well, for {calm} s", UDP + TCP));
    let calm = run(Duration::from_secs(calm), false)?;
    progress(format!("the same with {STALLED} of them stopped, for {stalled} s"));
    let stalled = run(Duration::from_secs(stalled), true)?;
    ensure!(stalled.dropped > 0, "the stopped receivers lost nothing: they were not slow enough");
    Ok(json!({
        "healthy_lost": calm.lost + stalled.lost,
        "healthy_p99_added_ms": rounded(stalled.p99_ms - calm.p99_ms),
        "stalled_dropped": stalled.dropped,
        "rss_mb": rounded(stalled.resident_mb),
        "rss_growth_mb": rounded(stalled.growth_mb),
        "healthy_p99_ms": rounded(stalled.p99_ms),
        "calm_p99_ms": rounded(calm.p99_ms),
        "healthy": UDP + TCP - STALLED,
        "stalled": STALLED,
    }))
}

struct Outcome {
    lost: u64,
    p99_ms: f64,
    dropped: u64,
    resident_mb: f64,
    growth_mb: f64,
}

fn run(time: Duration, stop: bool) -> Result<Outcome> {
    let paths = Paths::new()?;
    let mut relay = Relay::start_on(&paths.relay, &configuration(), Some(0))?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;

    let crowd = Crowd::start(paths.players.run(healthy)?, Duration::from_millis(2))?;
    let victims = (0..STALLED).map(|number| victim(&paths, number)).collect::<Result<Vec<_>>>()?;
    relay.wait_receivers("live", UDP + TCP)?;
    std::thread::sleep(Duration::from_secs(3));
    crowd.split()?;
    let before = relay.resident()?;
    if stop {
        victims.iter().try_for_each(|victim| victim.signal(Signal::SIGSTOP))?;
    }
    std::thread::sleep(time);
    let period = crowd.split()?;
    let after = relay.resident()?;
    let dropped = dropped(&relay)?;
    relay.healthy()?;
    drop((sender, victims));

    let ended = period.meters.iter().filter(|meter| meter.ended.is_some()).count();
    ensure!(ended == 0, "{ended} healthy receivers were disconnected");
    ensure!(period.meters.iter().all(|meter| meter.datagrams > 0), "some healthy receivers got nothing");
    Ok(Outcome {
        lost: period.sum(|meter| meter.lost + meter.reordered + meter.rtp_lost + meter.continuity.gaps),
        p99_ms: period.delays.value_at_quantile(0.99) as f64 / 1e3,
        dropped,
        resident_mb: after as f64 / 1e6,
        growth_mb: after as f64 / 1e6 - before as f64 / 1e6,
    })
}

fn configuration() -> String {
    let mut text = listen();
    text += &format!("[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nring = \"{RING}\"\n");
    text += "hopeless_after = \"120 s\"\n";
    for port in (FIRST_PORT..).take(UDP) {
        let player = outflow_labs::net::PLAYER;
        text += &format!("[[sinks]]\nstream = \"live\"\nto = \"udp://{player}:{port}\"\n");
    }
    text
}

/// All receivers but the victims.
fn healthy() -> Result<Vec<Receiver>> {
    let target = Target::new("live");
    let half = (TCP - STALLED) / 2;
    let udp = (FIRST_PORT..).take(UDP).map(|port| Receiver::open(How::Udp(port), &target));
    let mut receivers = udp.collect::<Result<Vec<_>>>()?;
    receivers.extend(Receiver::open_many(half, How::Http, &target)?);
    receivers.extend(Receiver::open_many(TCP - STALLED - half, How::RtspTcp, &target)?);
    Ok(receivers)
}

/// A receiver in a process of its own.
fn victim(paths: &Paths, number: usize) -> Result<Running> {
    let us = std::env::current_exe()?;
    let how = if number.is_multiple_of(2) { "http" } else { "rtsp" };
    Program::new(us.display().to_string()).args([VICTIM, how]).within(&paths.players).on_cpu(1).start()
}

/// Receives until killed.
fn be_a_victim(how: &str) -> ExitCode {
    let how = if how == "http" { How::Http } else { How::RtspTcp };
    let crowd = Receiver::open(how, &Target::new("live"))
        .and_then(|receiver| Crowd::start(vec![receiver], Duration::ZERO));
    match crowd {
        Ok(_receiving) => loop {
            std::thread::park();
        },
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Packets that receivers did not get, as the relay counts them.
fn dropped(relay: &Relay) -> Result<u64> {
    let state = relay.stream("live")?;
    let receivers = state["receivers"].as_array().context("no receivers shown")?;
    let drops = receivers.iter().filter_map(|receiver| receiver["drops"].as_object());
    Ok(drops.flat_map(|drops| drops.values()).filter_map(Value::as_u64).sum())
}
