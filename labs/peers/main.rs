//! What do others use instead, and what does it cost? The same stream to the same receivers on the
//! same core: GStreamer's `multiudpsink` by UDP, Icecast by HTTP, and a plain C relay. The table goes
//! into `docs/performance.md`.

mod http;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, ensure};
use outflow_labs::bench::{Bench, Contender, Ends, Outcome, SOURCE_PORT, Setup};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::Pulses;
use outflow_labs::net::sink;
use outflow_labs::page;
use outflow_labs::programs::{gst, missing};
use serde_json::{Value, json};

use http::Server;

const PAGE: &str = "docs/performance.md";
const RATE_BPS: u64 = 1_000_000;
const PAYLOAD: u16 = 1400;
const SINKS: [usize; 2] = [100, 1000];
/// What is needed besides what the tests need, and the Debian package that it is in.
const PROGRAMS: [(&str, &str); 2] = [("gst-launch-1.0", "gstreamer1.0-tools"), ("icecast2", "icecast2")];

/// A relay among the others.
struct Peer {
    name: &'static str,
    /// What must be installed.
    needs: Option<&'static str>,
    how: How,
}

/// How its receivers get the stream, and how it is started.
#[derive(Clone, Copy)]
enum How {
    Udp(fn(usize) -> Contender),
    Http(Server),
}

const PEERS: [Peer; 7] = [
    Peer { name: "plain C, `sendto`", needs: None, how: How::Udp(|_| Contender::Baseline) },
    Peer { name: "GStreamer `multiudpsink`", needs: Some("gst-launch-1.0"), how: How::Udp(multiudpsink) },
    Peer {
        name: "Outflow, `udp = \"user\"`",
        needs: None,
        how: How::Udp(|_| Contender::outflow("udp = \"user\"", "")),
    },
    Peer { name: "Outflow", needs: None, how: How::Udp(|_| Contender::outflow("", "")) },
    Peer { name: "Icecast", needs: Some("icecast2"), how: How::Http(Server::Icecast) },
    Peer { name: "Outflow", needs: None, how: How::Http(Server::Outflow { budget: "0 ms" }) },
    Peer {
        name: "Outflow, `latency_budget = \"50 ms\"`",
        needs: None,
        how: How::Http(Server::Outflow { budget: "50 ms" }),
    },
];

/// What was measured of a peer with this many receivers.
struct Row<'p> {
    peer: &'p Peer,
    sinks: usize,
    outcomes: Vec<Outcome>,
    failed: Option<String>,
}

fn main() -> ExitCode {
    run_lab("peers", lab)
}

fn lab(options: &Options) -> Result<Value> {
    for (program, package) in PROGRAMS {
        if let Some(why) = missing(program) {
            eprintln!("SKIPPED: {program} ({why}; to compare with it: apt-get install {package})");
        }
    }
    let here = |peer: &&Peer| peer.needs.is_none_or(|needs| missing(needs).is_none());
    let peers: Vec<&Peer> = PEERS.iter().filter(here).collect();
    let mut rows: Vec<Row<'_>> = SINKS
        .iter()
        .flat_map(|&sinks| {
            peers.iter().map(move |peer| Row { peer, sinks, outcomes: Vec::new(), failed: None })
        })
        .collect();
    let bench = Bench::new()?;
    let (rounds, time) = if options.quick { (1, 1500) } else { (5, 5000) };
    for round in 1..=rounds {
        for row in &mut rows {
            row.measure(&bench, Duration::from_millis(time));
        }
        progress(format!("round {round} of {rounds} is done"));
    }
    ensure!(rows.iter().any(|row| !row.outcomes.is_empty()), "nothing could be measured");
    let text = tables(&rows);
    eprintln!("\n{text}");
    if !options.quick {
        page::write_into(Path::new(PAGE), "peers", &text)?;
        progress(format!("written into {PAGE}"));
    }
    Ok(json!({ "peers": rows.iter().map(Row::figures).collect::<Vec<_>>() }))
}

/// GStreamer sending each datagram that comes in to each of its clients.
fn multiudpsink(sinks: usize) -> Contender {
    let clients: Vec<String> = (0..sinks).map(|number| sink(number).to_string()).collect();
    let source = format!("udpsrc port={SOURCE_PORT} buffer-size={}", 8 << 20);
    let sink = format!("multiudpsink sync=false async=false clients={}", clients.join(","));
    Contender::Other(gst(&format!("{source} ! {sink}")))
}

impl Row<'_> {
    /// One trial; what failed is not tried again.
    fn measure(&mut self, bench: &Bench, time: Duration) {
        if self.failed.is_some() {
            return;
        }
        let outcome = match self.peer.how {
            How::Udp(contender) => {
                let pulses = Pulses::of_rate(RATE_BPS as f64, PAYLOAD, 1);
                let (contender, ends) = (contender(self.sinks), Ends::Udp(Hook::Tc));
                bench.measure(&Setup { contender, way: None, ends, sinks: self.sinks, pulses }, time)
            }
            How::Http(server) => http::measure(bench, server, self.sinks, RATE_BPS, time),
        };
        match outcome {
            Ok(outcome) => {
                progress(format!("{:>5} {:<36}{outcome}", self.sinks, self.name()));
                self.outcomes.push(outcome);
            }
            Err(error) => {
                let why = format!("{error:#}").lines().take(4).collect::<Vec<_>>().join(" ");
                progress(format!("{:>5} {:<36}not measured: {why}", self.sinks, self.name()));
                self.failed = Some(why);
            }
        }
    }

    fn name(&self) -> String {
        let by = if matches!(self.peer.how, How::Udp(_)) { "UDP" } else { "HTTP" };
        format!("{by}: {}", self.peer.name)
    }

    fn median(&self, figure: fn(&Outcome) -> f64) -> f64 {
        quantile(&self.outcomes.iter().map(figure).collect::<Vec<_>>(), 0.5)
    }

    fn lost(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.lost).sum()
    }

    fn figures(&self) -> Value {
        json!({
            "name": self.name(),
            "sinks": self.sinks,
            "ns": rounded(self.median(|outcome| outcome.ns)),
            "lost": self.lost(),
            "p99_ms": rounded(self.median(|outcome| outcome.p99_us / 1e3)),
            "memory_mb": rounded(self.median(|outcome| outcome.memory as f64 / 1e6)),
            "failed": self.failed,
        })
    }
}

/// What stands in the page.
fn tables(rows: &[Row<'_>]) -> String {
    let mut text = format!("Measured on {}.\n", machine());
    for (title, by_udp) in [("UDP", true), ("HTTP", false)] {
        let _ = write!(text, "\n| {title} | receivers | core time a packet | lost | p99 delay | memory |\n");
        text += "|---|---|---|---|---|---|\n";
        for row in rows.iter().filter(|row| matches!(row.peer.how, How::Udp(_)) == by_udp) {
            let _ = write!(text, "| {} | {} | ", row.peer.name, row.sinks);
            if let (true, Some(why)) = (row.outcomes.is_empty(), &row.failed) {
                let _ = writeln!(text, "not measured: {why} | | | |");
                continue;
            }
            let (ns, lost) = (row.median(|outcome| outcome.ns), row.lost());
            let delay = row.median(|outcome| outcome.p99_us / 1e3);
            let megabytes = row.median(|outcome| outcome.memory as f64 / 1e6);
            let _ = writeln!(text, "{ns:.0} ns | {lost} | {delay:.1} ms | {megabytes:.1} MB |");
        }
    }
    text
}

/// Kernel, processor and the others' versions.
fn machine() -> String {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kernel = file("/proc/sys/kernel/osrelease");
    let kernel = kernel.split('-').next().unwrap_or_default().trim().to_owned();
    let processors = file("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name.trim());
    let version = |program: &str, option: &str| {
        let output = Command::new(program).arg(option).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
    };
    let others = [version("gst-launch-1.0", "--version"), version("icecast2", "-v")];
    let others: Vec<String> = others.into_iter().flatten().collect();
    format!("{model} with Linux {kernel}; {}", others.join(", "))
}
