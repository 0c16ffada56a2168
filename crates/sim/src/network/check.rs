//! Networks as they are read, and what must be true of them.

#![allow(clippy::disallowed_methods, reason = "a session description is read where a capture is")]

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;

use outflow_packet::Level;

use super::model::{LinkModel, Network, NetworkError, ReceiverModel, RelayNode, TrafficModel};
use super::nodes::NodeModel;
use super::reach::Reach;
use super::traffic::{CapturedModel, Model};
use super::wiring::Wiring;
use super::world::machines;
use crate::capture::Capture;
use crate::limits::{FLOWS_MAX, SECONDS_MAX};

/// Captures that were read, by file and session description.
#[derive(Debug, Clone, Default)]
pub struct Captures(BTreeMap<(PathBuf, Option<PathBuf>), Arc<Capture>>);

impl Captures {
    /// Reads what a model sends, unless that was done before.
    fn read(&mut self, model: &CapturedModel) -> Result<&Capture, String> {
        match self.0.entry((model.file.clone(), model.sdp.clone())) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let sdp = model.sdp.as_ref().map(|file| {
                    std::fs::read_to_string(file)
                        .map_err(|error| format!("cannot read {}: {error}", file.display()))
                });
                let capture = Capture::open_with(&model.file, sdp.transpose()?.as_deref());
                Ok(place.insert(Arc::new(capture.map_err(|error| error.to_string())?)))
            }
        }
    }
}

impl Network {
    /// Reads a network, and the captures that it names.
    ///
    /// # Errors
    /// It is not TOML, has unknown or missing keys, values that make no sense, or names a file that cannot be
    /// read.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let read: Network = toml::from_str(text).map_err(|error| NetworkError::Syntax(error.to_string()))?;
        read.checked(&mut Captures::default())
    }

    /// The network of a table. Captures are read once.
    ///
    /// # Errors
    /// The same.
    pub fn from_table(table: toml::Table, captures: &mut Captures) -> Result<Self, NetworkError> {
        let read = table.try_into().map_err(|error: toml::de::Error| NetworkError::Syntax(error.to_string()));
        let network: Network = read?;
        network.checked(captures)
    }

    fn checked(mut self, captures: &mut Captures) -> Result<Self, NetworkError> {
        let wrong =
            |key: &str, must: &str| Err(NetworkError::Value { key: key.to_owned(), must: must.to_owned() });
        if self.duration.is_zero() || self.duration > Duration::from_secs(SECONDS_MAX) {
            return wrong("duration", "must be above 0, and at most a million seconds");
        }
        if self.warm_up >= self.duration {
            return wrong("warm_up", "must be shorter than the duration");
        }
        for (name, link) in &self.links {
            if let Err(must) = link.check() {
                return wrong(&format!("links.{name}"), must);
            }
        }
        let (mut flows, links, relays) = (0_usize, &self.links, &self.relays);
        for (name, traffic) in &mut self.traffic {
            if let Err(must) = traffic.check(links, relays, captures) {
                return wrong(&format!("traffic.{name}"), &must);
            }
            flows = flows.saturating_add(traffic.flows);
        }
        self.check_nodes()?;
        Reach::of(&self).check_groups()?;
        for (name, receiver) in &self.receivers {
            if let Err(must) = receiver.check(links, &self.traffic) {
                return wrong(&format!("receivers.{name}"), &must);
            }
            flows = flows.saturating_add(receiver.count);
        }
        if flows > FLOWS_MAX {
            return wrong("traffic", &format!("has more than {FLOWS_MAX} flows"));
        }
        // Whatever cannot be joined is told before anything runs.
        machines(&self, &Wiring::new(&self, 0)?)?;
        Ok(self)
    }
}

/// Whether all links of a way are there.
fn known(via: &[String], links: &BTreeMap<String, LinkModel>) -> Result<(), String> {
    let Some(unknown) = via.iter().find(|link| !links.contains_key(*link)) else { return Ok(()) };
    let links: Vec<_> = links.keys().map(String::as_str).collect();
    Err(format!("there is no link '{unknown}': possible are {}", links.join(", ")))
}

impl TrafficModel {
    fn check(
        &mut self,
        links: &BTreeMap<String, LinkModel>,
        relays: &BTreeMap<String, RelayNode>,
        captures: &mut Captures,
    ) -> Result<(), String> {
        self.model.check()?;
        known(&self.via, links)?;
        if self.from.is_none() && self.via.is_empty() && self.to.is_none() {
            return Err(
                "needs via, the links that it goes through, or from, the node at which it begins".to_owned()
            );
        }
        if let Some(to) = self.to.as_ref().filter(|_| self.from.is_none()) {
            if !relays.contains_key(to) {
                let relays: Vec<_> = relays.keys().map(String::as_str).collect();
                return Err(format!("there is no relay '{to}': possible are {}", relays.join(", ")));
            }
            if !matches!(self.model, Model::H264(_)) {
                return Err("relays read what packets hold: write model = \"h264\"".to_owned());
            }
        }
        if let Model::Capture(model) = &mut self.model {
            let capture = captures.read(model)?;
            model.take(capture);
        }
        Ok(())
    }
}

impl ReceiverModel {
    fn check(
        &self,
        links: &BTreeMap<String, LinkModel>,
        traffic: &BTreeMap<String, TrafficModel>,
    ) -> Result<(), String> {
        known(&self.via, links)?;
        if Level::new(self.level).is_none() {
            return Err(format!("level must be 1 to {}", Level::MAX));
        }
        let goes_to_a_relay = |traffic: &&TrafficModel| traffic.to.is_some() && traffic.flows > 0;
        match traffic.get(&self.traffic).filter(goes_to_a_relay) {
            Some(_) => Ok(()),
            None => Err(format!("'{}' is no traffic that goes to a relay (to = \"NAME\")", self.traffic)),
        }
    }
}

impl Network {
    /// The traffic that begins at a node.
    fn traffic_from(&self, node: &str) -> Option<(&String, &TrafficModel)> {
        self.traffic.iter().find(|(_, traffic)| traffic.from.as_deref() == Some(node))
    }

    /// Checks that what nodes name is there, and that both can do what they are to do together.
    fn check_nodes(&self) -> Result<(), NetworkError> {
        self.traffic.iter().try_for_each(|(name, traffic)| self.check_beginning(name, traffic))?;
        for (name, node) in &self.nodes {
            let Some((other, kind)) = node.partner() else { continue };
            let wrong = |why: String| {
                let (one, other) = (format!("{} {name}", node.kind()), other.clone());
                Err(NetworkError::Joined { one, other, why })
            };
            match self.nodes.get(other) {
                // What runs at an end is not known here.
                None if self.ends.contains_key(other) && self.share_a_segment(name, other) => {}
                None => return wrong(format!("there is no such node: name a node of kind = \"{kind}\"")),
                Some(known) if known.kind() != kind => {
                    let is = known.kind();
                    return wrong(format!("it is a {is}: name a node of kind = \"{kind}\""));
                }
                Some(_) if !self.share_a_segment(name, other) => {
                    return wrong("no segment joins them: name both in one's joins".to_owned());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn share_a_segment(&self, one: &String, other: &String) -> bool {
        self.segments.values().any(|segment| segment.joins.contains(one) && segment.joins.contains(other))
    }

    /// Traffic begins where something sends it on.
    fn check_beginning(&self, name: &str, traffic: &TrafficModel) -> Result<(), NetworkError> {
        let Some(from) = &traffic.from else { return Ok(()) };
        let wrong = |why: String| {
            let (one, other) = (format!("traffic {name}"), from.clone());
            Err(NetworkError::Joined { one, other, why })
        };
        let sending = NodeModel::SENDING.join(", ");
        match self.nodes.get(from) {
            None => wrong(format!("there is no such node: name one of kind {sending}")),
            Some(node) if !NodeModel::SENDING.contains(&node.kind()) => {
                wrong(format!("a {} sends no traffic: name a node of kind {sending}", node.kind()))
            }
            Some(_) if !traffic.via.is_empty() => {
                wrong("via is of traffic that goes through links by itself: leave it out".to_owned())
            }
            Some(_) if traffic.flows != 1 => wrong("one flow begins at a node: write flows = 1".to_owned()),
            Some(NodeModel::Host(_))
                if traffic.to.as_ref().is_none_or(|to| to.parse::<SocketAddr>().is_err()) =>
            {
                wrong("a host needs an address and port: write to = \"239.1.1.1:5004\"".to_owned())
            }
            Some(NodeModel::PocSender(_) | NodeModel::TreeRelay(_)) if traffic.to.is_some() => {
                wrong("to is of traffic that begins at a host: leave it out".to_owned())
            }
            Some(NodeModel::TreeRelay(_)) if !matches!(traffic.model, Model::H264(_)) => {
                wrong("relays read what packets hold: write model = \"h264\"".to_owned())
            }
            Some(NodeModel::Host(_)) if !matches!(traffic.model, Model::H264(_) | Model::Layered(_)) => {
                wrong("a host sends packets of RTP: write model = \"h264\" or \"layered\"".to_owned())
            }
            Some(_) if self.traffic_from(from).is_some_and(|(first, _)| first != name) => {
                wrong("other traffic begins there already: give each a node of its own".to_owned())
            }
            Some(_) => Ok(()),
        }
    }
}
