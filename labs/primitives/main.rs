//! What a transport does most, today: Figure 1 of "Implementing a user level multimedia transport protocol in
//! Java" (Apvrille, Dairaine, Rojas, Sénac, Diaz), where C was two times faster than Java at copying.
//!
//! Copies of 1024 bytes, a CRC over 1024 bytes (the paper's has 16 bits; here it is the CRC-32 of MPEG-2's
//! sections, the one that this project computes), and 100,000 datagrams of 1024 bytes to a socket on the same
//! machine that throws them away: in C as one would write it (`baseline/primitives.c`), and by what this project
//! uses for it. By turns; figures are medians.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::outflow_udp as udp;
use anyhow::{Context, Result};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_anywhere};
use outflow_labs::process::Program;
use outflow_poc::packet::Mark;
use outflow_ts::psi::crc32;
use outflow_udp::{Segments, Udp};
use serde_json::{Value, json};

const BYTES: usize = 1024;
const BLOCKS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);
/// Datagrams that go to the kernel as one piece.
const PIECE: usize = 32;

fn main() -> ExitCode {
    run_anywhere("primitives", lab)
}

/// What is done, how often, and in how many ways of ours.
const PRIMITIVES: [(&str, usize); 3] = [("copy", 1_000_000), ("crc", 50_000), ("udp", 100_000)];

fn lab(options: &Options) -> Result<Value> {
    let rounds = if options.quick { 1 } else { 9 };
    let less = if options.quick { 20 } else { 1 };
    // Nothing reads what comes: the kernel throws it away when its buffer is full.
    let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = sink.local_addr()?;
    let mut figures = serde_json::Map::new();
    for (what, count) in PRIMITIVES {
        let count = count / less;
        let (mut c, mut ours, mut batched) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            c.push(in_c(what, count, to.port())?);
            ours.push(match what {
                "copy" => copy(count),
                "crc" => crc(count),
                _ => one_by_one(count, to)?,
            });
            if what == "udp" {
                batched.push(in_pieces(count, to)?);
            }
        }
        let of = |values: &[f64]| quantile(values, 0.5);
        let mut figure = json!({
            "c_ns": rounded(of(&c)),
            "ours_ns": rounded(of(&ours)),
            "ratio": rounded(of(&ours) / of(&c)),
        });
        if what == "udp" {
            figure["pieces_ns"] = rounded(of(&batched)).into();
            figure["pieces_ratio"] = rounded(of(&batched) / of(&c)).into();
        }
        progress(format!("{what}: {figure}"));
        figures.insert(what.to_owned(), figure);
    }
    Ok(figures.into())
}

fn in_c(what: &str, count: usize, port: u16) -> Result<f64> {
    let program = Program::new(concat!(env!("OUT_DIR"), "/baseline-primitives"));
    let program = program.args([what.to_owned(), count.to_string(), port.to_string()]);
    let printed = program.finish(PATIENCE)?.stdout;
    let first = printed.split_whitespace().next().context("it printed nothing")?;
    Ok(first.parse()?)
}

fn blocks() -> Vec<u8> {
    (0..BLOCKS * BYTES).map(|i| (i * 7) as u8).collect()
}

/// Nanoseconds for one of `count` calls.
fn each(count: usize, mut work: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut work);
    start.elapsed().as_nanos() as f64 / count as f64
}

fn copy(count: usize) -> f64 {
    let (from, mut to) = (blocks(), vec![0; BLOCKS * BYTES]);
    each(count, |i| {
        let at = i % BLOCKS * BYTES;
        to[at..at + BYTES].copy_from_slice(&from[at..at + BYTES]);
        black_box(&mut to);
    })
}

fn crc(count: usize) -> f64 {
    let from = blocks();
    let mut sum = 0_u32;
    let ns = each(count, |i| {
        let at = i % BLOCKS * BYTES;
        sum = sum.wrapping_add(crc32(&from[at..at + BYTES]));
    });
    black_box(sum);
    ns
}

fn one_by_one(count: usize, to: SocketAddr) -> Result<f64> {
    let (from, socket) = (blocks(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    Ok(each(count, |i| {
        let at = i % BLOCKS * BYTES;
        _ = socket.send_to(&from[at..at + BYTES], to);
    }))
}

/// As the partial-order transport sends.
fn in_pieces(count: usize, to: SocketAddr) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let from = blocks();
        let socket = Udp::bind((Ipv4Addr::LOCALHOST, 0).into(), &udp::Options::default())?;
        let start = Instant::now();
        for i in 0..count.div_ceil(PIECE) {
            let at = i * PIECE % BLOCKS * BYTES;
            let bytes = &from[at..at + PIECE * BYTES];
            socket.send(&Segments { to, from: None, mark: Mark::None, segment_bytes: BYTES, bytes }).await?;
        }
        Ok(start.elapsed().as_nanos() as f64 / count as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_computes_the_same_crc() -> Result<()> {
        let program = Program::new(concat!(env!("OUT_DIR"), "/baseline-primitives")).args(["crc", "1"]);
        let printed = program.finish(PATIENCE)?.stdout;
        let sum = printed.split_whitespace().nth(1).context("it printed no sum")?;
        assert_eq!(sum.parse::<u32>()?, crc32(&blocks()[..BYTES]));
        Ok(())
    }
}
