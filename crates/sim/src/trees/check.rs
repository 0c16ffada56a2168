//! What must be true in the end.

use core::time::Duration;
use std::collections::BTreeSet;

use outflow_routing::tree::StreamId;

use super::media::best_below;
use super::network::Network;

impl Network {
    /// What is not as it must be once nothing happens any more: a relay that wants a stream of which a
    /// source is in its part has it, every relay asks for the best wanted below, and none is served by
    /// two, in vain, or with something else than it asks for.
    pub fn unsettled(&self) -> Vec<String> {
        let streams: BTreeSet<_> = self.relays.iter().flat_map(|relay| relay.views.keys()).collect();
        let mut found = Vec::new();
        for stream in streams {
            self.dark_in_vain(*stream, &mut found);
            self.ask_for_the_best(*stream, &mut found);
            self.serve_for_a_reason(*stream, &mut found);
        }
        found
    }

    fn dark_in_vain(&self, stream: StreamId, found: &mut Vec<String>) {
        let parts: BTreeSet<_> = self.sources(stream).map(|source| self.relays[source].part).collect();
        let mut dark = self.dark_relays(stream);
        dark.retain(|relay| parts.contains(&self.relays[*relay].part));
        found.extend(dark.into_iter().map(|relay| format!("{relay} does not get {stream:?}")));
    }

    fn ask_for_the_best(&self, stream: StreamId, found: &mut Vec<String>) {
        for (number, relay) in self.relays.iter().enumerate().filter(|(_, relay)| relay.is_alive) {
            let Some(view) = relay.view(stream) else { continue };
            let (best, asked) = (best_below(relay, view, stream), relay.node.demand(stream));
            if asked != best {
                found.push(format!("{number} asks for {asked:?} of {stream:?}, {best:?} is wanted"));
            }
        }
    }

    fn serve_for_a_reason(&self, stream: StreamId, found: &mut Vec<String>) {
        for (number, relay) in self.relays.iter().enumerate().filter(|(_, relay)| relay.is_alive) {
            for (child, level, _) in relay.node.children(stream) {
                let child = child.0 as usize;
                let view = self.relays[child].view(stream);
                let asked = self.relays[child].node.demand(stream);
                if view.and_then(|view| view.above) != Some(number) || asked != Some(level) {
                    found.push(format!(
                        "{number} serves {child} {level:?} of {stream:?}, {asked:?} is asked for"
                    ));
                }
            }
        }
    }

    /// Lets the time pass until nothing is [unsettled](Self::unsettled), for so long at the most. What still
    /// is then. A change of parents is followed by holds on the way up, and reviews go on forever: one moment
    /// is enough, which in a large network may never be.
    pub fn settle(&mut self, most: Duration) -> Vec<String> {
        let end = self.now() + most;
        loop {
            let unsettled = self.unsettled();
            if unsettled.is_empty() || self.now() >= end {
                return unsettled;
            }
            self.run(Duration::from_millis(500));
        }
    }
}
