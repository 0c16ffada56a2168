//! How soon a stream comes that no relay below the origin has, and how soon it is let go.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use outflow_labs::figures::{progress, quantile, rounded};
use outflow_labs::net::Namespace;
use outflow_labs::relay::PATIENCE;
use serde_json::{Map, Value, json};

use crate::MAIN;
use crate::audience::{Audience, Receiver};
use crate::scene::{ABOVE, HOLD, RELAYS, Tree};
use crate::source::{LEVELS, Source};
use crate::wire::Wire;

/// A link by which a receiver gets a stream.
type LinkOf = fn(&Receiver) -> usize;

/// Packets a second of each of these streams.
const PER_SECOND: u32 = 20;
/// The first edge.
const EDGE: usize = 3;
/// Between two joins; coprime to the time between packets.
const APART: Duration = Duration::from_millis(137);
/// When nothing comes any more for so long, nothing will.
const QUIET: Duration = Duration::from_secs(4);
/// From the first key frame on there is something to begin with.
const BEGINNING: Duration = Duration::from_secs(3);

/// Measures joins and leaves.
pub(crate) fn measure(
    origin: &Namespace,
    tree: &mut Tree<'_>,
    (audience, wires): (&mut Audience, &[Wire]),
    joins: u8,
    figures: &mut Map<String, Value>,
) -> Result<()> {
    progress(format!("{joins} joins over the whole depth"));
    let _source = Source::start(origin, MAIN..MAIN + joins, PER_SECOND)?;
    if let Some(relay) = tree.relay(0) {
        (0..joins).try_for_each(|join| relay.wait_up(&format!("join-{join}")).map(drop))?;
    }
    std::thread::sleep(BEGINNING);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut all, mut best, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut receivers = Vec::new();
    for join in 0..joins {
        let receiver = audience.join(EDGE + usize::from(join) % (RELAYS - EDGE), MAIN + join)?;
        let level = if join.is_multiple_of(2) { 1 } else { random.u8(2..=LEVELS) };
        let took = joined(&receiver, level)?;
        all.push(took);
        if level == 1 {
            best.push(took)
        } else {
            others.push(took)
        }
        receivers.push(receiver);
        std::thread::sleep(APART);
    }
    figures.insert("joins".into(), json!(joins));
    figures.insert("join_ms_p50".into(), json!(rounded(quantile(&all, 0.5))));
    figures.insert("join_ms_p95".into(), json!(rounded(quantile(&all, 0.95))));
    figures.insert("join_best_level_ms_p50".into(), json!(rounded(quantile(&best, 0.5))));
    figures.insert("join_other_levels_ms_p50".into(), json!(rounded(quantile(&others, 0.5))));
    let let_down: Vec<String> = receivers.iter().flat_map(|receiver| receiver.log().failures).collect();
    figures.insert("joins_let_down".into(), json!(let_down.len()));
    leave(&receivers, wires, figures)
}

/// Milliseconds from asking to the first packet.
fn joined(receiver: &Receiver, level: u8) -> Result<f64> {
    receiver.want(Some(level));
    let until = Instant::now() + PATIENCE;
    loop {
        let log = receiver.log();
        if let (Some((_, came)), Some(asked)) = (log.packets.first(), log.asked.first()) {
            return Ok(came.duration_since(*asked).as_secs_f64() * 1e3);
        }
        if Instant::now() > until {
            bail!(
                "nothing came of stream {} at relay {}: {:?}",
                receiver.stream,
                receiver.relay,
                log.failures
            );
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All leave; how long packets still come to their edge and its region.
fn leave(receivers: &[Receiver], wires: &[Wire], figures: &mut Map<String, Value>) -> Result<()> {
    progress("all leave");
    let left = Instant::now();
    receivers.iter().for_each(|receiver| receiver.want(None));
    let last = |link: usize, stream: u8| {
        let seen = wires[link - 1].seen();
        seen.iter().rev().find(|one| one.stamp.stream == stream).map(|one| one.at)
    };
    // The link of a receiver's relay, or the one above it.
    let newest = |link: LinkOf| {
        let all = receivers.iter().filter_map(|receiver| last(link(receiver), receiver.stream));
        all.max().map_or(Duration::ZERO, |at| at.saturating_duration_since(left))
    };
    let (edge, region): (LinkOf, LinkOf) = (|receiver| receiver.relay, |receiver| ABOVE[receiver.relay]);
    while left.elapsed() < newest(region).max(newest(edge)) + QUIET {
        if left.elapsed() > PATIENCE {
            bail!("packets of streams that are not wanted still come after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let ms = |time: Duration| rounded(time.as_secs_f64() * 1e3);
    figures.insert("pruned_ms".into(), json!(ms(newest(region))));
    figures.insert("pruned_edge_ms".into(), json!(ms(newest(edge))));
    figures.insert("pruned_timers_ms".into(), json!(ms(2 * HOLD)));
    Ok(())
}
