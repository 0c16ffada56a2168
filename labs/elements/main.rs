//! What does an element cost? A packet (RTP, 1400 bytes, its bytes shared) through a graph of one
//! empty element and of ten in a chain, in batches of 1 and of 32, against calling the function
//! directly; the same of plug-ins in WebAssembly that look at tags alone and that read all bytes; and
//! how long a plug-in takes to make an image gray, next to the relay itself. Where `CLICK` names the
//! user-level program of Click, the same of its empty elements. One core; medians of rounds in turn.

mod chain;
mod click;
mod wasm;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{Options, progress, quantile, rounded, run_anywhere};
use outflow_labs::process::keep_to_cpu;
use serde_json::{Map, Value, json};

use chain::{Alone, Chain};

/// The core that works.
const CPU: usize = 1;
/// Elements of the short and of the long chain.
const SHORT: usize = 1;
const LONG: usize = 10;
const BATCHES: [usize; 2] = [1, 32];
/// The same of Click.
const CLICK: [(&str, usize); 2] = [("click_1", SHORT), ("click_10", LONG)];
/// The element that does nothing.
const EMPTY: &str = "pass";

fn main() -> ExitCode {
    run_anywhere("elements", lab)
}

/// Something whose time is measured: its name, and what does it once and says how many packets that
/// were.
type Subject = (String, Box<dyn FnMut() -> usize>);

fn lab(options: &Options) -> Result<Value> {
    let (rounds, time) =
        if options.quick { (9, Duration::from_millis(100)) } else { (31, Duration::from_millis(400)) };
    keep_to_cpu(CPU)?;
    let mut subjects = subjects()?;
    let click = click::click();
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 1..=rounds {
        for (name, once) in &mut subjects {
            times.entry(name.clone()).or_default().push(nanos_a_packet(time, once));
        }
        for (name, elements) in CLICK {
            if let Some(click) = &click {
                let nanos = click::nanos_a_packet(click, elements)?;
                times.entry(name.to_owned()).or_default().push(nanos);
            }
        }
        progress(format!("round {round} of {rounds}"));
    }
    for (name, times) in &times {
        let (median, worst) = (quantile(times, 0.5), quantile(times, 0.9));
        progress(format!("{name:<24}{median:>9.1} ns a packet, nine tenths below {worst:.1}"));
    }
    Ok(Value::Object(figures(&times)))
}

fn subjects() -> Result<Vec<Subject>> {
    let mut subjects: Vec<Subject> = Vec::new();
    for batch in BATCHES {
        let mut alone = Alone::new(EMPTY, batch)?;
        subjects.push((format!("direct_{batch}"), Box::new(move || alone.once())));
        for elements in [SHORT, LONG] {
            let mut chain = Chain::new(EMPTY, elements, batch)?;
            subjects.push((format!("chain_{elements}_{batch}"), Box::new(move || chain.once())));
        }
        let (mut tags, mut payload) = (wasm::tags(batch)?, wasm::payload(batch)?);
        subjects.push((format!("wasm_{batch}"), Box::new(move || tags.once())));
        subjects.push((format!("wasm_payload_{batch}"), Box::new(move || payload.once())));
    }
    subjects.push(("gray_native".to_owned(), Box::new(wasm::gray_native()?)));
    subjects.push(("gray_wasm".to_owned(), Box::new(wasm::gray_wasm()?)));
    Ok(subjects)
}

/// What a packet takes, on average over so long.
fn nanos_a_packet(time: Duration, once: &mut dyn FnMut() -> usize) -> f64 {
    let (began, mut packets, mut at_once) = (Instant::now(), 0, 1);
    while began.elapsed() < time {
        packets += (0..at_once).map(|_| once()).sum::<usize>();
        // So that looking at the clock costs nothing, however short it is.
        at_once = if began.elapsed() < time / 100 { 2 * at_once } else { at_once };
    }
    began.elapsed().as_nanos() as f64 / packets.max(1) as f64
}

fn figures(times: &BTreeMap<String, Vec<f64>>) -> Map<String, Value> {
    // By rounds: what disturbs one subject mostly disturbs its neighbour, too.
    let hop = |[short, long]: [&Vec<f64>; 2]| {
        let each = short.iter().zip(long).map(|(short, long)| (long - short) / (LONG - SHORT) as f64);
        quantile(&each.collect::<Vec<_>>(), 0.5)
    };
    let chains = |batch: usize| [SHORT, LONG].map(|elements| &times[&format!("chain_{elements}_{batch}")]);
    let median = |name: &str| quantile(&times[name], 0.5);
    let mut figures = Map::new();
    let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), json!(rounded(value)));
    put("native_hop_ns", hop(chains(32)));
    put("native_hop_ns_1", hop(chains(1)));
    put("direct_ns", median("direct_32"));
    put("direct_ns_1", median("direct_1"));
    put("one_element_ns", median("chain_1_32"));
    put("ten_elements_ns", median("chain_10_32"));
    for batch in BATCHES {
        put(&format!("wasm_hop_ns_{batch}"), median(&format!("wasm_{batch}")));
        put(&format!("wasm_payload_ns_{batch}"), median(&format!("wasm_payload_{batch}")));
    }
    if let [Some(short), Some(long)] = CLICK.map(|(name, _)| times.get(name)) {
        put("click_hop_ns", hop([short, long]));
        put("click_one_element_ns", median("click_1"));
        put("click_ten_elements_ns", median("click_10"));
    }
    put("gray_wasm_over_native", median("gray_wasm") / median("gray_native"));
    figures
}
