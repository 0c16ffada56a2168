//! What is printed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use outflow_labs::bench::{Joining, Outcome};
use outflow_labs::figures::{quantile, rounded};
use serde_json::{Map, Value, json};

use crate::{Apart, NO_TIME, Results, VIEWERS, VIEWERS_OF_OTHERS};

impl Results {
    /// The median over the rounds.
    pub(crate) fn median(&self, name: &str, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.outcomes.get(name)?.iter().map(figure).collect();
        Some(quantile(&values, 0.5))
    }

    fn ns(&self, name: &str) -> Option<f64> {
        self.median(name, |outcome| outcome.ns)
    }

    /// What a packet of one costs next to one of another.
    fn ratio(&self, name: &str, to: &str) -> Option<f64> {
        Some(self.ns(name)? / self.ns(to)?)
    }

    /// The median over the rounds of how viewers came.
    fn of_joining(&self, name: &str, figure: impl Fn(&Joining) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.joinings.get(name)?.iter().map(figure).collect();
        Some(quantile(&values, 0.5))
    }

    /// Offers that a whole core answers in a second, handshakes included.
    fn offers(&self, name: &str) -> Option<f64> {
        self.of_joining(name, |joining| joining.took.len() as f64 / joining.core.as_secs_f64())
    }

    /// Bytes of memory that a viewer takes while it is sent to, those that the kernel holds included.
    fn bytes(&self, name: &str) -> Option<f64> {
        let (outcomes, joinings) = (self.outcomes.get(name)?, self.joinings.get(name)?);
        let of = |(outcome, joining): (&Outcome, &Joining)| {
            (outcome.memory as f64 - joining.memory as f64) / joining.took.len().max(1) as f64
        };
        let values: Vec<f64> = outcomes.iter().zip(joinings).map(of).collect();
        Some(quantile(&values, 0.5))
    }

    /// The same before anything was sent.
    fn bytes_at_first(&self, name: &str) -> Option<f64> {
        self.of_joining(name, |joining| {
            (joining.memory_then as f64 - joining.memory as f64) / joining.took.len().max(1) as f64
        })
    }

    fn profile(&self, name: &str) -> Option<String> {
        let joining = self.joinings.get(name)?.last()?;
        joining.profile.map(|profile| format!("{profile:?}"))
    }

    pub(crate) fn figures(&self, apart: &Apart) -> Result<Value> {
        for needed in ["sendto", "outflow"] {
            ensure!(self.outcomes.contains_key(needed), "{needed}: {:?}", self.failed.get(needed));
        }
        let viewers = |name| Some(*apart.sustained.get(name)?.as_ref().ok()? as f64);
        let by_pion = |own: Option<f64>, theirs: Option<f64>| Some(rounded(own? / theirs?));
        let figures = json!({
            "ns": self.ns("outflow").map(rounded),
            "ns_one_packet": self.ns("outflow_one_packet").map(rounded),
            "sendto_ratio": self.ratio("outflow", "sendto").map(rounded),
            "sendto_ratio_one_packet": self.ratio("outflow_one_packet", "sendto_one_packet").map(rounded),
            "pion_ratio": self.ratio("outflow", "pion").map(thousandths),
            "janus_ratio": self.ratio("outflow", "janus").map(thousandths),
            "viewers_core": viewers("outflow"),
            "viewers_over_pion": by_pion(viewers("outflow"), viewers("pion")),
            "bytes_per_viewer": self.bytes("outflow").map(f64::round),
            "offers_over_pion": by_pion(self.offers("outflow"), self.offers("pion")),
            "seal_ns": rounded(apart.seal.short_ns),
            "join_ms_p95": apart.shown.as_ref().ok().map(|shown| rounded(shown.join_p95)),
            "glass_ms_p50": apart.shown.as_ref().ok().map(|shown| rounded(shown.glass_p50)),
        });
        let not_measured = self.not_measured(&figures, apart);
        let mut all = self.more(apart);
        all.insert("not_measured".into(), json!(not_measured));
        all.insert("whep".into(), figures);
        Ok(Value::Object(all))
    }

    /// Beside the figures by name: what each contender did.
    fn more(&self, apart: &Apart) -> Map<String, Value> {
        let names: Vec<&str> = self.outcomes.keys().copied().collect();
        let of_each = |figure: &dyn Fn(&str) -> Value| -> Value {
            let all = names.iter().map(|name| ((*name).to_owned(), figure(name)));
            all.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        };
        let sum = |figure: fn(&Outcome) -> u64| self.outcomes.values().flatten().map(figure).sum::<u64>();
        let all = json!({
            "ns_of": of_each(&|name| json!(self.ns(name).map(rounded))),
            "offers_of": of_each(&|name| json!(self.offers(name).map(f64::round))),
            "bytes_of": of_each(&|name| json!(self.bytes(name).map(f64::round))),
            "bytes_at_first_of": of_each(&|name| json!(self.bytes_at_first(name).map(f64::round))),
            "sealed_by": of_each(&|name| json!(self.profile(name))),
            "seal_aes256_ns": rounded(apart.seal.long_ns),
            "viewers_core_of": apart.sustained.iter().map(|(name, found)| {
                ((*name).to_owned(), json!(found.as_ref().ok()))
            }).collect::<Map<_, _>>(),
            "viewers": VIEWERS,
            "viewers_of_others": VIEWERS_OF_OTHERS,
            "lost": sum(|outcome| outcome.lost),
            "disturbed": sum(|outcome| u64::from(outcome.disturbed)),
        });
        let Value::Object(all) = all else { return Map::new() };
        all
    }

    /// Of each figure that there is not: why.
    fn not_measured(&self, figures: &Value, apart: &Apart) -> BTreeMap<String, String> {
        let failed = |name: &str| self.failed.get(name).cloned();
        let capacity = |name: &str| match apart.sustained.get(name) {
            None => failed(name).or_else(|| Some(NO_TIME.to_owned())),
            Some(found) => found.as_ref().err().cloned(),
        };
        let why = |figure: &str| match figure {
            "pion_ratio" | "offers_over_pion" => failed("pion"),
            "janus_ratio" => failed("janus"),
            "ns_one_packet" => failed("outflow_one_packet"),
            "sendto_ratio_one_packet" => failed("outflow_one_packet").or_else(|| failed("sendto_one_packet")),
            "viewers_core" => capacity("outflow"),
            "viewers_over_pion" => capacity("outflow").or_else(|| capacity("pion")),
            "join_ms_p95" | "glass_ms_p50" => apart.shown.as_ref().err().cloned(),
            _ => None,
        };
        let lacking = figures.as_object().into_iter().flatten().filter(|(_, value)| value.is_null());
        lacking.map(|(name, _)| (name.clone(), why(name).unwrap_or_else(|| "unknown".to_owned()))).collect()
    }
}

/// A figure far below one.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
