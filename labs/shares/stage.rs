//! The relay with its streams and receivers, and what comes of a period.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use outflow_labs::bench::RELAY_CPU;
use outflow_labs::drain::{Drain, Hook};
use outflow_labs::figures::progress;
use outflow_labs::media::{Pulse, Pulses, rtp};
use outflow_labs::net::{Paths, RELAY_IN, sink};
use outflow_labs::relay::{PATIENCE, Relay, listen};

/// A stream of the lab.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) name: &'static str,
    class: &'static str,
    /// Among those of the normal class.
    pub(crate) weight: Option<f64>,
    port: u16,
    sinks: usize,
    /// What is asked for it in an overload, in parts of what the core can do.
    asks: f64,
}

impl Stream {
    /// Whether it has reserved time.
    pub(crate) fn is_reserved(&self) -> bool {
        self.asks == 0.0
    }
}

/// Together they ask for twice what the core can do, beside the one with a reserve. Sinks are numbered in this order.
pub(crate) const STREAMS: [Stream; 5] = [
    Stream { name: "reserved", class: "normal", weight: None, port: 5004, sinks: 50, asks: 0.0 },
    Stream { name: "high", class: "high", weight: None, port: 5014, sinks: 300, asks: 1.0 },
    Stream { name: "one", class: "normal", weight: Some(1.0), port: 5024, sinks: 300, asks: 1.0 / 3.0 },
    Stream { name: "two", class: "normal", weight: Some(2.0), port: 5034, sinks: 300, asks: 1.0 / 3.0 },
    Stream { name: "four", class: "normal", weight: Some(4.0), port: 5044, sinks: 300, asks: 1.0 / 3.0 },
];

const HIGH: usize = 1;
/// What the normal class is promised.
pub(crate) const NORMAL_SHARE: f64 = 0.4;
const PAYLOAD: u16 = 1400;
/// The rate of the stream with a reserve, which it needs less than its reserve for.
const RESERVED_BPS: f64 = 2e6;
/// Where the search for what the core can do begins.
const FIRST_BPS: f64 = 3e6;
/// The core is full when this share or less of what should come does come.
const FULL: f64 = 0.9;
/// What has not come for so long has been lost.
const QUIET: Duration = Duration::from_millis(500);
/// An overload is there after this time.
const BEGINS: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(200);

const LIMITS: &str = "[limits]\nworkers = 1\nnormal_share = \"40 %\"\nlow_share = \"1 %\"\n\
                      [fanout]\nudp = \"user\"\n[log]\nlevel = \"warn\"\n";

/// What came of a period; by stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    pub(crate) sent: [u64; STREAMS.len()],
    pub(crate) lost: [u64; STREAMS.len()],
    /// Between two snapshots within the overload; zero if there were not two.
    pub(crate) worked_us: [u64; STREAMS.len()],
    /// Of the stream with a reserve.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Period {
    /// Whether two snapshots were made within it.
    pub(crate) fn is_measured(&self) -> bool {
        self.worked_us.iter().any(|time| *time > 0)
    }
}

/// The relay at work with its sources and receivers.
pub(crate) struct Stage<'p> {
    relay: Relay<'p>,
    drain: Drain,
    pulses: Vec<Pulse>,
}

impl<'p> Stage<'p> {
    /// Starts everything, and waits until every receiver has been reached.
    pub(crate) fn open(paths: &'p Paths) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut text = listen() + LIMITS;
        let mut numbers = 0..;
        for stream in STREAMS {
            let Stream { name, class, port, .. } = stream;
            let sdp = folder.path().join(format!("{name}.sdp"));
            std::fs::write(&sdp, rtp::description(port))?;
            text += &format!(
                "[streams.{name}]\nsource = \"rtp://0.0.0.0:{port}\"\nsdp = \"{}\"\n",
                sdp.display()
            );
            text += &format!("priority = \"{class}\"\nhopeless_after = \"1 h\"\nsource_timeout = \"1 h\"\n");
            text += &stream.weight.map(|weight| format!("weight = {weight}\n")).unwrap_or_default();
            if stream.is_reserved() {
                text += "reserve = \"20 %\"\n";
            }
            for number in numbers.by_ref().take(stream.sinks) {
                text += &format!("[[sinks]]\nstream = \"{name}\"\nto = \"rtp://{}\"\n", sink(number));
            }
        }
        let all = STREAMS.iter().map(|stream| stream.sinks).sum();
        let timed = STREAMS[0].sinks;
        let drain = Drain::attach_timing(&paths.players, "eth0", Hook::Tc, (all, timed), Some(PAYLOAD))?;
        let relay = Relay::start_as(&paths.relay, &text, |program| program.on_cpu(RELAY_CPU).preferred())?;
        let pulse = |stream: &Stream| {
            let shape = Pulses::of_rate(RESERVED_BPS, PAYLOAD, 1);
            Pulse::new(&paths.source, (RELAY_IN, stream.port).into(), shape)
        };
        let pulses = STREAMS.iter().map(pulse).collect::<Result<_>>()?;
        let mut stage = Stage { relay, drain, pulses };
        let until = Instant::now() + PATIENCE;
        while stage.drain.read()?.unreached() > 0 {
            ensure!(Instant::now() < until, "not all are reached: {}", stage.relay.process().account());
            stage.run(Duration::from_millis(500), |_| Some(RESERVED_BPS))?;
        }
        Ok(stage)
    }

    pub(crate) fn healthy(&mut self) -> Result<()> {
        self.relay.healthy()
    }

    /// Packets a second to receivers at which its core is full: what it sends when it is asked for more than it can.
    pub(crate) fn full(&mut self) -> Result<f64> {
        let sinks = STREAMS[HIGH].sinks as f64;
        let mut asked = FIRST_BPS;
        while asked < 2e9 {
            let period = self.run(Duration::from_secs(1), |at| (at == HIGH).then_some(asked))?;
            let share = 1.0 - period.lost[HIGH] as f64 / period.sent[HIGH].max(1) as f64;
            progress(format!("{:.0} Mbit/s: {:.0} % come", asked / 1e6, 100.0 * share));
            if share < FULL {
                return Ok(share * asked / 8.0 / f64::from(PAYLOAD) * sinks);
            }
            asked *= 2.0;
        }
        bail!("the core is never full")
    }

    /// Has the stream with a reserve flow for so long, and with it what overloads a core that can do this much.
    pub(crate) fn period(&mut self, time: Duration, full: Option<f64>) -> Result<Period> {
        self.run(time, |at| {
            let stream = STREAMS[at];
            let packets = full.map(|full| stream.asks * full / stream.sinks as f64);
            let bps = packets.map(|packets| packets * 8.0 * f64::from(PAYLOAD));
            if stream.is_reserved() { Some(RESERVED_BPS) } else { bps }
        })
    }

    /// Has sources send for so long, each at its rate if it has one, and waits until all has come that comes.
    fn run(&mut self, time: Duration, bps_of: impl Fn(usize) -> Option<f64>) -> Result<Period> {
        let before = self.drain.read()?;
        let (mut sent, mut worked_us) = ([0; STREAMS.len()], Ok([0; STREAMS.len()]));
        let (pulses, relay) = (&mut self.pulses, &self.relay);
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (at, pulse) in pulses.iter_mut().enumerate() {
                let Some(bps) = bps_of(at) else { continue };
                pulse.hurry(bps / 8.0 / f64::from(PAYLOAD));
                running.push((at, scope.spawn(move || pulse.run(time))));
            }
            worked_us = worked(relay, time);
            for (at, pulse) in running {
                sent[at] = pulse.join().map_err(|_| anyhow!("a source has panicked")).unwrap_or(0);
            }
        });
        let arrived = self.drain.quiet(QUIET)?.since(&before);
        ensure!(arrived.strange == 0, "{} packets of another size or to none", arrived.strange);
        let mut counts = &arrived.counts[..];
        let mut period = Period { worked_us: worked_us?, ..Period::default() };
        (period.p50_us, period.p99_us) = (arrived.delay_us(0.5), arrived.delay_us(0.99));
        for (at, stream) in STREAMS.iter().enumerate() {
            let (own, others) = counts.split_at(stream.sinks);
            counts = others;
            period.sent[at] = sent[at] * stream.sinks as u64;
            period.lost[at] = own.iter().map(|count| sent[at].saturating_sub(*count)).sum();
        }
        Ok(period)
    }
}

/// What a worker works for each stream, microseconds, between the first and the last snapshot that are made after an
/// overload has begun, and before it ends after this time.
fn worked(relay: &Relay<'_>, time: Duration) -> Result<[u64; STREAMS.len()]> {
    let began = Instant::now();
    std::thread::sleep(BEGINS.min(time));
    let look = || -> Result<[u64; STREAMS.len()]> {
        let state = relay.json("/api/v1/streams")?;
        let mut all = [0; STREAMS.len()];
        for (at, stream) in STREAMS.iter().enumerate() {
            let of = state.as_array().context("streams are a list")?;
            let it = of.iter().find(|it| it["name"] == stream.name).context("a stream is missing")?;
            all[at] = it["worker_us"].as_u64().context("a stream says how long it was worked for")?;
        }
        Ok(all)
    };
    let mut changes: Vec<[u64; STREAMS.len()]> = Vec::new();
    let mut last = None;
    while began.elapsed() + LOOK_EVERY < time {
        let now = look()?;
        if last.replace(now).is_some_and(|last| last != now) {
            changes.push(now);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok([0; STREAMS.len()]) };
    Ok(core::array::from_fn(|at| last[at] - first[at]))
}

impl std::fmt::Display for Period {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lost of the reserve, p99 {:.0} us", self.lost[0], self.p99_us)?;
        let all = self.worked_us.iter().sum::<u64>().max(1) as f64;
        for (stream, time) in STREAMS.iter().zip(self.worked_us).filter(|_| self.is_measured()) {
            write!(f, ", {} {:.2} %", stream.name, 100.0 * time as f64 / all)?;
        }
        Ok(())
    }
}
