//! What the driver is told, by connections, by feeds and by what is asked of this relay.

use std::net::SocketAddr;

use outflow_door::{Pass, Permit};
use outflow_engine::message::ControlError;
use outflow_packet::Level;
use outflow_poc_socket::PocSocket;
use outflow_routing::tree::{Contact, Offer, RelayId, StreamId};
use tokio::sync::{mpsc, oneshot};

use super::view::{PeerView, RelayView};
use super::wire::{Hello, Notice};

/// Makes a question of its number.
pub(super) type Question = Box<dyn FnOnce(u32) -> Notice + Send>;

/// What the driver is told.
pub(super) enum Input {
    /// A receiver will ask for a stream: is it to be had?
    Reach {
        stream: String,
        level: Level,
        reply: oneshot::Sender<bool>,
    },
    /// A relay has connected.
    Accepted {
        socket: PocSocket,
        from: SocketAddr,
        admitted: Box<(Permit, Pass)>,
    },
    Link(LinkEvent),
    /// Ask another relay something.
    Ask {
        to: To,
        said: Question,
        reply: oneshot::Sender<Notice>,
    },
    /// The relays that have a stream.
    Offers {
        id: StreamId,
        offers: Vec<Offer>,
    },
    /// Packets of a stream come.
    FeedUp {
        stream: String,
    },
    /// A parent is of no use.
    FeedFailed {
        stream: String,
        parent: Parent,
    },
    /// A stream that is not configured is there now, or cannot be.
    Adopted {
        stream: String,
        is_there: bool,
    },
    /// Where a configured parent is.
    Found {
        place: usize,
        found: Result<SocketAddr, ControlError>,
    },
    /// This relay's own part of the tree, and which other relays there are.
    Own {
        reply: oneshot::Sender<(RelayView, Vec<PeerView>)>,
    },
}

/// The relay that is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    /// A configured parent, by its place in the list.
    Parent(usize),
    Relay(Contact),
}

/// Number of a connection; never given twice while the relay runs.
pub(super) type LinkId = u64;

/// What happened to a connection.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// The other relay said which one it is.
    Up { link: LinkId, peer: Box<Hello>, to: mpsc::Sender<Notice> },
    /// It said something.
    Heard { link: LinkId, said: Notice },
    /// It is over, or there never was one.
    Down { link: LinkId, why: String },
}

/// The relay that a stream is to be taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) relay: RelayId,
    pub(super) name: String,
    /// Where it listens for the transport that is used.
    pub(super) at: SocketAddr,
    /// The number of this turn: the same parent may be taken again.
    pub(super) turn: u64,
}
