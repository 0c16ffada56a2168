//! Whether receivers of every level get what the rate table says and can decode it, and how soon one of them
//! gets another level.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::Bench;
use outflow_labs::drain::Drain;
use outflow_labs::net::{PLAYER, sink};
use outflow_labs::process::be_preferred;
use outflow_labs::relay::{PATIENCE, Relay};

use super::change::{Changer, FIRST_LEVEL, PORT, Took};
use super::scene::{QUIET, SINKS, Way, receiver, start, stream, wait_way};
use super::source::Source;
use super::video::{FPS, LEVELS, Video, level};
use super::witness::{Decoder, Witnesses, address};

const STREAM: &str = "levels";
const SOURCE_PORT: u16 = 5004;
/// The rate table is of the last four seconds, and shown with a little delay: from then on it is of this
/// period alone.
const TABLE_AFTER: Duration = Duration::from_millis(5500);
/// Between two looks at it. Its steps do not end with frames, so that one look is of a frame more or less.
const TABLE_EVERY: Duration = Duration::from_millis(270);

/// A relay with all receivers.
pub(crate) struct Reception<'b> {
    relay: Relay<'b>,
    drain: Drain,
    source: Source,
    witnesses: Witnesses,
    changer: Changer,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// By how much the receiver of all is off the rate table that is furthest off it: a share.
    pub(crate) rate_error: f64,
    /// Frames of one receiver of each level, and of the one that changes, and those of them that cannot be
    /// decoded.
    pub(crate) frames: usize,
    pub(crate) undecodable: usize,
    pub(crate) changes: Vec<Took>,
    /// Bits a second of each level, as the relay says.
    pub(crate) table: Vec<f64>,
}

impl<'b> Reception<'b> {
    /// Starts the relay, and waits until every receiver gets something by this way.
    pub(crate) fn open(bench: &'b Bench, video: &Video, way: Way) -> Result<Self> {
        let (folder, paths) = (tempfile::tempdir()?, bench.paths());
        let mut text = stream(folder.path(), video, STREAM, SOURCE_PORT)?;
        for number in 0..SINKS {
            text += &receiver(STREAM, sink(number), level(number));
        }
        for level in 1..=LEVELS {
            let (host, port) = address(level);
            text += &receiver(STREAM, format!("{host}:{port}"), level);
        }
        text += &receiver(STREAM, format!("{PLAYER}:{PORT}"), FIRST_LEVEL);
        let drain = Drain::attach(&paths.players, "eth0", way.hook, SINKS, None)?;
        let (witnesses, mut changer) = (Witnesses::open(paths)?, Changer::open(paths)?);
        let mut relay = start(paths, way, &text)?;
        bench.core().measure(&[relay.process().pid()])?;
        let mut source = Source::new(paths, SOURCE_PORT, video.whole())?;
        let until = Instant::now() + PATIENCE;
        while !changer.is_ready()? || drain.read()?.unreached() > 0 {
            ensure!(Instant::now() < until, "not all are reached: {}", relay.process().account());
            source.run(2)?;
        }
        wait_way(&relay, (STREAM, SINKS + LEVELS + 1), way, || source.run(2).map(drop))?;
        Ok(Self { relay, drain, source, witnesses, changer })
    }

    /// Sends for so long, and sees what came.
    pub(crate) fn measure(&mut self, time: Duration, decoder: &mut Decoder) -> Result<Found> {
        let frames = (time.as_secs_f64() * f64::from(FPS)).round() as usize;
        let before = self.drain.quiet(QUIET)?;
        self.witnesses.take();
        self.changer.take()?;
        let (began, stop) = (Instant::now(), AtomicBool::new(false));
        let Self { relay, source, witnesses, changer, .. } = self;
        let (sent, table, changes) = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                be_preferred();
                source.run(frames)
            });
            scope.spawn(|| witnesses.read_until(&stop));
            let looking = scope.spawn(|| rate_table(relay, began + TABLE_AFTER..began + time));
            let changes = changer.run(began + time);
            let joined = (sending.join(), looking.join());
            stop.store(true, Ordering::Release);
            let (sent, table) = (joined.0.expect("it does not panic"), joined.1.expect("nor this"));
            Ok::<_, anyhow::Error>((sent?, table?, changes?))
        })?;
        let arrived = self.drain.quiet(QUIET)?.since(&before);
        self.relay.healthy()?;
        let error = |number: usize| {
            let bps = arrived.bytes[number] as f64 * 8.0 * f64::from(FPS) / frames as f64;
            (bps / table[level(number) - 1] - 1.0).abs()
        };
        let rate_error = (0..SINKS).map(error).fold(0.0, f64::max);
        let changes = changes.iter().map(|change| change.took(&sent.frames)).collect::<Result<_>>()?;
        let mut undecodable = decoder.undecodable(&self.changer.take()?, frames, None);
        for (packets, level) in self.witnesses.take().iter().zip(1..) {
            undecodable += decoder.undecodable(packets, frames, Some(level));
        }
        let frames = (LEVELS + 1) * frames;
        Ok(Found { rate_error, frames, undecodable, changes, table })
    }
}

/// What the relay says each level costs, in bits a second: the mean of all looks within this time.
fn rate_table(relay: &Relay<'_>, within: std::ops::Range<Instant>) -> Result<Vec<f64>> {
    std::thread::sleep(within.start.saturating_duration_since(Instant::now()));
    let (mut sums, mut looks) = (vec![0.0; LEVELS], 0);
    while Instant::now() < within.end {
        let state = relay.stream(STREAM)?;
        let table: Vec<f64> = serde_json::from_value(state["levels"].clone()).context("no rate table")?;
        ensure!(table.len() == LEVELS, "the rate table has {} levels", table.len());
        sums.iter_mut().zip(table).for_each(|(sum, bps)| *sum += bps);
        looks += 1;
        std::thread::sleep(TABLE_EVERY);
    }
    ensure!(looks > 0, "there was no time to look at the rate table");
    Ok(sums.into_iter().map(|sum| sum / f64::from(looks)).collect())
}
