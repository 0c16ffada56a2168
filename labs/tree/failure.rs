//! What receivers notice when NATS or a relay dies.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{progress, rounded};
use outflow_labs::nats::Nats;
use serde_json::{Map, Value, json};

use crate::audience::Receiver;
use crate::scene::{NAMES, Tree};
use crate::{Crowd, received_twice};

/// Until all watch and the tree is at rest.
const REST: Duration = Duration::from_secs(5);
/// Until streams are let go that no receiver wants, and not yet forgotten.
const PRUNED: Duration = Duration::from_secs(2);
/// How long NATS is away, and how long it is looked at then.
const AWAY: Duration = Duration::from_secs(5);
/// A gap is looked for so long before and after a relay dies.
const LOOK: Duration = Duration::from_secs(4);
/// What was sent last may not have come yet.
const TAIL: Duration = Duration::from_millis(500);
/// The relays that are killed in turn.
const KILLED: [usize; 2] = [1, 2];

/// Kills NATS and restarts it while all watch.
pub(crate) fn directory(
    crowd: &Crowd<'_>,
    nats: &mut Nats<'_>,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    progress(format!("NATS is away for {AWAY:?}"));
    crowd.all_watch();
    std::thread::sleep(REST);
    let from = Instant::now();
    let before = failures(crowd);
    nats.kill();
    std::thread::sleep(AWAY);
    nats.restart()?;
    std::thread::sleep(AWAY);
    let lost: usize = crowd.receivers.iter().map(|receiver| lost(crowd, receiver, from)).sum();
    figures.insert("directory_restart_lost".into(), json!(lost));
    figures.insert("directory_restart_let_down".into(), json!(failures(crowd) - before));
    Ok(())
}

/// Kills regions in turn; each comes back before the next goes, and all leave and watch again, so that streams come
/// by the regions again: a relay that found another parent stays there.
pub(crate) fn parents(
    crowd: &Crowd<'_>,
    tree: &mut Tree<'_>,
    kills: usize,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    let (mut gaps, mut usual, mut let_down, mut most_lost, mut repeated) = (Vec::new(), 0.0_f64, 0, 0, 0);
    for relay in KILLED.into_iter().cycle().take(kills) {
        crowd.all_leave();
        std::thread::sleep(PRUNED);
        crowd.all_watch();
        std::thread::sleep(REST.max(LOOK));
        progress(format!("{} is killed", NAMES[relay]));
        // Receivers at the relay itself are gone.
        let others = || crowd.receivers.iter().filter(|receiver| receiver.relay != relay);
        let before: usize = others().map(|receiver| receiver.log().failures.len()).sum();
        let at = Instant::now();
        tree.kill(relay);
        std::thread::sleep(LOOK + TAIL);
        let longest = |from: Instant, to: Instant| others().map(|r| gap(r, from, to)).fold(0.0, f64::max);
        let gap = longest(at - Duration::from_millis(100), at + LOOK);
        progress(format!("the longest gap is {gap:.1} ms"));
        gaps.push(rounded(gap));
        usual = usual.max(longest(at - LOOK / 2, at));
        most_lost = others().map(|receiver| lost(crowd, receiver, at)).fold(most_lost, usize::max);
        // A new parent begins with what it sent last: some of that has come before.
        repeated = others().map(|receiver| received_twice(receiver, at - LOOK)).fold(repeated, u64::max);
        let_down += others().map(|receiver| receiver.log().failures.len()).sum::<usize>() - before;
        tree.restart(relay)?;
    }
    figures.insert("parent_gap_ms".into(), json!(gaps.iter().copied().fold(0.0, f64::max)));
    figures.insert("parent_gaps_ms".into(), json!(gaps));
    figures.insert("usual_gap_ms".into(), json!(rounded(usual)));
    figures.insert("parent_lost_most".into(), json!(most_lost));
    figures.insert("parent_repeated_most".into(), json!(repeated));
    figures.insert("parent_let_down".into(), json!(let_down));
    Ok(())
}

/// How often receivers had to ask again.
fn failures(crowd: &Crowd<'_>) -> usize {
    crowd.receivers.iter().map(|receiver| receiver.log().failures.len()).sum()
}

/// Packets that were sent since then and did not come to a receiver that takes all.
fn lost(crowd: &Crowd<'_>, receiver: &Receiver, from: Instant) -> usize {
    let sent = crowd.source.sent();
    let end = Instant::now() - TAIL;
    let (first, last) = (sent.partition_point(|at| *at < from), sent.partition_point(|at| *at < end));
    let came: BTreeSet<usize> = receiver.log().packets.iter().map(|(number, _)| *number as usize).collect();
    (first..last).filter(|number| !came.contains(number)).count()
}

/// The longest time between two packets, in milliseconds, also if none comes any more.
fn gap(receiver: &Receiver, from: Instant, to: Instant) -> f64 {
    let log = receiver.log();
    let came = log.packets.iter().map(|(_, at)| *at).filter(|at| (from..=to).contains(at));
    let all: Vec<Instant> = std::iter::once(from).chain(came).chain([to]).collect();
    all.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).fold(0.0, f64::max)
}
