//! Does every receiver get its level, and what does the filter cost? 1000 receivers, spread over all 33 levels
//! of one stream of wavelet video (352x288, 15 frames a second), by system calls and by the kernel's fan-out.
//!
//! **Reception.** The bytes of each receiver, RTP headers included, next to what the relay's rate table says
//! of its level: `rate_error_pct` is that of the receiver that is furthest off. One more receiver of each
//! level keeps its packets: `undecodable` are frames of it that did not come, have a gap or other layers than
//! its level says, or that OpenJPEG does not decode strictly.
//!
//! **Changes.** Yet another receiver asks for better and worse levels in turn (RTCP, `OFLV`), while all the
//! others receive: `level_change_ms` is the median from the request to the first packet of the first frame at
//! the new level, less the time until the source began its next frame. For a better level,
//! `new_layer_ms` is from when the source sent the first packet of a layer that was not taken before (it
//! spreads a frame over the time until the next) to when that came.
//!
//! **Cost.** Core time of the relay a delivered packet, softirqs included, with the filter and without it. With
//! it, frames are whole, and each of 1000 receivers takes a level. Without it, frames are cut by the source, to
//! each level as often, and 1000 receivers take all that comes. In as many frames as there are levels, a
//! receiver of the one stream gets its prefix of each frame, and one of the other each prefix once: all
//! together as many packets, of the same sizes, in the same order (`delivered_*`, `bytes_*`; a thousand
//! receivers are not quite a multiple of the levels). What differs is what the filter is for: more packets come
//! in, of which each goes to fewer receivers. So what a packet that comes in costs (reading it, waking up for
//! it, an order) is shared by fewer, and that counts as the filter's cost. Both streams are of one relay, sent
//! one after the other again and again, and neighbours are compared: `filter_cost_*_pct` are medians over the
//! pairs in which neither the host nor other programs took much of the core, and `lost` is what did not come
//! in those.

mod change;
mod cost;
mod reception;
mod scene;
mod source;
mod video;
mod witness;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::bench::Bench;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use serde_json::{Map, Value, json};

use change::Took;
use cost::{Cost, Measured};
use reception::{Found, Reception};
use scene::{SINKS, WAYS, Way};
use video::{FPS, LEVELS, Video};
use witness::Decoder;

/// Shares of the time for which the host, and other programs, may have the relay's core in a pair that counts.
const STOLEN_MAX: f64 = 0.01;
const STRANGERS_MAX: f64 = 0.1;

/// How much is measured.
struct Plan {
    ways: &'static [Way],
    /// Of reception.
    time: Duration,
    /// Pairs that count, and those that are tried for them.
    pairs: usize,
    tries: usize,
}

fn main() -> ExitCode {
    run_lab("levels", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let plan = match options.quick {
        // There is no time for the third way.
        true => Plan { ways: &WAYS[..2], time: Duration::from_millis(6500), pairs: 3, tries: 3 },
        false => Plan { ways: &WAYS, time: Duration::from_secs(40), pairs: 12, tries: 24 },
    };
    let bench = Bench::new()?;
    let video = Video::of_clip()?;
    let mut results = Results::default();
    for way in plan.ways {
        let mut reception = Reception::open(&bench, &video, *way)?;
        let found = reception.measure(plan.time, &mut results.decoder)?;
        progress(format!("{}: {}", way.name, Results::of_found(&found)));
        results.found.push((way.name, found));
    }
    for way in plan.ways {
        let pairs = pairs(&bench, &video, *way, &plan)?;
        results.costs.push((way.name, pairs));
    }
    results.figures()
}

/// Measures with the filter and without it, one after the other.
fn pairs(bench: &Bench, video: &Video, way: Way, plan: &Plan) -> Result<Vec<Pair>> {
    let mut cost = Cost::open(bench, video, way)?;
    let mut pairs: Vec<Pair> = Vec::new();
    while pairs.len() < plan.tries && pairs.iter().filter(|pair| pair.is_sound()).count() < plan.pairs {
        // Neither always comes first.
        let with_first = pairs.len().is_multiple_of(2);
        let (first, second) = (cost.measure(with_first)?, cost.measure(!with_first)?);
        let pair = match with_first {
            true => Pair { with: first, without: second },
            false => Pair { with: second, without: first },
        };
        progress(format!("{}, filtered: {}", way.name, pair.with));
        progress(format!("{}, all:      {}", way.name, pair.without));
        pairs.push(pair);
    }
    Ok(pairs)
}

/// The same with the filter and without it.
#[derive(Debug, Clone, Copy)]
struct Pair {
    with: Measured,
    without: Measured,
}

impl Pair {
    /// The relay had its core.
    fn is_sound(&self) -> bool {
        let both = [self.with, self.without];
        both.iter().all(|one| one.stolen < STOLEN_MAX && one.outcome.strangers < STRANGERS_MAX)
    }
}

/// All that was measured, by way.
#[derive(Default)]
struct Results {
    decoder: Decoder,
    found: Vec<(&'static str, Found)>,
    costs: Vec<(&'static str, Vec<Pair>)>,
}

impl Results {
    fn figures(&self) -> Result<Value> {
        let worst =
            |figure: fn(&Found) -> f64| self.found.iter().map(|(_, found)| figure(found)).fold(0.0, f64::max);
        let mut figures = Map::new();
        figures.insert("rate_error_pct".into(), json!(rounded(100.0 * worst(|found| found.rate_error))));
        let undecodable: usize = self.found.iter().map(|(_, found)| found.undecodable).sum();
        figures.insert("undecodable".into(), json!(undecodable));
        for (way, pairs) in &self.costs {
            let of_way = costs(pairs).with_context(|| format!("by \"{way}\""))?;
            let name = if *way == "tc" { "kernel" } else { way };
            figures.insert(format!("filter_cost_{name}_pct"), of_way["filter_cost_pct"].clone());
            figures.insert(format!("cost_{name}"), of_way);
        }
        figures.insert("level_change_ms".into(), json!(rounded(worst(|found| later(&found.changes).0))));
        let reception = self.found.iter().map(|(way, found)| ((*way).to_owned(), Self::of_found(found)));
        figures.insert("reception".into(), Value::Object(reception.collect()));
        figures.insert("receivers".into(), json!(SINKS));
        figures.insert("levels".into(), json!(LEVELS));
        figures.insert("fps".into(), json!(FPS));
        Ok(figures.into())
    }

    /// What was found by one way.
    fn of_found(found: &Found) -> Value {
        let (median, p90) = later(&found.changes);
        let values = |figure: &dyn Fn(&Took) -> Option<f64>| {
            found.changes.iter().filter_map(figure).collect::<Vec<_>>()
        };
        let median_of = |figure: &dyn Fn(&Took) -> Option<f64>| rounded(quantile(&values(figure), 0.5));
        json!({
            "rate_error_pct": rounded(100.0 * found.rate_error),
            "frames": found.frames,
            "undecodable": found.undecodable,
            "kbps_best": (found.table[0] / 1e3).round(),
            "kbps_base": (found.table[LEVELS - 1] / 1e3).round(),
            "changes": found.changes.len(),
            "level_change_ms": rounded(median),
            "level_change_p90_ms": rounded(p90),
            "level_change_whole_ms": median_of(&|took| Some(took.whole_ms)),
            "level_change_up_ms": median_of(&|took| took.is_up.then(|| took.later_ms())),
            "level_change_down_ms": median_of(&|took| (!took.is_up).then(|| took.later_ms())),
            "new_layer_ms": median_of(&|took| took.new_layer_ms),
        })
    }
}

impl Took {
    /// How much longer than until the next frame.
    fn later_ms(&self) -> f64 {
        self.whole_ms - self.next_frame_ms
    }
}

/// How much longer than until the next frame changes took: the median, and the 90th percentile.
fn later(changes: &[Took]) -> (f64, f64) {
    let all: Vec<f64> = changes.iter().map(Took::later_ms).collect();
    (quantile(&all, 0.5), quantile(&all, 0.9))
}

/// What the filter costs by one way: of the sound pairs, medians.
fn costs(pairs: &[Pair]) -> Result<Value> {
    let sound: Vec<&Pair> = pairs.iter().filter(|pair| pair.is_sound()).collect();
    let median =
        |figure: fn(&Pair) -> f64| quantile(&sound.iter().map(|pair| figure(pair)).collect::<Vec<_>>(), 0.5);
    ensure!(!sound.is_empty(), "no pair was undisturbed: the host or other programs took the core");
    Ok(json!({
        "filter_cost_pct": rounded(100.0 * median(|pair| pair.with.outcome.ns / pair.without.outcome.ns - 1.0)),
        "ns_filtered": rounded(median(|pair| pair.with.outcome.ns)),
        "ns_all": rounded(median(|pair| pair.without.outcome.ns)),
        "delivered_filtered": median(|pair| pair.with.outcome.delivered as f64),
        "delivered_all": median(|pair| pair.without.outcome.delivered as f64),
        "bytes_filtered": median(|pair| pair.with.bytes as f64),
        "bytes_all": median(|pair| pair.without.bytes as f64),
        "lost": sound.iter().map(|pair| pair.with.outcome.lost + pair.without.outcome.lost).sum::<u64>(),
        "pairs": sound.len(),
        "disturbed": pairs.len() - sound.len(),
    }))
}
