//! Services of the partial-order transport: nets as text and on the wire, and an engine that runs one.

use std::collections::BTreeSet;
use std::sync::Arc;

use outflow_media::Time;
use outflow_petri::net::{Engine, Event, Net, dot, emit, parse};

/// Objects of a net that is run.
const OBJECTS_MAX: usize = 500;

/// What is a net can be printed, sent and drawn; behind a net on the wire, and its length in a byte, come
/// steps.
pub(crate) fn tspn(data: &[u8]) {
    match String::from_utf8_lossy(data).parse::<Net>() {
        Ok(net) => {
            assert!(net.to_string().parse::<Net>() == Ok(net.clone()), "printed and read");
            assert!(parse(&emitted(&net)) == Ok(net.without_names()), "sent and received");
            assert!(dot(&net).ends_with("}\n"));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let Some((length, rest)) = data.split_first() else { return };
    let (net, steps) = rest.split_at(rest.len().min(usize::from(*length)));
    let Ok(net) = parse(net) else { return };
    assert!(parse(&emitted(&net)) == Ok(net.clone()), "sent and received");
    if net.objects() <= OBJECTS_MAX {
        run(Arc::new(net), steps);
    }
}

fn emitted(net: &Net) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(net, &mut bytes);
    bytes
}

/// Three bytes a step: what happens, to which unit from the settled ones on, and after how many milliseconds.
fn run(net: Arc<Net>, steps: &[u8]) {
    let mut engine = Engine::new(net, 1 + steps.len() % 4, Time::ZERO);
    let (mut now, mut over) = (Time::ZERO, BTreeSet::new());
    for step in steps.chunks_exact(3) {
        now = now + core::time::Duration::from_millis(u64::from(step[2]));
        let unit = (engine.settled_below() + u64::from(step[1])).saturating_sub(10);
        match step[0] % 8 {
            0 => _ = engine.handle_absent(now, unit),
            1 => engine.handle_announced(now, unit),
            2 => engine.handle_timeout(now),
            3 => _ = engine.handle_received(now, unit << (step[2] % 56)),
            _ => _ = engine.handle_received(now, unit),
        }
        while let Some(event) = engine.poll() {
            if let Event::Deliver(unit) | Event::Delete(unit) | Event::Lost(unit) = event {
                assert!(over.insert(unit), "unit {unit} is over twice");
            }
        }
        assert!(engine.next_timeout().is_none_or(|due| due > now), "what was due is done");
        assert!(!engine.is_settled(engine.settled_below()) && engine.settled_below() <= engine.window_end());
    }
}
