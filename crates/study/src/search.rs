//! The smallest value that is enough.

use outflow_config::Share;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::axis::apply;
use super::error::StudyError;
use super::stats::Interval;
use outflow_sim::network::{NetworkOutcome, TrafficOutcome, quantity};

/// What is sought. Larger values are taken to be no worse.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The value's key.
    pub key: String,
    /// Its unit; a number as it is if there is none.
    pub unit: Option<String>,
    /// Nothing smaller is tried.
    pub from: u64,
    /// Nothing larger is tried.
    pub to: u64,
    /// How close to the smallest one that is enough the one found must be.
    #[serde(default = "within", deserialize_with = "quantity")]
    pub within: Share,
    /// What is enough.
    #[serde(flatten)]
    pub sufficient: Sufficient,
}

/// What is enough (ABD, section 5.1).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sufficient {
    /// The goodput reaches that.
    #[serde(deserialize_with = "quantity")]
    pub goodput: Share,
    /// Not only its mean does, but the lower end of its confidence interval.
    #[serde(default = "yes")]
    pub confident: bool,
    /// And of that, no connection in any run has less than so much; `None` ("off"): whatever it has.
    #[serde(default = "each", deserialize_with = "unless_off")]
    pub each: Option<Share>,
    /// Traffic that it is asked of; all if none is named.
    #[serde(default)]
    pub of: Vec<String>,
}

fn within() -> Share {
    Share(2_000)
}

fn each() -> Option<Share> {
    Some(Share(90_000))
}

fn unless_off<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Share>, D::Error> {
    match String::deserialize(given)?.as_str() {
        "off" => Ok(None),
        share => share.parse().map(Some).map_err(D::Error::custom),
    }
}

fn yes() -> bool {
    true
}

/// The share as a fraction.
fn fraction(share: Share) -> f64 {
    share.0 as f64 / 100_000.0
}

impl Sufficient {
    fn asked<'o>(&'o self, outcome: &'o NetworkOutcome) -> impl Iterator<Item = &'o TrafficOutcome> {
        let is_asked = |name: &str| self.of.is_empty() || self.of.iter().any(|of| of == name);
        outcome.traffic.iter().filter(move |(name, _)| is_asked(name)).map(|(_, traffic)| traffic)
    }

    /// Whether no connection of a run has too little.
    pub(super) fn least_holds(&self, outcome: &NetworkOutcome) -> bool {
        let Some(each) = self.each else { return true };
        let least = fraction(self.goodput) * fraction(each);
        self.asked(outcome).all(|traffic| traffic.goodputs().all(|goodput| goodput >= least))
    }

    /// Whether runs are enough, of which none has a connection with too little.
    pub(super) fn holds(&self, runs: &[NetworkOutcome]) -> bool {
        let goodput = |run: &NetworkOutcome| {
            let all: Vec<f64> = self.asked(run).flat_map(TrafficOutcome::goodputs).collect();
            if all.is_empty() { 1.0 } else { all.iter().sum::<f64>() / all.len() as f64 }
        };
        let interval = Interval::of(&runs.iter().map(goodput).collect::<Vec<_>>());
        let least = if self.confident { interval.mean - interval.ci95 } else { interval.mean };
        least >= fraction(self.goodput)
    }
}

/// Plays a network; `None` if it is not enough.
type Play<'p, R> = dyn Fn(&Table, Option<&Sufficient>) -> Result<Option<R>, StudyError> + 'p;

impl Search {
    /// Puts a value into a network.
    pub(super) fn put(&self, value: u64, network: &mut Table) -> Result<(), StudyError> {
        let written = match &self.unit {
            Some(unit) => Value::String(format!("{value} {unit}")),
            None => Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)),
        };
        apply(network, &self.key, written)
    }

    /// The smallest value that is enough, and what came of it; `None` if the largest is not.
    pub(super) fn find<R>(
        &self,
        network: &Table,
        play: &Play<'_, R>,
    ) -> Result<Option<(u64, R)>, StudyError> {
        let try_it = |value: u64| {
            let mut network = network.clone();
            self.put(value, &mut network)?;
            play(&network, Some(&self.sufficient))
        };
        let Some(runs) = try_it(self.to)? else { return Ok(None) };
        let mut found = (self.to, runs);
        let mut low = self.from.max(1);
        if let Some(runs) = try_it(low)? {
            return Ok(Some((low, runs)));
        }
        while found.0 > low + 1 && found.0 as f64 > low as f64 * (1.0 + fraction(self.within)) {
            let between = (low as f64 * found.0 as f64).sqrt() as u64;
            let between = between.clamp(low + 1, found.0 - 1);
            match try_it(between)? {
                Some(runs) => found = (between, runs),
                None => low = between,
            }
        }
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_connection_has_at_least_may_be_left_open() {
        let read = |each: &str| {
            let text = format!("key = 'size'\nfrom = 1\nto = 9\ngoodput = '50 %'\n{each}");
            toml::from_str::<Search>(&text).map(|search| search.sufficient.each)
        };
        assert_eq!(read(""), Ok(Some(Share(90_000))));
        assert_eq!(read("each = '20 %'"), Ok(Some(Share(20_000))));
        assert_eq!(read("each = 'off'"), Ok(None));
        assert!(read("each = 'none'").is_err());
    }

    #[test]
    fn it_comes_as_close_as_it_says_with_few_tries() {
        let text = "key = 'size'\nunit = 'B'\nfrom = 10\nto = 1000000\ngoodput = '90 %'\nwithin = '1 %'";
        let search: Search = toml::from_str(text).expect("valid");
        let tries = std::cell::Cell::new(0);
        let enough = |least: u64| {
            let tries = &tries;
            move |network: &Table, _: Option<&Sufficient>| {
                tries.set(tries.get() + 1);
                let size = network["size"].as_str().and_then(|size| size.strip_suffix(" B")?.parse().ok());
                Ok(size.filter(|size: &u64| *size >= least))
            }
        };
        let (value, result) =
            search.find(&Table::new(), &enough(4_321)).expect("fine").expect("there is one");
        assert!((4_321..4_365).contains(&value) && result == value, "{value}");
        assert!(tries.get() <= 14, "{}", tries.get());
        assert_eq!(search.find(&Table::new(), &enough(2_000_000)).expect("fine"), None);
        assert_eq!(search.find(&Table::new(), &enough(3)).expect("fine"), Some((10, 10)));
    }
}
