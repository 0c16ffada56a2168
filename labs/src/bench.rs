//! One measurement of a fan-out: what a core spends on each packet that it delivers.
//!
//! The relay has one core to itself (receive softirqs included), source and measuring the other. A
//! trial starts a relay, lets the source run until every sink has been reached, and then for a
//! counted time. Before and after that it is quiet, so that nothing is on its way when counts are
//! read: lost is exactly what was sent and did not come.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arrivals::Arrivals;
use crate::baseline;
use crate::core_time::{CoreTime, Use};
use crate::drain::{Drain, Hook};
use crate::media::{Pulse, Pulses, rtp};
use crate::net::{Paths, RELAY_IN, RELAY_OUT, sink};
use crate::process::{Running, keep_to_cpu};
use crate::receive::{Connection, Flood, Records, Target, allow_many_files};
use crate::relay::{PATIENCE, Relay, listen};

/// The relay's core.
pub const RELAY_CPU: usize = 0;
/// Everything else's core.
pub const OTHER_CPU: usize = 1;
/// Name of the stream.
const STREAM: &str = "live";
/// Where the source sends to.
const SOURCE_PORT: u16 = 5004;
/// Quiet time before counts are read.
const SETTLE: Duration = Duration::from_millis(150);
/// What has not come for so long has been lost: longer than any latency budget.
const NOTHING_MORE: Duration = Duration::from_secs(1);
/// How long the source runs between looks at whether everybody is reached.
const WARM_UP: Duration = Duration::from_millis(300);

/// Who relays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contender {
    /// The plain C program.
    Baseline,
    /// Outflow with these lines in its configuration.
    Outflow {
        /// Tables of their own, as in `[fanout]`.
        tables: String,
        /// Keys of the stream.
        stream: String,
    },
}

/// Where packets end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Addresses that a BPF program counts for.
    Udp(Hook),
    /// Connections that are emptied: RTSP with RTP on the same connection; bare from the baseline.
    Tcp,
}

/// Receivers at work.
enum Receiving {
    Drain(Drain),
    Flood(Flood),
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Who relays.
    pub contender: Contender,
    /// Where packets end.
    pub ends: Ends,
    /// How many receivers.
    pub sinks: usize,
    /// What the source sends.
    pub pulses: Pulses,
    /// For how long.
    pub time: Duration,
    /// How long the core is watched with the relay up and no source, to be subtracted.
    pub idle: Duration,
}

/// What came out.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Core time a delivered packet in nanoseconds, without what the relay uses when idle.
    pub ns: f64,
    /// Share of the core that was used, idle use included.
    pub load: f64,
    /// Packets that should have come and did not, of all sinks.
    pub lost: u64,
    /// Packets that came.
    pub delivered: u64,
    /// From the source's stamp to the sink: the median in microseconds.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// Share of packets that came merged with others (GSO).
    pub merged: f64,
    /// Share of the core that programs not measured took; it is in no other figure.
    pub strangers: f64,
    /// How long the relay took until it was ready and every sink had got something.
    pub start: Duration,
    /// Resident memory of the relay in bytes.
    pub resident: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        let (load, strangers, merged) = (percent(self.load), percent(self.strangers), percent(self.merged));
        write!(f, "{:6.0} ns, {} lost, p99 {:.1} ms", self.ns, self.lost, self.p99_us / 1e3)?;
        write!(f, ", core {load:.0} % ({strangers:.0} % others), {merged:.0} % merged")
    }
}

/// The place where trials are made.
pub struct Bench {
    paths: Paths,
    core: CoreTime,
}

/// The relay of a trial.
enum Relaying<'b> {
    Baseline(Running),
    Outflow(Box<Relay<'b>>),
}

impl Bench {
    /// Makes the namespaces, and keeps this program (its threads to come) off the relay's core.
    pub fn new() -> Result<Self> {
        keep_to_cpu(OTHER_CPU)?;
        let paths = Paths::new()?.with_sinks()?;
        paths.relay_receives_on(RELAY_CPU)?;
        Ok(Self { paths, core: CoreTime::watch(RELAY_CPU)? })
    }

    /// Makes one trial.
    pub fn measure(&mut self, trial: &Trial) -> Result<Outcome> {
        let Self { paths, core } = self;
        let folder = tempfile::tempdir()?;
        let began = Instant::now();
        // The drain must be there before the first packet.
        let drain = match trial.ends {
            Ends::Udp(hook) => Some(drain(paths, trial, hook)?),
            Ends::Tcp => None,
        };
        let mut relaying = start(paths, trial, folder.path().join("stream.sdp"))?;
        core.measure(&[relaying.pid()])?;
        let ends = match drain {
            Some(drain) => Receiving::Drain(drain),
            None => Receiving::Flood(connect(paths, trial)?),
        };
        let to = (RELAY_IN, SOURCE_PORT).into();
        let mut source = Pulse::new(&paths.source, to, trial.pulses)?;
        reach_everybody(&mut source, &ends, &mut relaying)?;
        let start = began.elapsed();

        let quiet = core.read()?;
        std::thread::sleep(trial.idle);
        let idle = core.since(&quiet)?;
        let before = ends.read()?;
        let reading = core.read()?;
        let sent = source.run(trial.time);
        let arrived = arrive(&ends, &before, sent)?;
        let used = core.since(&reading)?;
        relaying.healthy()?;
        arrived.sound(sent)?;
        let resident = relaying.resident()?;
        outcome(&arrived, sent, used, idle).map(|outcome| Outcome { start, resident, ..outcome })
    }
}

fn drain(paths: &Paths, trial: &Trial, hook: Hook) -> Result<Drain> {
    Drain::attach(&paths.players, "eth0", hook, trial.sinks, trial.pulses.payload)
}

/// Connects all receivers.
fn connect(paths: &Paths, trial: &Trial) -> Result<Flood> {
    let (records, payload) = (trial.contender.records(), trial.pulses.payload);
    let connections = paths.players.run(|| {
        let target = Target::new(STREAM);
        let one = |_| match records {
            Records::Bare => Connection::bare((RELAY_OUT, baseline::TCP_PORT).into()),
            Records::Interleaved => Connection::rtsp(&target),
        };
        (0..trial.sinks).map(one).collect::<Result<Vec<_>>>()
    });
    Flood::start(connections?, records, payload)
}

impl Receiving {
    fn read(&self) -> Result<Arrivals> {
        match self {
            Self::Drain(drain) => drain.read(),
            Self::Flood(flood) => flood.read(),
        }
    }
}

impl Contender {
    /// What comes on its connections.
    fn records(&self) -> Records {
        if *self == Self::Baseline { Records::Bare } else { Records::Interleaved }
    }
}

fn start<'b>(paths: &'b Paths, trial: &Trial, sdp: PathBuf) -> Result<Relaying<'b>> {
    allow_many_files();
    let Contender::Outflow { tables, stream } = &trial.contender else {
        let start = if trial.ends == Ends::Tcp { baseline::tcp } else { baseline::udp };
        return start(&paths.relay, RELAY_CPU, SOURCE_PORT, trial.sinks).map(Relaying::Baseline);
    };
    std::fs::write(&sdp, rtp::description(SOURCE_PORT))?;
    let count = trial.sinks + 100;
    let mut text = listen();
    text += &format!("[limits]\nreceivers = {count}\nconnections = {count}\n");
    text += &format!("connections_per_address = {count}\nworkers = 1\n[log]\nlevel = \"warn\"\n{tables}\n");
    text += &format!("[streams.{STREAM}]\nsource = \"rtp://0.0.0.0:{SOURCE_PORT}\"\n");
    text += &format!("sdp = \"{}\"\nmax_receivers = {count}\n{stream}\n", sdp.display());
    if trial.ends != Ends::Tcp {
        for number in 0..trial.sinks {
            text += &format!("[[sinks]]\nstream=\"{STREAM}\"\nto=\"rtp://{}\"\n", sink(number));
        }
    }
    let relay = Relay::start_on(&paths.relay, &text, Some(RELAY_CPU))?;
    Ok(Relaying::Outflow(Box::new(relay)))
}

/// Lets the source run until every sink has got something, and what was owed has gone out.
fn reach_everybody(source: &mut Pulse, ends: &Receiving, relaying: &mut Relaying<'_>) -> Result<()> {
    let until = Instant::now() + 4 * PATIENCE;
    let mut last = 0;
    loop {
        source.run(WARM_UP);
        std::thread::sleep(SETTLE);
        let now = ends.read()?;
        let total = now.total();
        std::thread::sleep(SETTLE);
        if now.unreached() == 0 && ends.read()?.total() == total {
            return Ok(());
        }
        relaying.healthy()?;
        if Instant::now() > until && total == last {
            let (none, all) = (now.unreached(), now.counts.len());
            bail!("{none} of {all} sinks got nothing: {}", relaying.account());
        }
        last = total;
    }
}

/// Waits until all has come that comes.
fn arrive(ends: &Receiving, before: &Arrivals, sent: u64) -> Result<Arrivals> {
    let (mut last, mut since) = (0, Instant::now());
    let until = since + PATIENCE;
    while Instant::now() < until {
        std::thread::sleep(SETTLE);
        let arrived = ends.read()?.since(before);
        let total = arrived.total();
        if total != last {
            (last, since) = (total, Instant::now());
        }
        if total >= sent * arrived.counts.len() as u64 || since.elapsed() > NOTHING_MORE {
            return Ok(arrived);
        }
    }
    bail!("packets come and come, long after the last was sent")
}

fn outcome(arrived: &Arrivals, sent: u64, used: Use, idle: Use) -> Result<Outcome> {
    let delivered = arrived.total();
    ensure!(delivered > 0, "nothing was delivered");
    let share = |part: Duration, of: Duration| part.as_secs_f64() / of.as_secs_f64().max(f64::EPSILON);
    let own = used.busy.as_secs_f64() - share(idle.busy, idle.wall) * used.wall.as_secs_f64();
    Ok(Outcome {
        ns: own * 1e9 / delivered as f64,
        load: share(used.busy, used.wall),
        lost: arrived.lost(sent),
        delivered,
        p50_us: arrived.delay_us(0.5),
        p99_us: arrived.delay_us(0.99),
        merged: arrived.merged as f64 / delivered as f64,
        strangers: share(used.strangers, used.wall),
        start: Duration::ZERO,
        resident: 0,
    })
}

impl Relaying<'_> {
    fn process(&mut self) -> &mut Running {
        match self {
            Self::Baseline(running) => running,
            Self::Outflow(relay) => relay.process(),
        }
    }

    fn pid(&mut self) -> u32 {
        self.process().pid()
    }

    fn account(&mut self) -> String {
        self.process().account()
    }

    fn healthy(&mut self) -> Result<()> {
        match self {
            Self::Baseline(running) => {
                ensure!(running.alive(), "the baseline ended: {}", running.account());
                Ok(())
            }
            Self::Outflow(relay) => relay.healthy(),
        }
    }

    fn resident(&mut self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}
