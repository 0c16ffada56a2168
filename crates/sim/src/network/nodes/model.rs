//! What nodes are, as data, and what each can be joined with.

use core::net::SocketAddr;

use outflow_media::Time;
use serde::Deserialize;

use super::multicast::{Host, HostModel, Router, RouterModel};
use super::poc::{PocReceiver, PocReceiverModel, PocSender, PocSenderModel};
use super::tree::{Directory, DirectoryModel, TreeRelay, TreeRelayModel};
use super::{Node, Place};

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
    pub(in crate::network) const SENDING: &[&str] = &["host", "poc-sender", "tree-relay"];

    /// The node that it has to share a segment with, if there is one, and of which kind that is.
    pub(in crate::network) const fn partner(&self) -> Option<(&String, &'static str)> {
        match self {
            NodeModel::Router(RouterModel { above: Some(above), .. }) => Some((above, "router")),
            NodeModel::PocSender(model) => Some((&model.to, "poc-receiver")),
            NodeModel::TreeRelay(model) => Some((&model.directory, "tree-directory")),
            NodeModel::Router(_) | NodeModel::Host(_) | NodeModel::PocReceiver(_) => None,
            NodeModel::TreeDirectory(_) => None,
        }
    }

    /// The node, in its place. Where traffic that begins there goes is given.
    pub(in crate::network) fn node(
        &self,
        now: Time,
        to: Option<SocketAddr>,
        place: &Place<'_>,
    ) -> Result<Box<dyn Node>, String> {
        Ok(match self {
            NodeModel::Router(model) => Box::new(Router::new(now, model, place)?),
            NodeModel::Host(model) => Box::new(Host::new(now, model, to, place)?),
            NodeModel::PocSender(model) => Box::new(PocSender::new(now, model, place)?),
            NodeModel::PocReceiver(model) => Box::new(PocReceiver::new(now, model, place)?),
            NodeModel::TreeRelay(model) => Box::new(TreeRelay::new(now, model, place)?),
            NodeModel::TreeDirectory(model) => Box::new(Directory::new(now, model, place)?),
        })
    }
}
