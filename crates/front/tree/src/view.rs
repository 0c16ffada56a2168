//! What a relay shows of the tree: its own part, and put together with those of others, all of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A relay's part of the trees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TreeRelay)]
pub struct RelayView {
    /// Its name.
    pub name: String,
    /// Its number, 16 hexadecimal digits.
    pub relay: String,
    /// Where other relays reach it.
    pub address: String,
    /// Kilometres east and north of anywhere.
    pub location: [i32; 2],
    /// The program's version.
    pub version: String,
    /// Other relays that it is connected with, by name.
    pub connected: Vec<String>,
    /// Whether NATS can be reached; not said where it is not used.
    pub directory: Option<bool>,
    /// Its streams.
    pub streams: Vec<StreamView>,
    /// Why it does not say this itself, if others only speak of it.
    pub unreachable: Option<String>,
}

/// A stream at a relay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TreeStream)]
pub struct StreamView {
    /// Its name.
    pub stream: String,
    /// Its source is here.
    pub is_source: bool,
    /// Relays between here and its source, this one included; not said if it has none.
    pub depth: Option<u16>,
    /// The relay that it comes from.
    pub parent: Option<PeerView>,
    /// What is asked for there: 1 is the best level.
    pub level: Option<u8>,
    /// Bits a second that come in.
    pub bps: u64,
    /// How it comes from there, of what `[tree] transport` can say: "poc", "rtp", or "multicast"; "unicast" where it
    /// does not come by multicast though it is to.
    #[serde(default)]
    pub by: Option<String>,
    /// How often unicast had to stand in for multicast.
    #[serde(default)]
    pub fallbacks: u64,
    /// Receivers here, other relays included.
    pub receivers: u64,
    /// Other relays that take it from here.
    pub children: Vec<PeerView>,
}

/// Another relay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TreePeer)]
pub struct PeerView {
    /// Its name, if it is known.
    pub name: String,
    /// Its number.
    pub relay: String,
    /// Where it is reached.
    pub address: String,
    /// The level that it asks for, of a child.
    pub level: Option<u8>,
}
