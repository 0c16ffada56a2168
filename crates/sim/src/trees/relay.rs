//! A relay, dead or alive, and what it has of each stream.

use std::collections::BTreeMap;

use outflow_media::Time;
use outflow_routing::tree::{Contact, Node, RelayId, Settings, StreamId};
use outflow_routing::{Level, demand};

use super::count::Counted;

/// A relay.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) node: Node,
    pub(super) contact: Contact,
    /// Which of its lives this is.
    pub(super) life: u64,
    pub(super) is_alive: bool,
    /// Which part of a partition it is in. The directory is in part 0.
    pub(super) part: u8,
    /// When it is woken.
    pub(super) timer: Option<Time>,
    pub(super) views: BTreeMap<StreamId, View>,
    /// The lives of others that were heard, but for the first.
    pub(super) heard: BTreeMap<usize, u64>,
    pub(super) counted: Counted,
}

impl Relay {
    pub(super) fn new(contact: Contact, children_max: usize) -> Self {
        Relay {
            node: node(contact, 1, children_max),
            contact,
            life: 1,
            is_alive: true,
            part: 0,
            timer: None,
            views: BTreeMap::new(),
            heard: BTreeMap::new(),
            counted: Counted::default(),
        }
    }

    /// Starts again as one that knows nothing.
    pub(super) fn restart(&mut self, children_max: usize) {
        self.is_alive = true;
        self.timer = None;
        self.heard.clear();
        self.views.values_mut().for_each(|view| view.held_since = None);
        self.node = node(self.contact, self.life, children_max);
    }

    pub(super) fn view(&self, stream: StreamId) -> Option<&View> {
        self.views.get(&stream)
    }

    /// Whether it takes a stream from the other, or serves it.
    pub(super) fn is_beside(&self, other: RelayId) -> bool {
        self.views.keys().any(|stream| {
            let takes = self.node.parent(*stream).is_some_and(|(parent, _)| parent == other);
            takes || self.node.children(*stream).any(|(child, ..)| child == other)
        })
    }

    /// The best level of a stream that is wanted of it.
    pub(super) fn best_below(&self, stream: StreamId) -> Option<Level> {
        let receivers = self.view(stream).into_iter().flat_map(|view| &view.receivers);
        let here = receivers.filter(|(_, count)| **count > 0).map(|(level, _)| *level);
        here.chain(self.node.children(stream).map(|(_, level, _)| level)).min()
    }
}

fn node(me: Contact, incarnation: u64, children_max: usize) -> Node {
    let seed = me.relay.0 << 32 | incarnation;
    Node::new(Settings { me, incarnation, seed, children_max, demand: demand::Settings::default() })
}

/// What a relay has of a stream.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The preference of its source, if it has one.
    pub(super) source: Option<u8>,
    /// How many receivers want which level.
    pub(super) receivers: BTreeMap<Level, u64>,
    /// The relay from which it flows here.
    pub(super) above: Option<usize>,
    /// The relays to which it flows from here.
    pub(super) below: Vec<usize>,
    /// The relays that send it here, whether it is taken from them or not.
    pub(super) senders: Vec<usize>,
    /// Since when there are two of them.
    pub(super) twice_since: Option<Time>,
    /// Whether it is joined to a source.
    pub(super) is_lit: bool,
    /// Since when its receivers do not have it.
    pub(super) dark_since: Option<Time>,
    /// Whether they had it before.
    pub(super) had_it: bool,
    /// Since when more is asked for than is wanted.
    pub(super) held_since: Option<Time>,
}

impl View {
    pub(super) fn is_wanted(&self) -> bool {
        self.receivers.values().any(|count| *count > 0)
    }
}
