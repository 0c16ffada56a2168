//! Relays of a tree: the [`tree::Node`](outflow_routing::tree::Node) and the relay core that run live, and the
//! directory by which relays find each other.
//!
//! All that is said goes in datagrams over IPv4, from port [`limits::CONTROL`]; media goes by RTP. Relays of a tree
//! have to be on one segment with each other and with the directory. There is one stream in a tree: it begins where
//! traffic with packets of RTP begins.
//!
//! | module | what |
//! |---|---|
//! | `relay` | a relay: what comes goes to the state machines, and what these ask for is done |
//! | `peers` | relays that are talked to, and which of these are silent |
//! | `feed` | the stream as it comes from a parent |
//! | `splice` | where the packets of another parent go on from those of the one before |
//! | `wants` | receivers at the relay, and the time in which they had nothing |
//! | `directory` | which relay has the stream |
//! | `wire` | what is said |
//! | `limits` | times and limits |
//!
//! # What differs from live relays
//!
//! - Live relays talk over a transport that repeats what is lost. Here a message that is lost is lost, and the tree has
//!   to do without it: where one of ten is lost, relays find another parent every ten seconds or so, as two beats that are
//!   lost one after the other are taken for a way that is broken.
//! - A signalling connection is not made: a relay that does not answer is lost after as long as live.
//! - Media is not repeated, as with `[tree] transport = "rtp"`; no reports of RTCP go.

mod directory;
mod feed;
mod limits;
mod peers;
mod relay;
mod splice;
#[cfg(test)]
mod tests;
mod wants;
mod wire;

use core::net::Ipv4Addr;
use core::time::Duration;

use outflow_routing::tree::{Contact, Location, RelayId, StreamId};
use serde::Deserialize;

pub(in crate::network) use self::directory::Directory;
pub(in crate::network) use self::relay::TreeRelay;
use crate::network::units::{duration, maybe_duration};

/// The stream of a tree.
const STREAM: StreamId = StreamId(1);

/// A relay of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeRelayModel {
    /// The node that is the directory, on one of its segments. All relays of the tree are on that one.
    pub directory: String,
    /// Other relays that it serves at the same time.
    #[serde(default = "children_max")]
    pub children_max: usize,
    /// Receivers at the relay.
    #[serde(default)]
    pub wants: Vec<TreeWant>,
}

/// Receivers at a relay that want the stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeWant {
    /// The level that they ask for: 1 is the best.
    #[serde(default = "one")]
    pub level: u8,
    /// How many there are. All of them get the same, and one of them is looked at.
    #[serde(default = "one")]
    pub count: u64,
    /// When they come.
    #[serde(default, deserialize_with = "duration")]
    pub at: Duration,
    /// When they leave. If not given, never.
    #[serde(default, deserialize_with = "maybe_duration")]
    pub until: Option<Duration>,
}

/// Where relays of a tree find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryModel {}

/// What `[tree] children` is if it is not given.
const fn children_max() -> usize {
    64
}

fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// How a relay is found that has this address. All are at one place.
fn contact(address: Ipv4Addr) -> Contact {
    let address_and_port = (address, limits::CONTROL).into();
    Contact { relay: id(address), address: address_and_port, location: Location::default() }
}

/// The relay that has this address.
fn id(address: Ipv4Addr) -> RelayId {
    RelayId(address.to_bits().into())
}

/// The address of a relay.
fn address(relay: RelayId) -> Ipv4Addr {
    // It is made of one.
    Ipv4Addr::from_bits(relay.0 as u32)
}
