//! What is shown.
use outflow_front_groups::{Groups, number};
use outflow_routing::tree::{RelayId, StreamId};

use super::super::group::Shown;
use super::super::view::{PeerView, RelayView, StreamView};
use super::Driver;
use crate::settings::{Tree, TreeTransport};

impl Driver {
    /// This relay's part of the tree, and others that it knows.
    pub(super) fn show(&self) -> (RelayView, Vec<PeerView>) {
        let mut streams: Vec<_> = self.sources.iter().chain(self.feeds.keys()).collect();
        streams.sort();
        let contact = self.me.contact;
        let view = RelayView {
            name: self.me.name.clone(),
            relay: contact.relay.to_string(),
            address: contact.address.to_string(),
            location: [contact.location.x_km, contact.location.y_km],
            version: env!("CARGO_PKG_VERSION").to_owned(),
            connected: self.links.up.values().map(|link| link.peer.name.clone()).collect(),
            directory: self.directory.as_ref().map(|directory| directory.away().is_none()),
            streams: streams.into_iter().map(|stream| self.stream(stream)).collect(),
            unreachable: None,
        };
        let peers = self.links.of_relay.keys().map(|relay| self.peer(*relay)).collect();
        (view, peers)
    }

    fn stream(&self, stream: &str) -> StreamView {
        let id = StreamId(number(stream));
        let state = self.control.state();
        let measured = state.stream(stream);
        let feed = self.feeds.get(stream);
        let receivers = measured.map_or(0, |state| state.receivers.len() as u64);
        // A group is a receiver, and stands for all its members.
        let (groups, members) = self.control.shared::<Groups>().of(stream);
        let path = self.node.path(self.control.now(), id);
        let child = |(relay, level, _): (RelayId, outflow_routing::Level, u32)| PeerView {
            level: Some(level.number()),
            ..self.peer(relay)
        };
        StreamView {
            stream: stream.to_owned(),
            is_source: self.sources.contains(stream),
            depth: path.map(|path| path.depth),
            parent: self.node.parent(id).map(|(relay, _)| self.peer(relay)),
            level: self.node.demand(id).map(|level| level.number()),
            by: feed.map(|feed| self.way(&feed.shown).to_owned()),
            fallbacks: feed.map_or(0, |feed| feed.shown.fallbacks()),
            bps: measured.map_or(0, |state| state.source.bps),
            receivers: (receivers + members).saturating_sub(groups),
            children: self.node.children(id).map(child).collect(),
        }
    }

    /// How a stream comes from a parent.
    fn way(&self, shown: &Shown) -> &'static str {
        match self.control.config().section::<Tree>().transport {
            TreeTransport::Multicast if !shown.is_by_group() => "unicast",
            configured => configured.as_str(),
        }
    }

    fn peer(&self, relay: RelayId) -> PeerView {
        let link = self.links.with(relay);
        PeerView {
            name: self.links.names.get(&relay).cloned().unwrap_or_else(|| relay.to_string()),
            relay: relay.to_string(),
            address: link.map(|link| link.peer.contact.address.to_string()).unwrap_or_default(),
            level: None,
        }
    }
}
