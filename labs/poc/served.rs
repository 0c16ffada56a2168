//! What it costs the relay to serve receivers by the partial-order transport: processor time of the relay for a unit
//! that reached a receiver, over a clean path, with and without encryption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::figures::{progress, quantile, rounded};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::keep_to_cpu;
use outflow_labs::relay::{Relay, listen};
use outflow_poc::connection::Event;
use outflow_poc_socket::media::{Form, to_receive};
use outflow_poc_socket::{Options, PocSocket, Security};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

const RECEIVERS: u16 = 50;
const PORT: u16 = 7000;
/// Some 380 datagrams a second to each receiver.
const STREAM: Shape = Shape::of_rate(4_000_000);
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Runs it with and without encryption, in turn.
pub(crate) fn measure(quick: bool) -> Result<Value> {
    let (rounds, time) = if quick { (1, 3) } else { (3, 10) };
    let (mut plain, mut sealed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(round(false, Duration::from_secs(time))?);
        sealed.push(round(true, Duration::from_secs(time))?);
        progress(format!("served: {:?}, encrypted {:?}", plain.last(), sealed.last()));
    }
    let of = |rounds: &[Served]| {
        rounded(quantile(&rounds.iter().map(|served| served.cpu_ns).collect::<Vec<_>>(), 0.5))
    };
    let least = plain.iter().chain(&sealed).map(|served| served.delivered_pct).fold(100.0, f64::min);
    Ok(json!({
        "receivers": RECEIVERS,
        "rate_bps": STREAM.rate_bps,
        "cpu_ns_per_packet": of(&plain),
        "encrypted_cpu_ns_per_packet": of(&sealed),
        "delivered_pct": rounded(least),
    }))
}

/// What a round showed.
#[derive(Debug)]
struct Served {
    /// Nanoseconds of the relay's processor time for a unit that was delivered.
    cpu_ns: f64,
    /// How much of what was sent was delivered meanwhile.
    delivered_pct: f64,
}

fn round(is_sealed: bool, time: Duration) -> Result<Served> {
    let paths = Paths::new()?;
    let folder = tempfile::tempdir()?;
    let (how, security) = if is_sealed {
        let file = folder.path().join("poc.key");
        std::fs::write(&file, KEY)?;
        (format!("key_file = \"{}\"", file.display()), Security::Keys(Arc::new(KEY.parse()?)))
    } else {
        ("encryption = \"off\"".to_owned(), Security::Plain)
    };
    let configuration = listen()
        + &format!(
            "poc = \"0.0.0.0:{PORT}\"\n[poc]\n{how}\n[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n"
        );
    let mut relay = Relay::start_on(&paths.relay, &configuration, Some(0))?;
    let _sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    let delivered = Arc::new(AtomicU64::new(0));
    let theirs = Arc::clone(&delivered);
    let (over, is_over) = oneshot::channel();
    thread::scope(|threads| {
        let crowd =
            threads.spawn(|| paths.players.run(move || receive(&Options::new(security), &theirs, is_over)));
        let is_served = |state: &Value| {
            state["receivers"].as_array().is_some_and(|all| all.len() == usize::from(RECEIVERS))
        };
        let served = relay.wait_stream("live", "received by all", is_served).and_then(|_| {
            thread::sleep(Duration::from_secs(1));
            let (units, used) = (delivered.load(Ordering::Relaxed), relay.process().processor_time()?);
            thread::sleep(time);
            let units = delivered.load(Ordering::Relaxed) - units;
            Ok((units, relay.process().processor_time()? - used))
        });
        drop(over);
        crowd.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (units, used) = served?;
        let sent = STREAM.datagrams_per_second() * time.as_secs_f64() * f64::from(RECEIVERS);
        let delivered_pct = 100.0 * units as f64 / sent;
        ensure!(delivered_pct > 95.0, "{units} of some {sent:.0} units came");
        Ok(Served { cpu_ns: used.as_nanos() as f64 / units as f64, delivered_pct })
    })
}

/// All receivers, until it is over.
fn receive(options: &Options, delivered: &Arc<AtomicU64>, is_over: oneshot::Receiver<()>) -> Result<()> {
    keep_to_cpu(1)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut receivers = JoinSet::new();
        for _ in 0..RECEIVERS {
            let request = to_receive("/live", Form::Ts, None);
            let socket = PocSocket::connect((RELAY_OUT, PORT).into(), request, options).await;
            let (socket, delivered) = (socket.context("a receiver does not come in")?, Arc::clone(delivered));
            receivers.spawn(async move { count(&socket, &delivered).await });
        }
        tokio::select! {
            ended = receivers.join_next() => bail!("a receiver was sent away: {ended:?}"),
            _ = is_over => Ok(()),
        }
    })
}

/// Counts what is delivered; answers why that ended.
async fn count(socket: &PocSocket, delivered: &AtomicU64) -> String {
    loop {
        match socket.event().await {
            Event::Delivered { .. } => _ = delivered.fetch_add(1, Ordering::Relaxed),
            Event::Closed(closed) => return closed.text,
            _ => {}
        }
    }
}
