//! As much as goes through a connection over loopback, and through SRT's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use outflow_labs::figures::{progress, quantile, rounded};
use outflow_labs::process::{Program, keep_to_cpu};
use outflow_labs::programs::missing;
use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Request};
use outflow_poc_socket::{Options, PocListener, PocSocket, Security};
use serde_json::{Value, json};

/// Bytes of a unit: seven packets of MPEG-TS, what SRT is given, too.
const UNIT_BYTES: usize = 1316;
/// Datagrams as large as Ethernet carries.
const DATAGRAM_BYTES: usize = 1452;
const SRT_PORT: u16 = 7123;

pub(crate) fn measure(quick: bool) -> Result<Value> {
    let (rounds, time) = if quick { (1, 500) } else { (5, 3000) };
    let time = Duration::from_millis(time);
    let lacks = missing("srt-live-transmit");
    let (mut plain, mut sealed, mut srt) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(connection(&Options::new(Security::Plain), time)?);
        let keys = "0123456789abcdef".repeat(4).parse()?;
        sealed.push(connection(&Options::new(Security::Keys(Arc::new(keys))), time)?);
        if lacks.is_none() {
            srt.push(through_srt(time)?);
        }
        progress(format!("Gbit/s: {:?}, encrypted {:?}, SRT {:?}", plain.last(), sealed.last(), srt.last()));
    }
    if let Some(why) = lacks {
        eprintln!("SKIPPED: SRT ({why})");
    }
    let of = |values: &[f64]| (!values.is_empty()).then(|| rounded(quantile(values, 0.5)));
    Ok(json!({ "gbps": of(&plain), "gbps_encrypted": of(&sealed), "srt_gbps": of(&srt) }))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Gbit/s of units that were delivered.
fn connection(options: &Options, time: Duration) -> Result<f64> {
    let mut options = options.clone();
    let connection = &mut options.settings.connection;
    connection.datagram_bytes_max = DATAGRAM_BYTES;
    connection.congestion.max_bps = 40_000_000_000;
    let (to, from) = std::sync::mpsc::channel();
    let theirs = options.clone();
    let receiver = thread::spawn(move || -> Result<f64> {
        keep_to_cpu(1)?;
        runtime()?.block_on(async {
            let listener = PocListener::bind((Ipv4Addr::LOCALHOST, 0).into(), theirs)?;
            to.send(listener.local_addr())?;
            let socket = listener.accept().await?.answer(None)?;
            let (mut bytes, mut start) = (0, None);
            while let Ok((_, data)) = socket.recv().await {
                start.get_or_insert_with(Instant::now);
                bytes += data.len();
            }
            let start: Instant = start.context("nothing came")?;
            Ok(bytes as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9)
        })
    });
    let server = from.recv()?;
    let sender = thread::spawn(move || -> Result<()> {
        keep_to_cpu(0)?;
        runtime()?.block_on(send(server, &options, time))
    });
    sender.join().map_err(|_| anyhow!("the sender panicked"))??;
    receiver.join().map_err(|_| anyhow!("the receiver panicked"))?
}

async fn send(server: SocketAddr, options: &Options, time: Duration) -> Result<()> {
    let flow = datagrams(Order::Total, None, Class::Reliable)?;
    let request = Request { resource: "/".to_owned(), to_server: Some(flow), to_client: None };
    let socket = PocSocket::connect(server, request, options).await?;
    let (data, start) = (bytes::Bytes::from(vec![7; UNIT_BYTES]), Instant::now());
    for number in 0_u64.. {
        socket.send(data.clone()).await?;
        // The task that sends is in the same thread.
        if number % 64 == 0 {
            tokio::task::yield_now().await;
            if start.elapsed() > time {
                break;
            }
        }
    }
    socket.close(outflow_poc::packet::Code::DONE, "enough");
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(())
}

/// The same through `srt-live-transmit`, from standard input to standard output, with buffers that lose nothing.
fn through_srt(time: Duration) -> Result<f64> {
    let buffers = "sndbuf=64000000&rcvbuf=64000000&fc=100000&tlpktdrop=0&latency=20";
    let at = format!("srt://127.0.0.1:{SRT_PORT}");
    let line = |rest: &str| {
        Program::words(&format!("srt-live-transmit -loglevel:fatal -q -chunk:{UNIT_BYTES} {rest}"))
    };
    let (receiver, _, mut out) = line(&format!("{at}?mode=listener&{buffers} file://con")).start_piped()?;
    let counting = thread::spawn(move || {
        let (mut bytes, mut start, mut last) = (0, None, Instant::now());
        let mut block = vec![0; 1 << 20];
        while let Ok(count @ 1..) = out.read(&mut block) {
            start.get_or_insert_with(Instant::now);
            bytes += count;
            last = Instant::now();
        }
        start.map_or(0.0, |start| bytes as f64 * 8.0 / last.duration_since(start).as_secs_f64() / 1e9)
    });
    thread::sleep(Duration::from_millis(300));
    let (sender, mut input, _) = line(&format!("file://con {at}?mode=caller&{buffers}")).start_piped()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let feeding = thread::spawn(move || {
        let block = vec![7; UNIT_BYTES * 16];
        while !over.load(Ordering::Relaxed) && input.write_all(&block).is_ok() {}
    });
    thread::sleep(time);
    is_over.store(true, Ordering::Relaxed);
    // What waits in a pipe without a reader is thrown away with its reader.
    drop(sender);
    drop(receiver);
    _ = feeding.join();
    counting.join().map_err(|_| anyhow!("the counter panicked"))
}
