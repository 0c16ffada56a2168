//! What was measured, and the tables that are made of it.

use std::collections::BTreeMap;

use outflow_labs::core_time::Use;
use outflow_labs::figures::{progress, quantile, rounded};
use serde_json::{Map, Value, json};

use super::State;
use super::hosts::{Place, Way, Work};
use super::lane::Flow;
use super::picture::PICTURES;

/// Image, work, way.
type Key = (usize, Work, Way);

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Microseconds.
    delays: BTreeMap<(Key, State), Vec<f64>>,
    lost: BTreeMap<(Key, State), u64>,
    /// Megabits of images a second, and microseconds of the core an image.
    flows: BTreeMap<Key, Vec<(f64, f64)>>,
}

fn key(place: &Place) -> Key {
    (place.picture.bytes, place.work, place.way)
}

impl Tables {
    pub(crate) fn latency(&mut self, place: &Place, state: State, delay: Option<f64>) {
        match delay {
            Some(delay) => self.delays.entry((key(place), state)).or_default().push(delay),
            None => *self.lost.entry((key(place), state)).or_default() += 1,
        }
    }

    pub(crate) fn throughput(&mut self, place: &Place, flow: &Flow, used: &Use) {
        let images = flow.images as f64;
        let mbps = images * place.picture.bytes as f64 * 8.0 / flow.time.as_secs_f64() / 1e6;
        let core_us = used.busy.as_secs_f64() * 1e6 / images.max(1.0);
        self.flows.entry(key(place)).or_default().push((mbps, core_us));
    }

    pub(crate) fn figures(&self) -> Value {
        let mut figures = Map::new();
        figures.insert(
            "figures_are_of".into(),
            "raw video in RTP (RFC 4175), worked on packet by packet".into(),
        );
        for work in Work::ALL {
            let sizes =
                PICTURES.iter().map(|picture| (picture.bytes.to_string(), self.of(picture.bytes, work)));
            figures.insert(work.name().to_owned(), Value::Object(sizes.collect()));
        }
        let lost: u64 = self.lost.values().sum();
        figures.insert("lost".into(), json!(lost));
        figures.into()
    }

    fn of(&self, bytes: usize, work: Work) -> Value {
        let whole = if work == Work::Gray { Way::HostSmall } else { Way::Host };
        let mut packets = self.compared(bytes, work, Way::Host, Way::Packets);
        let images = self.compared(bytes, work, whole, Way::Images);
        packets.insert("as_images".to_owned(), Value::Object(images));
        Value::Object(packets)
    }

    /// Outflow in one way next to the C program that does the same.
    fn compared(&self, bytes: usize, work: Work, host: Way, outflow: Way) -> Map<String, Value> {
        let (host, outflow) = ((bytes, work, host), (bytes, work, outflow));
        let mut figures = Map::new();
        for state in State::ALL {
            let suffix = state.suffix();
            let delay = |key, q| quantile(self.delays.get(&(key, state)).map_or(&[], Vec::as_slice), q);
            let (of_host, ours) = (delay(host, 0.5), delay(outflow, 0.5));
            let mut put = |name: &str, value: f64| {
                figures.insert(format!("{name}{suffix}"), json!(rounded(value)));
            };
            put("host_us", of_host);
            put("outflow_us", ours);
            put("host_p99_us", delay(host, 0.99));
            put("outflow_p99_us", delay(outflow, 0.99));
            // As in the paper: how much longer it takes otherwise.
            put("gain_pct", 100.0 * (of_host / ours - 1.0));
            let name = work.name();
            progress(format!(
                "{name} {bytes}{suffix} {:?}: host {of_host:.0} us, Outflow {ours:.0} us",
                outflow.2
            ));
        }
        let flows = |key| self.flows.get(&key).map_or(&[][..], Vec::as_slice);
        let median =
            |key, of: fn(&(f64, f64)) -> f64| quantile(&flows(key).iter().map(of).collect::<Vec<_>>(), 0.5);
        let mbps = [host, outflow].map(|key| median(key, |flow| flow.0));
        let core = [host, outflow].map(|key| median(key, |flow| flow.1));
        figures.insert("host_mbps".into(), json!(rounded(mbps[0])));
        figures.insert("outflow_mbps".into(), json!(rounded(mbps[1])));
        figures.insert("throughput_ratio".into(), json!(rounded(mbps[1] / mbps[0])));
        figures.insert("host_core_us".into(), json!(rounded(core[0])));
        figures.insert("outflow_core_us".into(), json!(rounded(core[1])));
        figures.insert("core_ratio".into(), json!(rounded(core[0] / core[1])));
        figures
    }
}
