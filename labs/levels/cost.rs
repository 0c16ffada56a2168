//! What a delivered packet costs with the filter, and without it.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use outflow_labs::bench::{Bench, Outcome};
use outflow_labs::core_time::Use;
use outflow_labs::drain::Drain;
use outflow_labs::net::sink;
use outflow_labs::relay::{PATIENCE, Relay};

use super::scene::{QUIET, SINKS, Way, receiver, start, stream, wait_way};
use super::source::{Sent, Source};
use super::video::{LEVELS, Video, level};

/// Frames of a measurement: as many as there are levels, so that every cut is sent as often.
const FRAMES: usize = LEVELS;
/// Frames before the first one.
const WARM_UP: usize = 10;
/// How long the relay is watched without a source.
const IDLE: Duration = Duration::from_millis(400);

/// The two streams: one whose frames are whole and whose receivers take a level each, and one whose frames
/// are cut to a level each and whose receivers take all there is.
const STREAMS: [(&str, u16); 2] = [("filtered", 5004), ("plain", 5014)];

/// A relay with both streams, of which one is sent at a time.
pub(crate) struct Cost<'b> {
    bench: &'b Bench,
    relay: Relay<'b>,
    drain: Drain,
    sources: [Source; 2],
    /// The core without a source.
    idle: Use,
}

/// What was measured of one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    /// Of the payloads that were delivered.
    pub(crate) bytes: u64,
    /// Share of the core's time that the host took.
    pub(crate) stolen: f64,
}

impl<'b> Cost<'b> {
    /// Starts the relay with all receivers, and waits until they are reached by this way.
    pub(crate) fn open(bench: &'b Bench, video: &Video, way: Way) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut text = String::new();
        for (number, (name, port)) in STREAMS.into_iter().enumerate() {
            text += &stream(folder.path(), video, name, port)?;
            for at in 0..SINKS {
                let level = if number == 0 { level(at) } else { 1 };
                text += &receiver(name, sink(number * SINKS + at), level);
            }
        }
        let paths = bench.paths();
        let drain = Drain::attach(&paths.players, "eth0", way.hook, STREAMS.len() * SINKS, None)?;
        let mut relay = start(paths, way, &text)?;
        bench.core().measure(&[relay.process().pid()])?;
        let [(_, filtered), (_, plain)] = STREAMS;
        let mut sources =
            [Source::new(paths, filtered, video.whole())?, Source::new(paths, plain, video.cut()?)?];
        let until = Instant::now() + PATIENCE;
        while drain.read()?.unreached() > 0 {
            ensure!(Instant::now() < until, "not all are reached: {}", relay.process().account());
            sources.iter_mut().try_for_each(|source| source.run(2).map(drop))?;
        }
        for (source, (name, _)) in sources.iter_mut().zip(STREAMS) {
            wait_way(&relay, (name, SINKS), way, || source.run(2).map(drop))?;
            // Sockets of receivers' own are made a few at a time.
            source.run(WARM_UP)?;
        }
        drain.quiet(QUIET)?;
        let idle = bench.core().idle(IDLE)?;
        Ok(Self { bench, relay, drain, sources, idle })
    }

    /// Sends the stream whose receivers take a level each, or the other one, and sees what that cost.
    pub(crate) fn measure(&mut self, is_filtered: bool) -> Result<Measured> {
        let index = usize::from(!is_filtered);
        let before = self.drain.read()?;
        let reading = self.bench.core().read()?;
        let sent = self.sources[index].run(FRAMES)?;
        let arrived = self.drain.quiet(QUIET)?.since(&before);
        let used = self.bench.core().since(&reading)?;
        self.relay.healthy()?;
        let levels = (0..SINKS).map(|at| if is_filtered { level(at) } else { 1 });
        let lost = astray(&arrived.counts[index * SINKS..][..SINKS], levels, &sent);
        let outcome = Outcome { lost, ..Outcome::of_packets(arrived.total(), used, self.idle)? };
        let stolen = used.stolen.as_secs_f64() / used.wall.as_secs_f64();
        Ok(Measured { outcome, bytes: arrived.bytes.iter().sum(), stolen })
    }
}

/// Packets that receivers of these levels did not get, or got too many.
fn astray(counts: &[u64], levels: impl Iterator<Item = usize>, sent: &Sent) -> u64 {
    counts.iter().zip(levels).map(|(count, level)| sent.at(level).packets.abs_diff(*count)).sum()
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { ns, load, lost, delivered, merged, strangers, .. } = self.outcome;
        let percent = |share: f64| 100.0 * share;
        write!(f, "{ns:6.0} ns, {delivered} packets of {} bytes, {lost} lost", self.bytes / delivered)?;
        let (load, strangers, stolen) = (percent(load), percent(strangers), percent(self.stolen));
        write!(f, ", core {load:.0} % (others {strangers:.0}, host {stolen:.1})")?;
        if merged > 0.0 { write!(f, ", {:.0} % merged", percent(merged)) } else { Ok(()) }
    }
}
