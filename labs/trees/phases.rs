//! One size from its first receiver on: all join, rest, a crowd, deaths, a partition, chaos.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use outflow_labs::figures::{progress, quantile, rounded};
use outflow_media::Time;
use outflow_sim::trees::{Dark, Network, Traffic};
use serde_json::{Value, json};

use super::plan::{CROWD, Plan};

/// What is not there by then does not come.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a relay that died is away.
const AWAY: Duration = Duration::from_secs(5);
/// How long a partition lasts.
const PARTED: Duration = Duration::from_secs(30);
/// Of a thousand messages this many are lost in chaos.
const LOSS: u32 = 20;

/// What came of a size.
pub(crate) struct Played {
    pub(crate) plan: Plan,
    /// What is printed.
    pub(crate) figures: Value,
    /// Gaps after parents' deaths, in milliseconds.
    pub(crate) gaps_ms: Vec<f64>,
}

struct Play {
    plan: Plan,
    network: Network,
}

/// Plays it all.
pub(crate) fn play(plan: Plan) -> Played {
    let began = Instant::now();
    let mut play = Play { network: plan.network(), plan };
    play.network.run(Duration::from_secs(1));
    let receivers = plan.gather(&mut play.network);
    let mut figures = json!({ "relays": plan.relays, "streams": plan.streams, "receivers": receivers });
    let mut add = |name: &str, value: Value| {
        progress(format!("{} relays, {} streams, {name}: {value}", plan.relays, plan.streams));
        figures[name] = value;
    };
    add("join", play.join());
    add("rest", play.rest());
    add("shape", play.shape());
    add("crowd", play.crowd());
    let (deaths, gaps_ms) = play.deaths();
    add("deaths", deaths);
    add("tenth_dies", play.tenth_dies());
    add("partition", play.partition());
    add("source_restarts", play.source_restarts());
    add("chaos", play.chaos());
    let twice = play.network.take_twice();
    let (faults, told) = play.network.faults();
    add("faults", json!({ "count": faults, "first": told }));
    add("twice_ms_in_chaos", spread(&twice.into_iter().map(ms).collect::<Vec<_>>()));
    let wall_s = began.elapsed().as_secs_f64();
    let virtual_s = play.network.now().since(Time::ZERO).as_secs_f64();
    add(
        "cost",
        json!({
            "virtual_s": rounded(virtual_s), "wall_s": rounded(wall_s), "events": play.network.events(),
            "resident_mb": resident_mb(),
        }),
    );
    Played { plan, figures, gaps_ms }
}

impl Play {
    fn mean(&self, count: u64) -> f64 {
        count as f64 / self.plan.relays as f64
    }

    /// How long it takes until all have what they want, or nothing if that never is.
    fn until_lit(&mut self, left: usize) -> Value {
        self.until_lit_within(left, PATIENCE)
    }

    fn until_lit_within(&mut self, left: usize, most: Duration) -> Value {
        let start = self.network.now();
        let is_lit = self.network.run_until(start + most, |network| network.dark() <= left);
        if is_lit { json!(rounded(self.network.now().since(start).as_secs_f64())) } else { Value::Null }
    }

    fn join(&mut self) -> Value {
        let converged_s = self.until_lit(0);
        let said = self.network.traffic();
        json!({
            "converged_s": converged_s,
            "join_ms": spread(&lasted(&self.network.take_dark(), false)),
            "messages_each": rounded(self.mean(said.messages)),
            "messages_most_in_second": self.network.take_most_in_second(),
        })
    }

    /// Nothing happens.
    fn rest(&mut self) -> Value {
        self.network.run(Duration::from_secs(60));
        self.network.take_most_in_second();
        self.network.take_twice();
        let figures = self.said_during_phase(|_| ());
        let twice = self.network.take_twice();
        let copies_s = twice.iter().map(Duration::as_secs_f64).fold(0.0, |sum, one| sum + one);
        let relay_s = self.plan.phase.as_secs_f64() * (self.plan.relays * self.plan.wanted) as f64;
        let mut figures = figures;
        figures["gaps"] = json!(self.network.take_dark().len());
        figures["twice_ms"] = spread(&twice.into_iter().map(ms).collect::<Vec<_>>());
        figures["twice_pct_of_time"] = json!(rounded(copies_s / relay_s * 100.0));
        figures
    }

    /// What is said in a phase of which each second begins with something.
    fn said_during_phase(&mut self, each_second: impl FnMut(&mut Play)) -> Value {
        let of_each = |network: &Network| -> Vec<Traffic> {
            (0..network.len()).map(|relay| network.traffic_of(relay)).collect()
        };
        let (before, before_each) = (self.network.traffic(), of_each(&self.network));
        self.seconds(self.plan.phase.as_secs(), each_second);
        let (said, said_each) = (self.network.traffic().since(before), of_each(&self.network));
        let a_second = |count: u64| rounded(count as f64 / self.plan.phase.as_secs_f64());
        let each = said_each.iter().zip(before_each).map(|(after, before)| after.since(before));
        let each: Vec<_> = each.collect();
        let most = |of: fn(&Traffic) -> u64| a_second(each.iter().map(of).max().unwrap_or(0));
        let mean = |count: u64| rounded(self.mean(count) / self.plan.phase.as_secs_f64());
        json!({
            "messages_s_mean": mean(said.messages),
            "messages_s_most": most(|traffic| traffic.messages),
            "batches_s_mean": mean(said.batches),
            "gathered_s_mean": mean(said.gathered),
            "gathered_s_most": most(|traffic| traffic.gathered),
            "messages_most_in_second": self.network.take_most_in_second(),
            "directory_s": a_second(said.directory),
            "parents_taken_s": a_second(said.taken),
        })
    }

    fn seconds(&mut self, count: u64, mut each: impl FnMut(&mut Play)) {
        for _ in 0..count {
            each(self);
            self.network.run(Duration::from_secs(1));
        }
    }

    fn shape(&self) -> Value {
        let streams: Vec<_> = self.plan.sources().map(|(_, stream)| stream).collect();
        let depths = streams.iter().flat_map(|stream| self.network.depths(*stream).into_iter().flatten());
        let depths: Vec<_> = depths.map(|depth| depth as f64).collect();
        let ways: Vec<_> = streams.iter().flat_map(|stream| self.network.ways(*stream)).collect();
        let stretch = |(way, straight): &(Duration, Duration)| way.as_secs_f64() / straight.as_secs_f64();
        let far = ways.iter().filter(|(_, straight)| *straight > Duration::from_millis(5));
        let entries: Vec<_> =
            (0..self.network.len()).map(|relay| self.network.entries(relay) as f64).collect();
        json!({
            "depth": spread(&depths),
            "way_ms": spread(&ways.iter().map(|(way, _)| ms(*way)).collect::<Vec<_>>()),
            "stretch": spread(&far.map(stretch).collect::<Vec<_>>()),
            "entries": spread(&entries),
        })
    }

    /// Receivers come, go and change their levels, from here on.
    fn crowd(&mut self) -> Value {
        self.network.set_crowd(Some(CROWD));
        let mut figures = self.said_during_phase(|_| ());
        let dark = self.network.take_dark();
        figures["join_ms"] = spread(&lasted(&dark, false));
        figures["gap_ms"] = spread(&lasted(&dark, true));
        figures
    }

    fn victim(&mut self) -> Option<usize> {
        let streams: Vec<_> = self.plan.sources().collect();
        let has_source = |relay: usize| streams.iter().any(|(source, _)| *source == relay);
        let network = &self.network;
        let has_children =
            |relay: usize| streams.iter().any(|(_, stream)| network.has_children(relay, *stream));
        let is_parent =
            |relay: &usize| network.is_alive(*relay) && !has_source(*relay) && has_children(*relay);
        let parents: Vec<_> = (0..network.len()).filter(is_parent).collect();
        (!parents.is_empty()).then(|| parents[self.network.random().usize(..parents.len())])
    }

    /// Each second a parent dies, and is back five seconds later, while the directory is away.
    fn deaths(&mut self) -> (Value, Vec<f64>) {
        self.network.set_crowd(None);
        self.network.set_directory(false);
        let mut away = Vec::new();
        let mut deaths = 0;
        let mut figures = self.said_during_phase(|play| {
            deaths += u64::from(play.die_one(&mut away));
        });
        self.return_all(&mut away);
        self.network.run(AWAY);
        let gaps = lasted(&self.network.take_dark(), true);
        self.network.set_directory(true);
        figures["deaths"] = json!(deaths);
        figures["gaps"] = json!(gaps.len());
        figures["gap_ms"] = spread(&gaps);
        let late = gaps.iter().filter(|gap| **gap > 1000.0).count();
        figures["gaps_over_second_pct"] = json!(rounded(late as f64 * 100.0 / gaps.len().max(1) as f64));
        figures["restarted_and_dark"] = json!(self.network.dark());
        (figures, gaps)
    }

    fn die_one(&mut self, away: &mut Vec<(Time, usize)>) -> bool {
        let now = self.network.now();
        while let Some((_, relay)) = away.first().copied().filter(|(until, _)| *until <= now) {
            away.remove(0);
            self.network.restart(relay);
        }
        // In a small network, one at a time.
        let is_enough = away.len() * 10 >= self.plan.relays;
        let victim = if is_enough { None } else { self.victim() };
        if let Some(victim) = victim {
            self.network.kill(victim);
            away.push((now + AWAY, victim));
        }
        victim.is_some()
    }

    fn return_all(&mut self, away: &mut Vec<(Time, usize)>) {
        for (_, relay) in away.drain(..) {
            self.network.restart(relay);
        }
    }

    /// A tenth of all relays die at once.
    fn tenth_dies(&mut self) -> Value {
        self.network.run(Duration::from_secs(10));
        self.network.take_dark();
        self.network.take_most_in_second();
        let sources: BTreeSet<_> = self.plan.sources().map(|(relay, _)| relay).collect();
        let mut relays: Vec<_> = (0..self.plan.relays).filter(|relay| !sources.contains(relay)).collect();
        self.network.random().shuffle(&mut relays);
        relays.truncate((self.plan.relays / 10).min(relays.len()));
        relays.iter().for_each(|relay| self.network.kill(*relay));
        let converged_s = self.until_lit(0);
        let gaps = lasted(&self.network.take_dark(), true);
        let most = self.network.take_most_in_second();
        relays.iter().for_each(|relay| self.network.restart(*relay));
        self.network.run(Duration::from_secs(10));
        json!({
            "died": relays.len(), "all_served_after_s": converged_s, "gap_ms": spread(&gaps),
            "messages_most_in_second": most,
        })
    }

    /// Half of all relays are cut off for half a minute, each with the sources that are there.
    fn partition(&mut self) -> Value {
        let half: Vec<_> = (0..self.plan.relays).map(|_| self.network.random().u8(..2)).collect();
        // The first source is where the directory is.
        let part = |relay: usize| if relay == 0 { 0 } else { half[relay] };
        let without = self.plan.sources().map(|(source, stream)| {
            let wanting = self.network.wanting(stream).into_iter();
            wanting.filter(|relay| part(*relay) != part(source)).count()
        });
        let without = without.sum();
        self.network.take_most_in_second();
        let start = self.network.now();
        self.network.divide(part);
        let served_s = self.until_lit_within(without, PARTED);
        let rest = PARTED.saturating_sub(self.network.now().since(start));
        self.network.run(rest);
        let left = self.network.dark();
        self.network.divide(|_| 0);
        let healed_s = self.until_lit(0);
        json!({
            "without_source": without, "dark_after_30_s": left, "others_served_after_s": served_s,
            "healed_s": healed_s, "messages_most_in_second": self.network.take_most_in_second(),
        })
    }

    /// The relays that have sources die and are back a second later.
    fn source_restarts(&mut self) -> Value {
        self.network.run(Duration::from_secs(30));
        let sources: BTreeSet<_> = self.plan.sources().map(|(relay, _)| relay).collect();
        sources.iter().for_each(|relay| self.network.kill(*relay));
        self.network.run(Duration::from_secs(1));
        sources.iter().for_each(|relay| self.network.restart(*relay));
        let converged_s = self.until_lit(0);
        json!({
            "all_served_after_s": converged_s,
            "messages_most_in_second": self.network.take_most_in_second(),
        })
    }

    /// Everything at once, and then nothing: in the end all is as it has to be.
    fn chaos(&mut self) -> Value {
        self.network.set_crowd(Some(CROWD));
        self.network.set_loss(LOSS);
        self.network.take_twice();
        let (mut away, mut second) = (Vec::new(), 0);
        self.seconds(self.plan.phase.as_secs(), |play| {
            play.die_one(&mut away);
            second += 1;
            if second % 10 == 0 {
                let share = play.network.random().u32(..300);
                let seed = play.network.random().fork();
                let parts: Vec<_> = core::iter::repeat_with({
                    let mut random = seed;
                    move || u8::from(random.u32(..1000) < share)
                })
                .take(play.plan.relays)
                .collect();
                play.network.divide(|relay| parts[relay]);
            }
            if second % 7 == 0 {
                let is_there = play.network.random().bool();
                play.network.set_directory(is_there);
            }
        });
        let dark = self.network.dark();
        self.network.set_crowd(None);
        self.network.set_loss(0);
        self.network.set_directory(true);
        self.network.divide(|_| 0);
        self.return_all(&mut away);
        let converged_s = self.until_lit(0);
        self.network.run(Duration::from_secs(60));
        let unsettled = self.unsettled_throughout(Duration::from_secs(30));
        json!({
            "dark_before_calm": dark, "all_served_after_s": converged_s, "unsettled": unsettled.len(),
            "first": unsettled.iter().take(5).collect::<Vec<_>>(),
        })
    }

    /// What is not as it must be, and stays so. In large networks some relay is always on the way to a better
    /// parent, which is followed by holds.
    fn unsettled_throughout(&mut self, most: Duration) -> Vec<String> {
        let mut throughout = self.network.unsettled();
        let end = self.network.now() + most;
        while !throughout.is_empty() && self.network.now() < end {
            self.network.run(Duration::from_secs(1));
            let still: BTreeSet<_> = self.network.unsettled().into_iter().collect();
            throughout.retain(|what| still.contains(what));
        }
        throughout
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Times without a stream, in milliseconds: gaps, or what joining took.
fn lasted(dark: &[Dark], is_gap: bool) -> Vec<f64> {
    dark.iter().filter(|dark| dark.is_gap == is_gap).map(|dark| ms(dark.lasted)).collect()
}

fn spread(values: &[f64]) -> Value {
    if values.is_empty() {
        return json!({ "count": 0 });
    }
    let at = |part| rounded(quantile(values, part));
    let mean = rounded(values.iter().sum::<f64>() / values.len() as f64);
    json!({ "count": values.len(), "mean": mean, "p50": at(0.5), "p99": at(0.99), "most": at(1.0) })
}

/// Memory of this process.
fn resident_mb() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    json!(kb.map(|kb| rounded(kb / 1024.0)))
}
