//! Rounds of exchanges, and what they amount to.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::figures::{quantile, rounded};
use outflow_multicast::Timing;
use serde_json::{Value, json};

use crate::exchange::Kind;
use crate::scene::Scene;

/// Exchanges of a round. With each router they are over before it asks for the second time, a second after the
/// first: so the timers of none disturb those of another.
pub(crate) const EXCHANGES: usize = 50;
/// Longer than a router with the RFC's times asks which other hosts are members of a group.
pub(crate) const APART: Duration = Duration::from_millis(2500);
/// Hosts that take turns, as a router may refuse what one says too often.
const HOSTS: u8 = 8;
/// Exchanges in a round that may go wrong. Nothing is lost here, but nothing is sent again either.
const UNANSWERED_MAX: usize = EXCHANGES / 10;

/// What a round's exchanges took, in microseconds.
#[derive(Debug)]
pub(crate) struct Round {
    /// Of those that were answered.
    median_us: f64,
    /// Exchanges without an answer; no figure has anything of them.
    unanswered: usize,
    /// Each exchange's: to receive, process, update, reply; of Outflow alone.
    parts_us: Vec<[f64; 4]>,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} µs, {} unanswered", self.median_us, self.unanswered)
    }
}

impl Round {
    pub(crate) fn measure(scene: &mut Scene, kind: Kind) -> Result<Self> {
        let (mut times_us, mut parts_us) = (Vec::new(), Vec::new());
        let groups = || (0..EXCHANGES).map(|number| Ipv4Addr::new(239, 1, 1, number as u8));
        groups().try_for_each(|group| scene.send(group))?;
        // Entries of these groups are made meanwhile.
        std::thread::sleep(Duration::from_millis(50));
        for (number, group) in groups().enumerate() {
            if let Some(asking) = scene.asking() {
                let _earlier = asking.timings()?;
            }
            let host = Ipv4Addr::new(10, 2, 0, 10 + number as u8 % HOSTS);
            let Some(time) = scene.far_end.exchange(kind, host, group)? else { continue };
            times_us.push(micros(time));
            if let Some(asking) = scene.asking() {
                parts_us.push(parts(&asking.timings()?)?);
            }
        }
        let unanswered = EXCHANGES - times_us.len();
        ensure!(unanswered <= UNANSWERED_MAX, "{unanswered} of {EXCHANGES} exchanges were not answered");
        Ok(Round { median_us: quantile(&times_us, 0.5), unanswered, parts_us })
    }
}

/// Of an exchange: the first turn is the join's, with the update that it made; the others are answered.
fn parts(turns: &[Timing]) -> Result<[f64; 4]> {
    let (join, rest) = turns.split_first().context("the querier noted no times")?;
    let first = rest.first().context("the querier noted no answer")?;
    let sum = |of: fn(&Timing) -> Duration| micros(rest.iter().map(of).sum());
    Ok([micros(first.receive), sum(|turn| turn.process), micros(join.update), sum(|turn| turn.reply)])
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// The figures of one kind of exchange: medians of the rounds' medians, and how many exchanges they leave out.
pub(crate) fn figures(rounds: &[(Round, Round)]) -> Value {
    let median =
        |of: &dyn Fn(&(Round, Round)) -> f64| quantile(&rounds.iter().map(of).collect::<Vec<_>>(), 0.5);
    let [outflow, frr] = [median(&|round| round.0.median_us), median(&|round| round.1.median_us)];
    let part = |which: usize| {
        let of_round = |round: &(Round, Round)| {
            quantile(&round.0.parts_us.iter().map(|parts| parts[which]).collect::<Vec<_>>(), 0.5)
        };
        rounded(median(&of_round))
    };
    let unanswered =
        |of: fn(&(Round, Round)) -> &Round| rounds.iter().map(|round| of(round).unanswered).sum::<usize>();
    json!({
        "unanswered": { "outflow": unanswered(|round| &round.0), "c": unanswered(|round| &round.1) },
        "outflow_us": rounded(outflow),
        "c_us": rounded(frr),
        "ratio": rounded(outflow / frr),
        "breakdown_us": { "receive": part(0), "process": part(1), "update": part(2), "reply": part(3) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(median_us: f64, unanswered: usize) -> Round {
        Round { median_us, unanswered, parts_us: vec![[1.0, 2.0, 3.0, 4.0]] }
    }

    #[test]
    fn exchanges_without_an_answer_are_told_beside_the_times() {
        let rounds = [(round(10.0, 0), round(20.0, 1)), (round(12.0, 3), round(22.0, 2))];
        let figures = figures(&rounds);
        assert_eq!(figures["unanswered"], json!({ "outflow": 3, "c": 3 }));
        assert_eq!((&figures["outflow_us"], &figures["c_us"]), (&json!(10.0), &json!(20.0)));
    }
}
