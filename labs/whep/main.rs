//! What does a packet cost that is encrypted for each viewer? 1000 viewers by WebRTC of a 2.5 Mbit/s stream of H.264,
//! next to the plain C relay, which encrypts nothing, to a relay over pion, and to Janus: core time a delivered packet
//! (the relay's core, softirqs included), of frames of nine packets and, 100 a second, of one; what it takes until a
//! viewer has come (the request, ICE, DTLS); memory; how many viewers one core sustains; and what a browser shows.
//!
//! Each viewer makes a whole handshake, with a key of its own. What comes to it is counted by a BPF program, and of the
//! first eight opened, and compared with what was sent. Viewers say nothing while packets are counted, and they do not
//! offer `transport-cc`. Payloads are no longer than 1200 bytes, so none is sent as two. pion and Janus get fewer viewers
//! (a thousand are more than a core can do there): a packet costs the same or less.
//!
//! pion needs Go (golang-go, or from go.dev), which fetches its modules; Janus is Debian's package `janus`. What is not
//! there is in `not_measured`, and so are figures that a `--quick` run has no time for.

mod browser;
mod capacity;
mod figures;
mod seal;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::bench::{Bench, Contender, Door, Ends, Joining, Outcome, Setup, janus, pion};
use outflow_labs::drain::Hook;
use outflow_labs::figures::{Options, progress, run_lab};
use outflow_labs::media::Pulses;
use outflow_labs::programs::missing;
use serde_json::Value;
use tempfile::TempDir;

const RATE_BPS: f64 = 2.5e6;
/// With its RTP header.
const PAYLOAD: u16 = 1157;
/// Thirty frames a second then.
const PACKETS: u16 = 9;
/// Frames of one packet, a second: a core can do them one by one.
const SINGLE_PER_SECOND: f64 = 100.0;
const VIEWERS: usize = 1000;
/// What pion and Janus surely do.
const VIEWERS_OF_OTHERS: usize = 150;
/// A full run ends after this many rounds, a quick one when no further round fits in its time.
const ROUNDS: usize = 3;
const QUICK: Duration = Duration::from_secs(50);

/// What is measured: a relay with viewers of one kind of stream.
struct Variant {
    name: &'static str,
    contender: Contender,
    ends: Ends,
    viewers: usize,
    packets: u16,
}

/// What was measured of each variant, and why the last that was not.
#[derive(Default)]
struct Results {
    outcomes: BTreeMap<&'static str, Vec<Outcome>>,
    joinings: BTreeMap<&'static str, Vec<Joining>>,
    failed: BTreeMap<&'static str, String>,
}

fn main() -> ExitCode {
    run_lab("whep", lab)
}

fn lab(options: &Options) -> Result<Value> {
    let mut results = Results::default();
    let folder = tempfile::tempdir()?;
    let variants = variants(&folder, &mut results);
    let seal = seal::measure();
    let (began, bench) = (Instant::now(), Bench::new()?);
    let time = Duration::from_millis(if options.quick { 1000 } else { 4000 });
    for round in 1..=ROUNDS {
        let round_began = Instant::now();
        for variant in &variants {
            results.measure(&bench, variant, time);
        }
        progress(format!("round {round} of {ROUNDS} took {:?}", round_began.elapsed()));
        if options.quick && began.elapsed() + round_began.elapsed() > QUICK {
            break;
        }
    }
    let mut apart = Apart { seal, sustained: BTreeMap::new(), shown: Err(NO_TIME.into()) };
    if !options.quick {
        for variant in variants.iter().filter(|variant| capacity::IS_OF.contains(&variant.name)) {
            apart.sustained.insert(variant.name, results.capacity(&bench, variant));
        }
        apart.shown = browser::measure(&bench).map_err(|error| in_a_line(&error));
    }
    results.figures(&apart)
}

/// Characters of a reason.
const SHOWN: usize = 300;
/// Why a quick run lacks something.
const NO_TIME: &str = "no time for it in a quick run";

/// What is measured beside the rounds, or why not.
struct Apart {
    seal: seal::Seal,
    sustained: BTreeMap<&'static str, Result<usize, String>>,
    shown: Result<browser::Shown, String>,
}

fn in_a_line(error: &anyhow::Error) -> String {
    let words = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(SHOWN).collect()
}

/// All that can be measured here; of what cannot, `results` gets the reason.
fn variants(folder: &TempDir, results: &mut Results) -> Vec<Variant> {
    let udp = Ends::Udp(Hook::Tc);
    let plain = |name, packets| {
        let contender = Contender::Baseline;
        Variant { name, contender, ends: udp, viewers: VIEWERS, packets }
    };
    let own = |name, packets| {
        let (contender, ends) = (Contender::outflow("", ""), Ends::WebRtc(Door::Whep));
        Variant { name, contender, ends, viewers: VIEWERS, packets }
    };
    let mut all = vec![
        plain("sendto", PACKETS),
        own("outflow", PACKETS),
        plain("sendto_one_packet", 1),
        own("outflow_one_packet", 1),
    ];
    let mut other = |name, door, program: Result<_>| match program {
        Ok(program) => all.push(Variant {
            name,
            contender: Contender::Other(program),
            ends: Ends::WebRtc(door),
            viewers: VIEWERS_OF_OTHERS,
            packets: PACKETS,
        }),
        Err(why) => {
            let why = format!("{why:#}");
            progress(format!("{name}: {why}"));
            results.failed.insert(name, why);
        }
    };
    other("pion", Door::Whep12, pion());
    let is_here = missing("janus").map_or(Ok(()), |why| Err(anyhow::Error::msg(why)));
    other("janus", Door::Janus, is_here.and_then(|()| janus(folder.path())));
    all
}

impl Variant {
    fn setup(&self) -> Setup {
        let pulses = match self.packets {
            1 => Pulses { payload: PAYLOAD, packets: 1, per_second: SINGLE_PER_SECOND },
            packets => Pulses::of_rate(RATE_BPS, PAYLOAD, packets),
        };
        Setup { contender: self.contender.clone(), way: None, ends: self.ends, sinks: self.viewers, pulses }
    }
}

impl Results {
    fn measure(&mut self, bench: &Bench, variant: &Variant, time: Duration) {
        let name = variant.name;
        match self.measured(bench, variant, time) {
            Ok(outcome) => {
                progress(format!("{name:<20}{outcome}"));
                self.outcomes.entry(name).or_default().push(outcome);
            }
            Err(error) => self.fails(name, &error),
        }
    }

    fn measured(&mut self, bench: &Bench, variant: &Variant, time: Duration) -> Result<Outcome> {
        let mut stage = bench.open(&variant.setup())?;
        let outcome = stage.measure(time)?;
        if let Some(joining) = stage.joining() {
            let each = joining.core.div_f64(joining.took.len().max(1) as f64);
            let viewers = joining.took.len().max(1) as u64;
            let memory = outcome.memory.saturating_sub(joining.memory) / viewers;
            progress(format!("{:<20}a viewer: {each:?} to come, {memory} bytes", ""));
            self.joinings.entry(variant.name).or_default().push(joining.clone());
        }
        Ok(outcome)
    }

    fn fails(&mut self, name: &'static str, error: &anyhow::Error) {
        let why = in_a_line(error);
        progress(format!("{name:<20}not measured: {why}"));
        self.failed.insert(name, why);
    }
}
