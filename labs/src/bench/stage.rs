//! A relay at work with its receivers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outflow_srtp::Profile;
use serde_json::Value;

use super::audience::{Audience, SAMPLE};
use super::place::{SOURCE_PORT, STREAM};
use super::relaying::Relaying;
use super::{Contender, Ends, Outcome, Setup};
use crate::arrivals::Arrivals;
use crate::baseline;
use crate::cage::Cage;
use crate::core_time::{CoreTime, Use};
use crate::drain::Drain;
use crate::media::Pulse;
use crate::net::{Paths, RELAY_IN, RELAY_OUT};
use crate::receive::{Connection, Flood, Records, Target};
use crate::relay::PATIENCE;

/// Between two looks at the counts.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// When nothing has come for so long, nothing is on its way: longer than any latency budget of the
/// receivers that have one.
const QUIET_UDP: Duration = Duration::from_millis(200);
const QUIET_TCP: Duration = Duration::from_millis(600);
/// How long the source runs between looks at whether all receivers are reached.
const WARM_UP: Duration = Duration::from_millis(300);
/// What a relay may take to begin to serve a receiver on a connection, on average.
const CONNECT_WITHIN: Duration = Duration::from_millis(2);
/// A relay that has been ready for more than this share of the time, and did not get the core, is
/// kept from it by others: its buffers have overflown.
const WAITED_MAX: f64 = 0.8;
/// Threads that connect at the same time: one alone would mostly wait for answers.
const CONNECTING: usize = 4;

/// Viewers by WebRTC that a stage has room for.
const VIEWERS_MAX: usize = 16_384;
/// How long the relay is watched before viewers come.
const AT_REST: Duration = Duration::from_millis(300);

/// A relay at work with its receivers.
pub struct Stage<'b> {
    paths: &'b Paths,
    core: &'b CoreTime,
    setup: Setup,
    receiving: Receiving,
    joining: Option<Joining>,
    source: Pulse,
    start: Duration,
    // Last, and in this order: the relay must have ended when its cage is removed.
    relaying: Relaying<'b>,
    cage: Cage,
}

/// What it took until the viewers by WebRTC had come, before anything was sent to them.
#[derive(Debug, Clone)]
pub struct Joining {
    /// From asking to having keys, of each.
    pub took: Vec<Duration>,
    /// Time of the relay's core for all of them: the request, checks, the handshake.
    pub core: Duration,
    /// Bytes of memory that the relay held before ...
    pub memory: u64,
    /// ... and once they had come.
    pub memory_then: u64,
    /// What packets are sealed with.
    pub profile: Option<Profile>,
}

/// Receivers at work.
enum Receiving {
    Drain(Box<Drain>),
    Flood(Flood),
    Viewers(Box<Drain>, Box<Audience>),
}

impl<'b> Stage<'b> {
    pub(super) fn open(paths: &'b Paths, core: &'b CoreTime, cage: Cage, setup: &Setup) -> Result<Self> {
        let began = Instant::now();
        let folder = tempfile::tempdir()?;
        // The drain must be there before the first packet.
        let drain = drain(paths, setup)?;
        let mut relaying = Relaying::start(paths, setup, &cage, folder.path())?;
        core.measure(&[relaying.process().pid()])?;
        let mut joining = None;
        let receiving = match (drain, setup.ends) {
            (Some(drain), Ends::WebRtc(door)) => {
                let mut audience = Audience::new(paths, door)?;
                let come = joined((paths, core), &cage, &mut audience, setup.sinks);
                joining = Some(come.with_context(|| relaying.process().account())?);
                Receiving::Viewers(Box::new(drain), Box::new(audience))
            }
            (Some(drain), _) => Receiving::Drain(Box::new(drain)),
            (None, _) => Receiving::Flood(flood(paths, setup, Vec::new())?),
        };
        let source = Pulse::new(&paths.source, (RELAY_IN, SOURCE_PORT).into(), setup.pulses)?;
        let setup = setup.clone();
        let start = Duration::ZERO;
        let mut stage = Self { paths, core, setup, receiving, joining, source, start, relaying, cage };
        stage.reach_everybody()?;
        if let Some(way) = stage.setup.way {
            stage.check_way(way)?;
        }
        stage.start = began.elapsed();
        Ok(stage)
    }

    /// Has as many receivers from now on; only connections can come and go, and viewers by WebRTC come.
    pub fn resize(&mut self, sinks: usize) -> Result<()> {
        match &mut self.receiving {
            Receiving::Drain(_) => bail!("receivers without connections are in the configuration"),
            Receiving::Flood(old) => {
                let mut connections = old.stop()?;
                connections.truncate(sinks);
                self.setup.sinks = sinks;
                self.receiving = Receiving::Flood(flood(self.paths, &self.setup, connections)?);
            }
            Receiving::Viewers(_, audience) => {
                ensure!(sinks <= VIEWERS_MAX, "there is no room for {sinks} viewers");
                // Those that are there need not say so while the others come.
                audience.refresh()?;
                audience.grow(self.paths, sinks)?;
                self.setup.sinks = sinks;
            }
        }
        self.reach_everybody()
    }

    /// What it took until viewers by WebRTC had come.
    pub fn joining(&self) -> Option<&Joining> {
        self.joining.as_ref()
    }

    /// By which ways the relay reaches its receivers ("user", "tc", "xdp"), and why by no faster one.
    /// The plain relay has but one.
    pub fn ways(&self) -> Result<BTreeMap<String, String>> {
        let Relaying::Outflow(relay) = &self.relaying else { return Ok(BTreeMap::new()) };
        // What the relay shows is up to some seconds old; the ways are found as receivers join.
        let state = relay.wait_receivers(STREAM, self.setup.sinks)?;
        let receivers = state["receivers"].as_array().context("the relay shows no receivers")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(receivers.iter().map(|one| (text(&one["path"]), text(&one["path_because"]))).collect())
    }

    /// Waits until all receivers are reached by this way.
    fn check_way(&mut self, way: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE / 4;
        loop {
            let others: Vec<_> = self.ways()?.into_iter().filter(|(taken, _)| taken != way).collect();
            if others.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < until, "receivers are not reached by \"{way}\": {others:?}");
            // A receiver that has just joined is sent to on its own, until it is up with the others.
            self.source.run(LOOK_EVERY);
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Lets the source run for so long, and sees what came of it. If others disturbed it is done once
    /// more.
    ///
    /// # Errors
    /// The relay ended, or sent what it should not.
    pub fn measure(&mut self, time: Duration) -> Result<Outcome> {
        let outcome = self.measure_once(time)?;
        if outcome.disturbed {
            // What is still on its way belongs to no measurement.
            self.quiet(u64::MAX)?;
            return self.measure_once(time);
        }
        Ok(outcome)
    }

    /// Before, the core is watched without a source: what the relay uses then is not what packets
    /// cost.
    fn measure_once(&mut self, time: Duration) -> Result<Outcome> {
        self.receiving.refresh()?;
        let idle = self.core.idle(time / 2)?;
        let (before, waited) = (self.receiving.read()?, self.relaying.process().waited()?);
        let reading = self.core.read()?;
        let sent = self.source.run(time);
        let (ended, all) = (Instant::now(), before.total() + sent * before.counts.len() as u64);
        let arrived = self.quiet(all)?.since(&before);
        let behind = ended.elapsed();
        let used = self.core.since(&reading)?;
        self.relaying.healthy()?;
        let waited = self.relaying.process().waited()?.saturating_sub(waited);
        // A relay held to a part of a core waits because of that.
        let starved = self.cage.limits().is_none() && waited > used.wall.mul_f64(WAITED_MAX);
        let disturbed = starved || self.others_are_to_blame(&arrived, sent, &used);
        if !disturbed {
            arrived.sound(sent)?;
            self.receiving.check(&arrived)?;
        }
        let (start, memory) = (self.start, self.cage.memory()?);
        let outcome = Outcome::new(&arrived, sent, used, idle)?;
        Ok(Outcome { behind, start, memory, disturbed, ..outcome })
    }

    /// Whether packets were lost, or so late that the next ones caught up with them, while others had
    /// much of the core.
    fn others_are_to_blame(&self, arrived: &Arrivals, sent: u64, used: &Use) -> bool {
        let caught_up = self.setup.pulses.packets == 1 && 20 * arrived.merged > arrived.total();
        4 * used.strangers > used.wall && (caught_up || arrived.lost(sent) > 0)
    }

    /// Lets the source run until every sink has got something, and what was owed has gone out.
    fn reach_everybody(&mut self) -> Result<()> {
        let mut until = Instant::now() + PATIENCE;
        let mut last = 0;
        loop {
            self.source.run(WARM_UP);
            let now = self.quiet(u64::MAX)?;
            if now.unreached() == 0 {
                return Ok(());
            }
            self.relaying.healthy()?;
            if now.total() > last {
                until = Instant::now() + PATIENCE;
            } else if Instant::now() > until {
                let (none, all) = (now.unreached(), now.counts.len());
                bail!("{none} of {all} sinks got nothing: {}", self.relaying.process().account());
            }
            last = now.total();
        }
    }

    /// Waits until all has come that comes: this many packets, or what there was when nothing more
    /// came for a while.
    fn quiet(&self, all: u64) -> Result<Arrivals> {
        let quiet = if self.setup.ends == Ends::Tcp { QUIET_TCP } else { QUIET_UDP };
        let (mut last, mut since) = (0, Instant::now());
        let until = since + PATIENCE;
        while Instant::now() < until {
            let arrived = self.receiving.read()?;
            let total = arrived.total();
            if total != last {
                (last, since) = (total, Instant::now());
            }
            if total >= all || since.elapsed() > quiet {
                return Ok(arrived);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("packets come and come, long after the last was sent")
    }
}

impl Receiving {
    fn read(&self) -> Result<Arrivals> {
        match self {
            Self::Drain(drain) => drain.read(),
            Self::Flood(flood) => flood.read(),
            Self::Viewers(drain, audience) => drain.read_of(audience.len()),
        }
    }

    /// Receivers say what they have to say now and then.
    fn refresh(&mut self) -> Result<()> {
        if let Self::Viewers(_, audience) = self { audience.refresh() } else { Ok(()) }
    }

    /// Fails if receivers that look into what came find something else than was sent.
    fn check(&mut self, arrived: &Arrivals) -> Result<()> {
        if let Self::Viewers(_, audience) = self { audience.check(arrived) } else { Ok(()) }
    }
}

/// What takes packets that come without a connection.
fn drain(paths: &Paths, setup: &Setup) -> Result<Option<Drain>> {
    if let Ends::WebRtc(_) = setup.ends {
        return Drain::attach_media(&paths.players, "eth0", VIEWERS_MAX, SAMPLE).map(Some);
    }
    let Some(hook) = setup.ends.hook() else { return Ok(None) };
    let payload = Some(setup.pulses.payload);
    Drain::attach(&paths.players, "eth0", hook, setup.sinks, payload).map(Some)
}

/// Has viewers come, and sees what that costs.
fn joined(
    (paths, core): (&Paths, &CoreTime),
    cage: &Cage,
    audience: &mut Audience,
    viewers: usize,
) -> Result<Joining> {
    ensure!(viewers <= VIEWERS_MAX, "there is no room for {viewers} viewers");
    let (idle, memory) = (core.idle(AT_REST)?, cage.memory()?);
    let reading = core.read()?;
    audience.grow(paths, viewers)?;
    let used = core.since(&reading)?;
    let core = used.busy.saturating_sub(used.wall.mul_f64(idle.load()));
    let (took, memory_then) = (audience.took.clone(), cage.memory()?);
    Ok(Joining { took, core, memory, memory_then, profile: audience.profile() })
}

/// Connects as many receivers as are missing, and begins to empty all of them.
fn flood(paths: &Paths, setup: &Setup, mut connections: Vec<Connection>) -> Result<Flood> {
    let records = match setup.contender {
        Contender::Baseline | Contender::Other(_) => Records::Bare,
        Contender::Outflow { .. } => Records::Interleaved,
    };
    let missing = setup.sinks.saturating_sub(connections.len());
    let target = Target::new(STREAM);
    let one = &|| match records {
        Records::Bare => Connection::bare((RELAY_OUT, baseline::TCP_PORT).into()),
        Records::Interleaved => Connection::rtsp(&target),
    };
    let share = |thread: usize| missing * (thread + 1) / CONNECTING - missing * thread / CONNECTING;
    let until = Instant::now() + PATIENCE + CONNECT_WITHIN * u32::try_from(missing)?;
    let connect = |count: usize| {
        let in_time = || Instant::now() < until;
        let connections = (0..count).take_while(|_| in_time()).map(|_| one()).collect::<Result<Vec<_>>>()?;
        ensure!(connections.len() == count, "the relay takes too long");
        Ok(connections)
    };
    let fresh = paths.players.run(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CONNECTING).map(|n| scope.spawn(move || connect(share(n)))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
            joined.collect::<Result<Vec<_>>>()
        })
    });
    connections.extend(fresh.context("a receiver could not connect")?.into_iter().flatten());
    Flood::start(connections, records, setup.pulses.payload)
}
