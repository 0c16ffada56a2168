//! What a busy day has besides faults: viewers that come and go, configurations that are loaded, upgrades.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::progress;
use outflow_labs::net::Namespace;
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::Upgrade;
use outflow_labs::trouble::{Places, STREAMS, Scene};

/// Viewers that come together, by each way one, and leave together ...
const PARTY: [How; 4] = [How::Http, How::RtspTcp, How::RtspUdp, How::Http];
/// ... this many parties are there at a time ...
const PARTIES: usize = 25;
/// ... and in the mean one comes in this time: 7,200 viewers in an hour, ten times the 720 of a busy day, on which each
/// of a hundred stays eight minutes.
const BETWEEN_PARTIES: Duration = Duration::from_secs(2);
/// In the mean a configuration is loaded in this time: 60 in an hour, ten times as many as somebody makes that changes
/// something every ten minutes.
const BETWEEN_RELOADS: Duration = Duration::from_secs(60);
/// In the mean another process takes over in this time: six times in an hour, where one upgrade on each day is much.
const BETWEEN_UPGRADES: Duration = Duration::from_secs(600);
/// Between two looks at the viewers' sockets.
const NAP: Duration = Duration::from_millis(20);

/// Viewers that come and go, what is loaded, and what takes over.
pub(crate) struct Life<'p> {
    players: &'p Namespace,
    random: fastrand::Rng,
    of_upgrades: fastrand::Rng,
    parties: VecDeque<Crowd>,
    next_party: Instant,
    next_reload: Instant,
    next_upgrade: Instant,
    has_more: bool,
    /// The process that they are at.
    relay: u32,
    /// Viewers that have come, and those that were not let in.
    pub(crate) joins: usize,
    pub(crate) refused: usize,
    pub(crate) reloads: usize,
    pub(crate) upgrades: usize,
    /// Upgrades that the relay refused, or that it did not answer.
    pub(crate) upgrades_failed: usize,
}

impl<'p> Life<'p> {
    pub(crate) fn new(places: &'p Places, seed: u64) -> Self {
        // Of their own, so that what else happens is the same without upgrades.
        let mut of_upgrades = fastrand::Rng::with_seed(seed.wrapping_add(2));
        Life {
            players: &places.paths.players,
            next_upgrade: Instant::now() + wait(&mut of_upgrades, BETWEEN_UPGRADES),
            of_upgrades,
            random: fastrand::Rng::with_seed(seed.wrapping_add(1)),
            parties: VecDeque::new(),
            next_party: Instant::now(),
            next_reload: Instant::now() + BETWEEN_RELOADS,
            has_more: false,
            relay: 0,
            joins: 0,
            refused: 0,
            reloads: 0,
            upgrades: 0,
            upgrades_failed: 0,
        }
    }

    /// Does what is due: what would disturb a fault only while there is none.
    pub(crate) fn go_on(&mut self, scene: &mut Scene<'_>, is_quiet: bool) -> Result<()> {
        let relay = scene.relay.process().pid();
        if self.relay != relay {
            (self.relay, self.has_more) = (relay, false);
            self.parties.clear();
        }
        let now = Instant::now();
        if now >= self.next_party {
            self.next_party = now + wait(&mut self.random, BETWEEN_PARTIES);
            if self.parties.len() >= PARTIES {
                self.parties.pop_front();
            }
            // Until all are there that can be, they come faster.
            let come = if self.parties.len() + 1 < PARTIES { 2 } else { 1 };
            for _ in 0..come {
                self.let_in()?;
            }
        }
        if is_quiet && now >= self.next_reload {
            self.next_reload = now + wait(&mut self.random, BETWEEN_RELOADS);
            self.reload(scene)?;
        }
        if is_quiet && now >= self.next_upgrade {
            self.next_upgrade = now + wait(&mut self.of_upgrades, BETWEEN_UPGRADES);
            self.upgrade(scene);
        }
        Ok(())
    }

    /// All leave that come and go; others come later.
    pub(crate) fn all_leave(&mut self) {
        self.parties.clear();
    }

    /// A party comes. A relay that has a fault may let in none.
    fn let_in(&mut self) -> Result<()> {
        let target = Target::new(STREAMS[self.random.usize(..STREAMS.len())]);
        let party = Crowd::start(Vec::new(), NAP)?;
        for how in PARTY {
            match self.players.run(|| Receiver::open(how, &target)) {
                Ok(receiver) => {
                    party.add(receiver)?;
                    self.joins += 1;
                }
                Err(_) => {
                    self.refused += 1;
                    break;
                }
            }
        }
        self.parties.push_back(party);
        Ok(())
    }

    /// A stream more, or that one less.
    fn reload(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        self.has_more = !self.has_more;
        self.reloads += 1;
        let more = if self.has_more { "[streams.more]\nsource = \"push\"\nring = \"1 MB\"\n" } else { "" };
        let configuration = format!("{}\n{more}", scene.configuration());
        scene.relay.reload(&configuration)
    }

    /// Another process takes over, with the viewers that are there. Whatever else comes of it shows in what they lose.
    fn upgrade(&mut self, scene: &mut Scene<'_>) {
        let refused = match scene.relay.upgrade() {
            Ok(Upgrade::Done { gap_ms }) => {
                self.upgrades += 1;
                progress(format!("an upgrade, for which the relay stood still for {gap_ms} ms"));
                self.relay = scene.relay.process().pid();
                return;
            }
            Ok(Upgrade::Refused { status, why }) => format!("{status} {why}"),
            Err(error) => format!("{error:#}"),
        };
        self.upgrades_failed += 1;
        progress(format!("an upgrade failed: {refused}"));
    }
}

/// A time by chance, as events have between them that know nothing of each other.
fn wait(random: &mut fastrand::Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - random.f64()).ln())
}
