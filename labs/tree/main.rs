//! A tree of seven relays over three levels, each in a namespace of its own (`scene.rs`), with NATS beside the
//! origin. Streams have five levels ([`source`]), and every packet its number.
//!
//! **Joins.** Receivers ask edges, one after another, for streams that only the origin has, at random
//! levels: `join_ms_p95` is from the call that subscribes to the first packet. Then all leave at once:
//! `pruned_ms` is from then until the last packet of such a stream comes to a region, at the most, to be
//! compared with `pruned_timers_ms`: both relays on the way hold what is no longer wanted (`[tree] hold`).
//!
//! **Rates.** 60 receivers of three streams change to random levels, leave and come back. What comes in at each
//! relay over its link is looked at on the device: while the best level wanted below stays the same, and that
//! has had its time to get there, the packets that were sent of this level are to come, once each.
//! `missing` are those that do not; `unwanted` are packets of other levels, or while nothing is wanted. Both
//! together, as a share of what should come, are `rate_error_pct`, that of the link that is furthest off.
//! `duplicates` are packets that crossed a link twice, or came to a receiver twice.
//!
//! **NATS** is killed while all watch, and restarted after five seconds: `directory_restart_lost` are packets
//! that did not come to a receiver, all receivers together.
//!
//! **A parent** is killed while all watch. `parent_gap_ms` is the longest time between two packets at any
//! receiver; `usual_gap_ms` the longest in the seconds before.

mod audience;
mod failure;
mod joins;
mod rates;
mod scene;
mod source;
mod wire;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{Options, progress, rounded, run_lab};
use outflow_labs::nats::Nats;

use serde_json::{Map, Value, json};

use audience::{Audience, Receiver};
use rates::{Carried, Interest};
use scene::{RELAYS, Tree};
use source::Source;
use wire::{Crossed, Wire};

/// Streams that are watched by all.
pub(crate) const MAIN: u8 = 3;
/// Packets a second of those.
const PER_SECOND: u32 = 80;
/// Receivers beside each relay: 60.
const BESIDE: [usize; RELAYS] = [3, 6, 6, 12, 12, 12, 9];
/// So often one of them changes.
const CHANGE_EVERY: Duration = Duration::from_millis(150);
/// What it changes to.
const WISHES: [Option<u8>; 10] =
    [None, None, None, Some(5), Some(5), Some(4), Some(4), Some(3), Some(2), Some(1)];

/// How much is measured.
struct Plan {
    joins: u8,
    crowd: Duration,
    kills: usize,
}

fn main() -> ExitCode {
    run_lab("tree", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let plan = match options.quick {
        true => Plan { joins: 8, crowd: Duration::from_secs(15), kills: 1 },
        false => Plan { joins: 40, crowd: Duration::from_secs(60), kills: 4 },
    };
    let namespaces = scene::namespaces()?;
    let mut nats = Nats::start(&namespaces[0], scene::nats())?;
    let main = (0..MAIN).map(|number| format!("main-{number}"));
    let names: Vec<String> = main.chain((0..plan.joins).map(|number| format!("join-{number}"))).collect();
    let mut tree = Tree::start(&namespaces, names.clone())?;
    let wires = namespaces[1..].iter().map(Wire::watch).collect::<Result<Vec<_>>>()?;
    let mut audience = Audience::new(&namespaces, names)?;
    let mut figures = Map::new();

    joins::measure(&namespaces[0], &mut tree, (&mut audience, &wires), plan.joins, &mut figures)?;
    let source = Source::start(&namespaces[0], 0..MAIN, PER_SECOND)?;
    wait_for_sources(&mut tree)?;
    let receivers = crowd(&mut audience)?;
    let scene = Crowd { receivers: &receivers, source: &source, wires: &wires };
    scene.changes(plan.crowd, &mut figures)?;
    failure::directory(&scene, &mut nats, &mut figures)?;
    failure::parents(&scene, &mut tree, plan.kills, &mut figures)?;
    tree.healthy()?;
    Ok(figures.into())
}

/// Until all streams that all receivers watch are there.
fn wait_for_sources(tree: &mut Tree<'_>) -> Result<()> {
    if let Some(origin) = tree.relay(0) {
        for stream in 0..MAIN {
            origin.wait_up(&format!("main-{stream}"))?;
        }
    }
    Ok(())
}

fn crowd(audience: &mut Audience) -> Result<Vec<Receiver>> {
    let places = BESIDE.iter().enumerate().flat_map(|(relay, count)| (0..*count).map(move |at| (relay, at)));
    places.map(|(relay, at)| audience.join(relay, (at % usize::from(MAIN)) as u8)).collect()
}

/// The receivers, what they watch, and the links in between.
pub(crate) struct Crowd<'a> {
    pub(crate) receivers: &'a [Receiver],
    pub(crate) source: &'a Source,
    pub(crate) wires: &'a [Wire],
}

impl Crowd<'_> {
    /// All take the best level.
    pub(crate) fn all_watch(&self) {
        self.receivers.iter().for_each(|receiver| receiver.want(Some(1)));
    }

    /// No receiver wants anything.
    pub(crate) fn all_leave(&self) {
        self.receivers.iter().for_each(|receiver| receiver.want(None));
    }

    fn changes(&self, time: Duration, figures: &mut Map<String, Value>) -> Result<()> {
        progress(format!("{} receivers change for {time:?}", self.receivers.len()));
        let mut random = fastrand::Rng::with_seed(8);
        let began = Instant::now();
        let bytes_before: u64 = self.wires.iter().map(Wire::bytes).sum();
        let seen_before: usize = self.wires.iter().map(|wire| wire.seen().len()).sum();
        let mut wishes = Vec::new();
        let mut change = |receiver: usize, level: Option<u8>| {
            wishes.push(Interest { at: Instant::now(), receiver, level });
            self.receivers[receiver].want(level);
        };
        for receiver in 0..self.receivers.len() {
            change(receiver, WISHES[random.usize(..WISHES.len())]);
        }
        while began.elapsed() < time {
            std::thread::sleep(CHANGE_EVERY);
            change(random.usize(..self.receivers.len()), WISHES[random.usize(..WISHES.len())]);
        }
        let end = Instant::now();
        let (sent, crossed) = (self.source.sent(), self.crossed());
        let bytes = self.wires.iter().map(Wire::bytes).sum::<u64>() - bytes_before;
        let packets = crossed.iter().map(Vec::len).sum::<usize>() - seen_before;
        let links = rates::of_links(0..MAIN, (self.receivers, &wishes), &sent, &crossed, end);
        let sum = |figure: fn(&Carried) -> u64| links.iter().map(|(_, link)| figure(link)).sum::<u64>();
        let twice: u64 = self.receivers.iter().map(|receiver| received_twice(receiver, began)).sum();
        let failures: usize = self.receivers.iter().map(|receiver| receiver.log().failures.len()).sum();
        let worst = links.iter().map(|(_, link)| link.error_pct()).fold(0.0, f64::max);
        figures.insert("rate_error_pct".into(), json!(rounded(worst)));
        figures.insert("duplicates".into(), json!(sum(|link| link.duplicates) + twice));
        figures.insert("duplicates_at_receivers".into(), json!(twice));
        figures.insert("missing".into(), json!(sum(|link| link.missing)));
        figures.insert("unwanted".into(), json!(sum(|link| link.unwanted)));
        figures.insert("changes".into(), json!(wishes.len()));
        figures.insert("receivers".into(), json!(self.receivers.len()));
        figures.insert("let_down".into(), json!(failures));
        figures
            .insert("bytes_per_packet_on_links".into(), json!(rounded(bytes as f64 / packets.max(1) as f64)));
        let shown = links.iter().map(|(name, link)| ((*name).to_owned(), link.shown()));
        figures.insert("links".into(), Value::Object(shown.collect()));
        Ok(())
    }

    fn crossed(&self) -> Vec<Vec<Crossed>> {
        self.wires.iter().map(Wire::seen).collect()
    }
}

/// Packets that a receiver got more than once since it asked last before them.
fn received_twice(receiver: &Receiver, since: Instant) -> u64 {
    let log = receiver.log();
    let session = |at: &Instant| log.asked.partition_point(|asked| asked <= at);
    let packets = log.packets.iter().filter(|(_, at)| *at >= since);
    let mut all: Vec<_> = packets.map(|(number, at)| (session(at), *number)).collect();
    all.sort_unstable();
    all.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}
