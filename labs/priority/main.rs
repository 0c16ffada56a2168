//! Does a high class notice that the relay is overloaded? A stream of the high class to 100
//! receivers, and one of the low class to 1000 that comes twice as fast as the relay's core can send
//! it on: the high class is to lose nothing, and its delay to stay what it is without the others.
//!
//! A period in which other programs used the relay's core is had again, up to three times in all, and the least
//! disturbed one counts. The others are `periods_left_out`; `left_out` has what was lost and late in them.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::bench::{OTHER_CPU, RELAY_CPU};
use outflow_labs::core_time::CoreTime;
use outflow_labs::drain::{Drain, Hook};
use outflow_labs::figures::{Options, progress, quantile, rounded, run_lab};
use outflow_labs::media::{Pulse, Pulses, rtp};
use outflow_labs::net::{Paths, RELAY_IN, sink};
use outflow_labs::process::{be_preferred, keep_to_cpu};
use outflow_labs::relay::{PATIENCE, Relay, listen};
use serde_json::{Value, json};

const HIGH_SINKS: usize = 100;
const LOW_SINKS: usize = 1000;
const PAYLOAD: u16 = 1400;
const HIGH_BPS: f64 = 2e6;
/// Where the search for what the core can do begins: a third of it if nothing were gathered.
const LOW_BPS: f64 = 1e6;
/// The core is full when this share or less of what should come does come.
const FULL: f64 = 0.9;
/// How much more than the core can send is then asked of it.
const OVERLOAD: f64 = 2.0;
const PORTS: [(&str, u16); 2] = [("high", 5004), ("low", 5014)];
/// Where others have more of the relay's core than that, a period is had again: a task that runs for
/// 3 ms of a second is seen in a 99th percentile.
const STRANGERS_MAX: f64 = 0.003;
const TRIES: usize = 3;
/// What has not come for so long has been lost.
const QUIET: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    run_lab("priority", lab)
}

/// The relay at work with its sources and receivers.
struct Stage<'p> {
    relay: Relay<'p>,
    drain: Drain,
    core: CoreTime,
    high: Pulse,
    low: Pulse,
}

/// What came of a period.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Period {
    high_lost: u64,
    high_p50_us: f64,
    high_p99_us: f64,
    low_lost: u64,
    low_sent: u64,
    load: f64,
    strangers: f64,
}

/// Periods of one kind.
#[derive(Debug, Default)]
struct Periods {
    counted: Vec<Period>,
    left_out: Vec<Period>,
}

fn lab(options: &Options) -> Result<Value> {
    keep_to_cpu(OTHER_CPU)?;
    be_preferred();
    let paths = Paths::new()?.with_sinks()?;
    paths.relay_receives_on(RELAY_CPU)?;
    let mut stage = Stage::open(&paths)?;
    // Short periods, and many: what else the machine does disturbs some of them, and not the medians.
    let (rounds, time) = if options.quick { (7, 1000) } else { (40, 1500) };
    let time = Duration::from_millis(time);

    let (full_bps, full) = stage.full()?;
    progress(format!("the core is full at {:.1} Mbit/s to {LOW_SINKS} receivers", full_bps / 1e6));
    let mut periods = [Periods::default(), Periods::default()];
    for round in 1..=rounds {
        for (low_bps, periods) in [None, Some(OVERLOAD * full_bps)].into_iter().zip(&mut periods) {
            let period = stage.undisturbed(time, low_bps, periods)?;
            let state = if low_bps.is_some() { "overload" } else { "unloaded" };
            progress(format!("round {round} of {rounds}, {state}: {period}"));
        }
    }
    stage.relay.healthy()?;
    figures(&periods, &full, full_bps)
}

fn figures([calm, overload]: &[Periods; 2], full: &Periods, full_bps: f64) -> Result<Value> {
    let left_out: usize = [calm, overload, full].iter().map(|periods| periods.left_out.len()).sum();
    let left_out_shown = json!({
        "unloaded": lost_and_late(&calm.left_out),
        "overload": lost_and_late(&overload.left_out),
        "search": lost_and_late(&full.left_out),
    });
    let [calm, overload] = [&calm.counted, &overload.counted];
    let median = |periods: &[Period], figure: fn(&Period) -> f64| {
        quantile(&periods.iter().map(figure).collect::<Vec<_>>(), 0.5)
    };
    let sum = |figure: fn(&Period) -> u64| calm.iter().chain(overload).map(figure).sum::<u64>();
    let [calm_p99, overload_p99] = [calm, overload].map(|periods| median(periods, |p| p.high_p99_us));
    let (low_lost, low_sent) = (sum(|p| p.low_lost), sum(|p| p.low_sent));
    ensure!(low_lost > 0, "the low class lost nothing: there was no overload");
    Ok(json!({
        "high_lost": sum(|p| p.high_lost),
        "high_p99_ratio": rounded(overload_p99 / calm_p99),
        "low_lost": low_lost,
        "low_lost_share": rounded(low_lost as f64 / low_sent as f64),
        "high_p99_unloaded_us": rounded(calm_p99),
        "high_p99_overload_us": rounded(overload_p99),
        "high_p50_unloaded_us": rounded(median(calm, |p| p.high_p50_us)),
        "high_p50_overload_us": rounded(median(overload, |p| p.high_p50_us)),
        "overload_mbps": rounded(OVERLOAD * full_bps / 1e6),
        "full_mbps": rounded(full_bps / 1e6),
        "high_sinks": HIGH_SINKS,
        "low_sinks": LOW_SINKS,
        "periods": calm.len() + overload.len(),
        "periods_left_out": left_out,
        "left_out": left_out_shown,
    }))
}

/// What was lost in periods, and the longest delay that a figure would have had of one.
fn lost_and_late(periods: &[Period]) -> Value {
    let longest = periods.iter().map(|period| period.high_p99_us).reduce(f64::max);
    json!({
        "periods": periods.len(),
        "high_lost": periods.iter().map(|period| period.high_lost).sum::<u64>(),
        "low_lost": periods.iter().map(|period| period.low_lost).sum::<u64>(),
        "high_p99_us_max": longest.map(rounded),
    })
}

impl Periods {
    /// Of some tries the one that was disturbed least counts, and the others are left out.
    fn add(&mut self, mut tries: Vec<Period>) -> Result<Period> {
        let least = (0..tries.len()).min_by(|a, b| tries[*a].strangers.total_cmp(&tries[*b].strangers));
        let counted = tries.swap_remove(least.context("a period was tried")?);
        self.counted.push(counted);
        self.left_out.append(&mut tries);
        Ok(counted)
    }
}

impl<'p> Stage<'p> {
    /// Starts everything, and waits until every receiver has been reached.
    fn open(paths: &'p Paths) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut text = listen() + LIMITS;
        for (name, port) in PORTS {
            let sdp = folder.path().join(format!("{name}.sdp"));
            std::fs::write(&sdp, rtp::description(port))?;
            text += &format!("[streams.{name}]\nsource = \"rtp://0.0.0.0:{port}\"\n");
            text += &format!("sdp = \"{}\"\npriority = \"{name}\"\n", sdp.display());
            // The low class is to stay, whatever it loses, and no receiver is to be told of silence.
            text += "hopeless_after = \"1 h\"\nsource_timeout = \"1 h\"\n";
        }
        for number in 0..HIGH_SINKS + LOW_SINKS {
            let [(high, _), (low, _)] = PORTS;
            let stream = if number < HIGH_SINKS { high } else { low };
            text += &format!("[[sinks]]\nstream=\"{stream}\"\nto=\"rtp://{}\"\n", sink(number));
        }
        let sinks = (HIGH_SINKS + LOW_SINKS, HIGH_SINKS);
        let drain = Drain::attach_timing(&paths.players, "eth0", Hook::Tc, sinks, Some(PAYLOAD))?;
        let mut relay =
            Relay::start_as(&paths.relay, &text, |program| program.on_cpu(RELAY_CPU).preferred())?;
        let core = CoreTime::watch(RELAY_CPU)?;
        core.measure(&[relay.process().pid()])?;
        let [high, low] = [HIGH_BPS, LOW_BPS].map(|bps| Pulses::of_rate(bps, PAYLOAD, 1));
        let [(_, high_port), (_, low_port)] = PORTS;
        let high = Pulse::new(&paths.source, (RELAY_IN, high_port).into(), high)?;
        let low = Pulse::new(&paths.source, (RELAY_IN, low_port).into(), low)?;
        let mut stage = Self { relay, drain, core, high, low };
        let until = Instant::now() + PATIENCE;
        while stage.drain.read()?.unreached() > 0 {
            ensure!(Instant::now() < until, "not all are reached: {}", stage.relay.process().account());
            stage.period(Duration::from_millis(500), Some(LOW_BPS))?;
        }
        Ok(stage)
    }

    /// The rate of the low stream at which its core is full, in bits a second: what it sends when it
    /// is asked for more than it can. (It can the more the more it is asked for, because it sends
    /// more packets at a time; hence no rate below tells.)
    fn full(&mut self) -> Result<(f64, Periods)> {
        let (mut asked, mut periods) = (LOW_BPS, Periods::default());
        while asked < 2e9 {
            let period = self.undisturbed(Duration::from_secs(1), Some(asked), &mut periods)?;
            let share = 1.0 - period.low_lost as f64 / period.low_sent as f64;
            progress(format!("{:.0} Mbit/s: {period}", asked / 1e6));
            if share < FULL {
                return Ok((share * asked, periods));
            }
            asked *= 2.0;
        }
        bail!("the core is never full")
    }

    /// A period in which others hardly used the relay's core; the least disturbed one if there is none.
    fn undisturbed(&mut self, time: Duration, low_bps: Option<f64>, periods: &mut Periods) -> Result<Period> {
        let mut tries = Vec::new();
        while tries.len() < TRIES && tries.last().is_none_or(|last: &Period| last.strangers >= STRANGERS_MAX)
        {
            tries.push(self.period(time, low_bps)?);
        }
        periods.add(tries)
    }

    /// Has the sources send for so long, the low one at this rate if at all, and waits until all has
    /// come that comes.
    fn period(&mut self, time: Duration, low_bps: Option<f64>) -> Result<Period> {
        let before = self.drain.read()?;
        let reading = self.core.read()?;
        let (high, low) = (&mut self.high, &mut self.low);
        let (high_sent, (low_sent, used)) = std::thread::scope(|scope| {
            let high = scope.spawn(|| high.run(time));
            let low = low_bps.map(|bps| {
                low.hurry(bps / 8.0 / f64::from(PAYLOAD));
                low.run(time)
            });
            let high = high.join().expect("it does not panic");
            (high, (low.unwrap_or(0), self.core.since(&reading)))
        });
        let used = used?;
        let arrived = self.drain.quiet(QUIET)?.since(&before);
        ensure!(arrived.strange == 0, "{} packets of another size or to none", arrived.strange);
        let (high, low) = arrived.counts.split_at(HIGH_SINKS);
        let lost = |counts: &[u64], sent: u64| counts.iter().map(|count| sent.saturating_sub(*count)).sum();
        let share = |part: Duration| part.as_secs_f64() / used.wall.as_secs_f64();
        Ok(Period {
            high_lost: lost(high, high_sent),
            high_p50_us: arrived.delay_us(0.5),
            high_p99_us: arrived.delay_us(0.99),
            low_lost: lost(low, low_sent),
            low_sent: low_sent * LOW_SINKS as u64,
            load: share(used.busy),
            strangers: share(used.strangers),
        })
    }
}

impl std::fmt::Display for Period {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let low_lost = 100.0 * self.low_lost as f64 / self.low_sent.max(1) as f64;
        let (load, strangers) = (100.0 * self.load, 100.0 * self.strangers);
        write!(f, "high: {} lost, p99 {:.0} us; ", self.high_lost, self.high_p99_us)?;
        write!(f, "low: {low_lost:.0} % lost; core {load:.0} % ({strangers:.0} % others)")
    }
}

/// Datagrams go by the relay's own system calls, as without privileges: there a core is full soonest.
const LIMITS: &str = "[limits]\nworkers = 1\n[fanout]\nudp = \"user\"\n[log]\nlevel = \"warn\"\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn period(strangers: f64, high_lost: u64, high_p99_us: f64) -> Period {
        Period { strangers, high_lost, high_p99_us, low_lost: 5, low_sent: 10, ..Period::default() }
    }

    #[test]
    fn periods_that_do_not_count_are_told_with_what_was_lost_in_them() -> Result<()> {
        let mut periods = [Periods::default(), Periods::default()];
        let [calm, overload] = &mut periods;
        assert_eq!(calm.add(vec![period(0.0, 0, 100.0)])?, period(0.0, 0, 100.0));
        let tries = vec![period(0.4, 7, 900.0), period(0.1, 0, 200.0), period(0.2, 1, 1000.0)];
        assert_eq!(overload.add(tries)?, period(0.1, 0, 200.0));
        let figures = figures(&periods, &Periods::default(), 1e6)?;
        assert_eq!((&figures["high_lost"], &figures["high_p99_ratio"]), (&json!(0), &json!(2.0)));
        assert_eq!((&figures["periods"], &figures["periods_left_out"]), (&json!(2), &json!(2)));
        let left_out = json!({ "periods": 2, "high_lost": 8, "low_lost": 10, "high_p99_us_max": 1000.0 });
        assert_eq!(figures["left_out"]["overload"], left_out);
        Ok(())
    }
}
