//! The engine of a net, told of units.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use outflow_labs::figures::{quantile, rounded};
use outflow_media::Time;
use outflow_petri::net::{Engine, Net, mpeg_shape, of_gop};
use outflow_petri::service::presets::gop;

/// From a picture to the next.
const PICTURE: Duration = Duration::from_millis(40);
/// One unit in this many is lost.
const LOST: u64 = 20;

/// Nanoseconds a packet: medians.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) whole_ns: f64,
    pub(crate) lossy_ns: f64,
}

/// By a group of `pictures` pictures of 15 slices, one place each.
pub(crate) fn measure(pictures: u32, quick: bool) -> Result<Costs> {
    let net = Arc::new(of_gop(&gop(pictures, 4), &mpeg_shape())?);
    let (rounds, packets) = if quick { (1, 20_000) } else { (15, 1_000_000) };
    let (mut whole, mut lossy) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        whole.push(run(&net, packets, |_| false));
        lossy.push(run(&net, packets, |unit| unit % LOST == 7));
    }
    let of = |values: &[f64]| rounded(quantile(values, 0.5));
    Ok(Costs { whole_ns: of(&whole), lossy_ns: of(&lossy) })
}

fn run(net: &Arc<Net>, packets: u64, is_lost: fn(u64) -> bool) -> f64 {
    let mut engine = Engine::new(Arc::clone(net), 4, Time::ZERO);
    let start = Instant::now();
    for unit in 0..packets {
        // As it would be called: its events are read, and what is due is done.
        let now = Time::from_millis(1) + PICTURE / 15 * unit as u32;
        if engine.next_timeout().is_some_and(|due| due <= now) {
            engine.handle_timeout(now);
        }
        if !is_lost(unit) {
            engine.handle_received(now, unit);
        }
        while engine.poll().is_some() {}
    }
    start.elapsed().as_nanos() as f64 / packets as f64
}
