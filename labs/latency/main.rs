//! How long does a packet stay in the relay? From the source's stamp, just before it sends, to the
//! kernel's stamp at the receiver: the two network paths are in it, the receiver's wake-up is not.
//! 1, 100 and 1000 UDP receivers; all packets of all receivers count.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use outflow_labs::figures::{Options, percentiles, progress, run_lab};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::keep_to_cpu;
use outflow_labs::receive::{Crowd, How, Period, Receiver, Target};
use outflow_labs::relay::{Relay, listen};
use serde_json::{Map, Value, json};

/// 95 datagrams a second, so that 1000 receivers do not saturate one core: this is a lab of delay,
/// not of throughput.
const STREAM: Shape = Shape::of_rate(1_000_000);
const COUNTS: [u16; 3] = [1, 100, 1000];
const FIRST_PORT: u16 = 20_000;

fn main() -> ExitCode {
    run_lab("latency", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(1)?;
    let time = Duration::from_secs(if options.quick { 10 } else { 60 });
    let mut figures = Map::new();
    let mut lost = 0;
    for count in COUNTS {
        progress(format!("{count} receivers for {time:?}"));
        let period = run(count, time)?;
        lost += period.sum(|meter| meter.lost);
        figures.insert(count.to_string(), percentiles(&period.delays));
    }
    figures.insert("lost".into(), json!(lost));
    figures.insert("rate_bps".into(), json!(STREAM.rate_bps));
    Ok(figures.into())
}

fn run(count: u16, time: Duration) -> Result<Period> {
    let paths = Paths::new()?;
    let ports = FIRST_PORT..FIRST_PORT + count;
    let mut configuration = listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n";
    for port in ports.clone() {
        configuration += &format!("[[sinks]]\nstream = \"live\"\nto = \"udp://{PLAYER}:{port}\"\n");
    }
    let receivers = paths.players.run(|| {
        let target = Target::new("live");
        ports.map(|port| Receiver::open(How::Udp(port), &target)).collect::<Result<Vec<_>>>()
    })?;
    let mut relay = Relay::start_on(&paths.relay, &configuration, Some(0))?;
    let _sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    let crowd = Crowd::start(receivers, Duration::from_millis(10))?;
    std::thread::sleep(Duration::from_secs(2));
    crowd.split()?;
    std::thread::sleep(time);
    let period = crowd.split()?;
    relay.healthy()?;
    ensure!(period.meters.iter().all(|meter| meter.datagrams > 0), "some receivers got nothing");
    Ok(period)
}
