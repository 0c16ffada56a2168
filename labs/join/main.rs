//! How soon is there a picture? From connecting to the last byte of the first key frame, with its
//! program tables before it, over RTSP and HTTP, at all phases of the group of pictures.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::keep_to_cpu;
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::{PATIENCE, Relay, listen};
use serde_json::{Value, json};

const STREAM: Shape = Shape::of_rate(4_000_000);
/// Joins are this far apart: coprime to the second from one key frame to the next.
const APART: Duration = Duration::from_millis(137);

fn main() -> ExitCode {
    run_lab("join", lab)
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(1)?;
    let joins = if options.quick { 40 } else { 200 };
    let paths = Paths::new()?;
    let configuration = listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n";
    let mut relay = Relay::start_on(&paths.relay, &configuration, Some(0))?;
    let _sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    std::thread::sleep(Duration::from_secs(2));

    let mut measure = |how, name: &str| -> Result<(f64, f64)> {
        progress(format!("{joins} joins by {name}"));
        let times = (0..joins).map(|_| join(&paths, how)).collect::<Result<Vec<_>>>()?;
        relay.healthy()?;
        Ok((rounded(quantile(&times, 0.5)), rounded(quantile(&times, 0.95))))
    };
    let rtsp = measure(How::RtspUdp, "RTSP over UDP")?;
    let rtsp_tcp = measure(How::RtspTcp, "RTSP over TCP")?;
    let http = measure(How::Http, "HTTP")?;
    Ok(json!({
        "rtsp_p50_ms": rtsp.0, "rtsp_p95_ms": rtsp.1,
        "http_p50_ms": http.0, "http_p95_ms": http.1,
        "rtsp_tcp_p50_ms": rtsp_tcp.0, "rtsp_tcp_p95_ms": rtsp_tcp.1,
        "joins": joins,
    }))
}

/// One join; milliseconds until the first key frame was there as a whole.
fn join(paths: &Paths, how: How) -> Result<f64> {
    std::thread::sleep(APART);
    let receiver = paths.players.run(|| Receiver::open(how, &Target::new("live")))?;
    let began = receiver.began;
    let crowd = Crowd::start(vec![receiver], Duration::ZERO)?;
    let until = Instant::now() + PATIENCE;
    loop {
        let period = crowd.split()?;
        let meter = &period.meters[0];
        if let Some(whole) = meter.first_whole {
            return Ok(whole.saturating_sub(began) as f64 / 1e6);
        }
        ensure!(meter.ended.is_none(), "the connection ended: {:?}", meter.ended);
        if Instant::now() > until {
            bail!("no key frame came: {meter:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
