//! What nodes are, as data, and what each can be joined with.

use outflow_media::Time;
use serde::Deserialize;

use super::multicast::{Host, HostModel, Router, RouterModel};
use super::poc::{PocReceiver, PocReceiverModel, PocSender, PocSenderModel};
use super::tree::{Directory, DirectoryModel, TreeRelay, TreeRelayModel};
use super::{Node, Place};
use crate::network::model::{Network, NetworkError, TrafficModel};
use crate::network::traffic::Model;

/// A node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NodeModel {
    /// A router of multicast: DVMRP with other routers, IGMP and MLD with hosts.
    Router(RouterModel),
    /// A host: it receives groups, and traffic that begins there goes to one.
    Host(HostModel),
    /// A sender of the partial-order transport: traffic that begins there goes to a receiver.
    PocSender(PocSenderModel),
    /// A receiver of it.
    PocReceiver(PocReceiverModel),
    /// A relay of a tree: traffic that begins there is the stream, which others take from it and from each other.
    TreeRelay(TreeRelayModel),
    /// The place where relays of a tree find each other.
    TreeDirectory(DirectoryModel),
}

impl NodeModel {
    /// Its kind, as it is written.
    pub const fn kind(&self) -> &'static str {
        match self {
            NodeModel::Router(_) => "router",
            NodeModel::Host(_) => "host",
            NodeModel::PocSender(_) => "poc-sender",
            NodeModel::PocReceiver(_) => "poc-receiver",
            NodeModel::TreeRelay(_) => "tree-relay",
            NodeModel::TreeDirectory(_) => "tree-directory",
        }
    }

    /// Kinds that traffic can begin at.
    const SENDING: &[&str] = &["host", "poc-sender", "tree-relay"];

    /// The node that it has to share a segment with, if there is one, and of which kind that is.
    const fn partner(&self) -> Option<(&String, &'static str)> {
        match self {
            NodeModel::Router(RouterModel { above: Some(above), .. }) => Some((above, "router")),
            NodeModel::PocSender(model) => Some((&model.to, "poc-receiver")),
            NodeModel::TreeRelay(model) => Some((&model.directory, "tree-directory")),
            NodeModel::Router(_) | NodeModel::Host(_) | NodeModel::PocReceiver(_) => None,
            NodeModel::TreeDirectory(_) => None,
        }
    }

    /// The node, in its place. Traffic that begins there is what is given.
    pub(in crate::network) fn node(
        &self,
        now: Time,
        traffic: Option<&TrafficModel>,
        place: &Place<'_>,
    ) -> Result<Box<dyn Node>, String> {
        Ok(match self {
            NodeModel::Router(model) => Box::new(Router::new(now, model, place)?),
            NodeModel::Host(model) => Box::new(Host::new(now, model, traffic, place)?),
            NodeModel::PocSender(model) => Box::new(PocSender::new(now, model, place)?),
            NodeModel::PocReceiver(model) => Box::new(PocReceiver::new(now, model, place)?),
            NodeModel::TreeRelay(model) => Box::new(TreeRelay::new(now, model, place)?),
            NodeModel::TreeDirectory(model) => Box::new(Directory::new(now, model, place)?),
        })
    }
}

impl Network {
    /// The traffic that begins at a node.
    pub(in crate::network) fn traffic_from(&self, node: &str) -> Option<(&String, &TrafficModel)> {
        self.traffic.iter().find(|(_, traffic)| traffic.from.as_deref() == Some(node))
    }

    /// Checks that what nodes name is there, and that both can do what they are to do together.
    pub(in crate::network) fn check_nodes(&self) -> Result<(), NetworkError> {
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
