//! What must be true in the end.

use std::collections::BTreeSet;

use outflow_routing::tree::StreamId;

use super::relays::Relays;

/// What is not as it must be once nothing happens any more: a relay that wants a stream of which a
/// source is in its part has it, every relay asks for the best wanted below, and none is served by
/// two, in vain, or with something else than it asks for.
pub(super) fn unsettled(relays: &Relays) -> Vec<String> {
    let streams: BTreeSet<_> = relays.iter().flat_map(|relay| relay.views.keys()).collect();
    let mut found = Vec::new();
    for stream in streams {
        dark_in_vain(relays, *stream, &mut found);
        ask_for_the_best(relays, *stream, &mut found);
        serve_for_a_reason(relays, *stream, &mut found);
    }
    found
}

fn dark_in_vain(relays: &Relays, stream: StreamId, found: &mut Vec<String>) {
    let parts: BTreeSet<_> = relays.sources(stream).map(|source| relays[source].part).collect();
    let dark = relays.dark(stream).filter(|relay| parts.contains(&relays[*relay].part));
    found.extend(dark.map(|relay| format!("{relay} does not get {stream:?}")));
}

fn ask_for_the_best(relays: &Relays, stream: StreamId, found: &mut Vec<String>) {
    for (number, relay) in relays.iter().enumerate().filter(|(_, relay)| relay.is_alive) {
        let (best, asked) = (relay.best_below(stream), relay.node.demand(stream));
        if relay.view(stream).is_some() && asked != best {
            found.push(format!("{number} asks for {asked:?} of {stream:?}, {best:?} is wanted"));
        }
    }
}

fn serve_for_a_reason(relays: &Relays, stream: StreamId, found: &mut Vec<String>) {
    for (number, relay) in relays.iter().enumerate().filter(|(_, relay)| relay.is_alive) {
        for (child, level, _) in relay.node.children(stream) {
            let child = child.0 as usize;
            let view = relays[child].view(stream);
            let asked = relays[child].node.demand(stream);
            if view.and_then(|view| view.above) != Some(number) || asked != Some(level) {
                found
                    .push(format!("{number} serves {child} {level:?} of {stream:?}, {asked:?} is asked for"));
            }
        }
    }
}
