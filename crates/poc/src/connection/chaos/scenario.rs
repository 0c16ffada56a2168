//! What is sent, and how: made from a seed.

use core::time::Duration;
use std::sync::Arc;

use fastrand::Rng;
use outflow_petri::net::{Net, samples};
use outflow_petri::service::presets::{self, Order};
use outflow_petri::service::{Class, Flow, ServiceClass};

use super::super::testing::chain;
use super::super::{Settings, Worth};

/// Most bytes of a unit.
pub(super) const UNIT_BYTES: u32 = 20_000;

const REPAIRS: [Class; 3] = [Class::Reliable, Class::Partial, Class::Unreliable];

/// Enough for all that is sent.
const AMPLE: u32 = 8 << 20;

pub(super) fn ms(random: &mut Rng, from: u64, to: u64) -> Duration {
    Duration::from_millis(random.u64(from..=to))
}

/// A net of a seed, small, with any rules.
fn net(random: &mut Rng) -> Arc<Net> {
    let rules: Vec<_> = (0..random.usize(1..6)).map(|_| random.usize(..9)).collect();
    let is_patient = random.u8(..3) == 0;
    let rules = if is_patient { rules.iter().map(|rule| 3 + rule % 2).collect() } else { rules };
    let choice = |random: &mut Rng| {
        let latest = if is_patient { 0 } else { random.u64(..6) };
        let (from, to, tokens) = (random.usize(..8), random.usize(..8), random.u32(..3));
        (from, to, tokens, random.u64(..4), latest, random.u8(..5) > 0)
    };
    let choices: Vec<_> = (0..random.usize(6..14)).map(|_| choice(random)).collect();
    samples::live(&rules, &choices, [1, 10, 30, 100][random.usize(..4)])
}

fn preset(random: &mut Rng) -> Flow {
    let latency = ms(random, 20, 400);
    let flow = match random.u8(..6) {
        0 => presets::datagrams(Order::Total, Some(latency), Class::Partial),
        1 => presets::datagrams(Order::Partial(4), None, Class::Reliable),
        2 => presets::audio(Duration::from_millis(20), latency),
        3 => presets::av_sync(Duration::from_millis(40), 3, Duration::from_millis(40), latency),
        4 => presets::j2k_layers(4, Duration::from_millis(40), latency),
        _ => presets::parts(random.u32(1..20)),
    };
    flow.expect("a small one")
}

/// What a unit is worth.
pub(super) fn worth(random: &mut Rng) -> Worth {
    Worth {
        useful_for: (random.u8(..4) == 0).then(|| ms(random, 5, 600)),
        class: (random.u8(..4) == 0).then(|| REPAIRS[random.usize(..3)]),
        rank: random.u8(..3),
    }
}

/// Classes at random over a net.
fn classes(random: &mut Rng, net: Arc<Net>) -> Flow {
    let class = |random: &mut Rng| ServiceClass {
        repair: REPAIRS[random.usize(..3)],
        validity: random.bool().then(|| ms(random, 30, 800)),
    };
    let classes: Vec<_> = (0..random.usize(1..4)).map(|_| class(random)).collect();
    Flow {
        class_of: (0..net.objects()).map(|_| random.u8(..classes.len() as u8)).collect(),
        classes,
        net,
        rounds: random.u32(1..=8),
        buffer_bytes: AMPLE,
        period: None,
        is_dependent: random.u8(..4) == 0,
    }
}

pub(super) fn flow(random: &mut Rng) -> Flow {
    let mut flow = match random.u8(..10) {
        0..=6 => {
            let net = net(random);
            classes(random, net)
        }
        7 | 8 => {
            let latest = random.bool().then(|| ms(random, 5, 400));
            let net = Arc::new(chain(random.u32(1..20), latest));
            classes(random, net)
        }
        _ => preset(random),
    };
    // What may have to be kept until something behind it comes needs room.
    flow.buffer_bytes = AMPLE;
    if flow.net.is_sent_in_order() {
        flow.buffer_bytes = [500, 3000, UNIT_BYTES, 60_000, AMPLE][random.usize(..5)];
    }
    flow.check().expect("a flow");
    flow
}

/// Whether it goes on without nothing that was not given up.
pub(super) fn is_patient(flow: &Flow) -> bool {
    let waits = flow.net.transitions().iter().all(|t| t.rule.driver() == outflow_petri::net::Driver::All);
    waits && !flow.is_dependent && flow.net.places().iter().all(|place| place.interval.latest.is_none())
}

pub(super) fn settings(random: &mut Rng) -> Settings {
    let datagram_bytes_max = [1200, 1452, 1500, 9000][random.usize(..4)];
    let mut settings = Settings { datagram_bytes_max, ..Settings::default() };
    settings.repairs.copies = random.u32(1..5);
    settings.repairs.redundancy_pct = [0, 5, 50][random.usize(..3)];
    settings.marks = random.bool();
    // Clocks that jump, and both that move, may be silent for longer than usual.
    settings.idle = Duration::from_secs(40);
    if random.u8(..4) == 0 {
        settings.congestion.max_bps = random.u64(200_000..3_000_000);
    }
    settings
}
