//! What the driver is to know.

use outflow_media::Prefix;

use super::Peer;
use super::forwarding::{Flow, Outgoing};
use super::routes::Via;

/// What the driver is to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A neighbour hears us, and we hear it.
    NeighbourUp(Peer),
    /// That is over.
    NeighbourDown(Peer),
    /// A neighbour has forgotten all (section 3.2.2).
    NeighbourRestarted(Peer),
    /// Another path leads to a network, or none: of data of sources in it that is forwarded as something
    /// longer or shorter, [`Router::handle_data`](super::Router::handle_data) is to be told again.
    RouteChanged(Prefix),
    /// Where data comes from, goes, or at which level.
    ForwardingChanged {
        /// Which data.
        flow: Flow,
        /// Where it is to come from. From elsewhere it is dropped.
        upstream: Via,
        /// Where it goes, in order; nowhere if empty.
        outgoing: Vec<Outgoing>,
    },
    /// Nothing is known of this flow any more; the next data of it is to be told of.
    ForwardingEnded(Flow),
}
