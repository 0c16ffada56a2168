//! Tables 1 to 3 of "An Approach Towards Enabling Intelligent Networking Services for Distributed
//! Multimedia Applications": images from host to host, through one that forwards them or makes them
//! gray. There, an application on a host was compared with a network processor; here, a plain C
//! program that receives whole images is compared with Outflow on the same core.
//!
//! Outflow is given the images in two ways: whole, as the C program; and as raw video in RTP, of
//! which it works on each packet as it passes. The latter is the paper's work in place, and what the
//! figures are of; whole images are in `as_images`.
//!
//! Latency is from before the image is sent until the kernel of the receiver has all of it, over links
//! of 100 Mbit/s; also with a program on the same core that never rests, and with a relay that looks for
//! packets for a while instead of sleeping at once (`[limits] poll`), as data planes and the paper's
//! network processor do; the C program always sleeps in `recv`. Throughput is over links
//! without a limit, as many images on their way as keep the core busy.

mod hosts;
mod lane;
mod picture;
mod tables;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use outflow_labs::core_time::CoreTime;
use outflow_labs::figures::{Options, progress, run_lab};
use outflow_labs::net::{Namespace, Paths};
use outflow_labs::process::{Program, be_preferred, keep_to_cpu};
use outflow_labs::relay::PATIENCE;
use serde_json::Value;

use hosts::{CPU, Hosts, busy_program};
use tables::Tables;

/// Source and receiver are on another core.
const OTHER_CPU: usize = 1;
/// Images of one way after another, before it is the next one's turn: in the paper they come without
/// end.
const IN_A_ROW: usize = 10;
/// How long a relay that polls looks for the next image: longer than it takes to come, and less than
/// the pause before it is another program's turn.
const POLL: &str = "poll = \"1 ms\"\n";
const PAUSE: Duration = Duration::from_millis(2);
/// The paper's network, in the words of tc(8); a frame at a time. It is the kernel's, not a path of ours
/// (`outflow_labs::path`): that would take time of the two cores on which microseconds are measured.
const SHAPE: &str = "root tbf rate 100mbit burst 1600 latency 1s";

/// In which state the core is on which images are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Idle,
    /// With a program that never rests.
    Loaded,
    /// The relay does not sleep between images.
    Polled,
}

impl State {
    const ALL: [State; 3] = [State::Idle, State::Loaded, State::Polled];

    /// Of the names of its figures.
    fn suffix(self) -> &'static str {
        match self {
            State::Idle => "",
            State::Loaded => "_loaded",
            State::Polled => "_polled",
        }
    }
}

fn main() -> ExitCode {
    run_lab("services", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let (rounds, times, time) = if options.quick { (3, 2, 150) } else { (60, 7, 500) };
    keep_to_cpu(OTHER_CPU)?;
    let mut tables = Tables::default();
    for state in State::ALL {
        latencies(&mut tables, rounds, state)?;
    }
    throughputs(&mut tables, times, Duration::from_millis(time))?;
    Ok(tables.figures())
}

fn paths() -> Result<Paths> {
    let paths = Paths::new()?;
    paths.relay_receives_on(CPU)?;
    paths.players_receive_on(OTHER_CPU)?;
    Ok(paths)
}

fn shape(namespace: &Namespace, device: &str) -> Result<()> {
    let line = format!("tc -n {} qdisc add dev {device} {SHAPE}", namespace.name());
    Program::words(&line).finish(PATIENCE).map(drop)
}

/// One image at a time, some by each way in turn.
fn latencies(tables: &mut Tables, rounds: usize, state: State) -> Result<()> {
    progress(format!("latency{}", state.suffix()));
    let paths = paths()?;
    shape(&paths.source, "eth0")?;
    shape(&paths.relay, "out0")?;
    let mut hosts = Hosts::start(&paths, if state == State::Polled { POLL } else { "" })?;
    let _busy = if state == State::Loaded { Some(busy_program(&paths)?) } else { None };
    preferred(|| {
        for _ in 0..rounds {
            for place in &mut hosts.places {
                for _ in 0..IN_A_ROW {
                    let delay = place.lane.delay_us()?;
                    tables.latency(place, state, delay);
                    // So that no image meets what the one before has left.
                    std::thread::sleep(Duration::from_micros(500));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    })?;
    hosts.healthy()
}

/// As many images at a time as keep the core busy, by each way in turn.
fn throughputs(tables: &mut Tables, times: usize, time: Duration) -> Result<()> {
    let paths = paths()?;
    let mut hosts = Hosts::start(&paths, "")?;
    let core = CoreTime::watch(CPU)?;
    preferred(|| {
        for number in 1..=times {
            progress(format!("throughput, {number} of {times}"));
            for place in &mut hosts.places {
                core.measure(&[place.pid])?;
                let reading = core.read()?;
                let flow = place.lane.flow(time)?;
                tables.throughput(place, &flow, &core.since(&reading)?);
            }
        }
        Ok(())
    })?;
    hosts.healthy()
}

/// Source and receiver go before others on their core; the program that works on the images, started by
/// this thread, does not.
fn preferred(measure: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            be_preferred();
            measure()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
