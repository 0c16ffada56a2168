//! An endpoint.

use minicbor::{Decode, Encode};

use super::{SavedAddress, SavedBytes, SavedConnection, SavedEndpointCounts, SavedId, SavedSecret};

/// What an endpoint holds, but for its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedEndpoint {
    /// What ids are made of.
    #[n(0)]
    pub secret: SavedSecret,
    /// What cookies are made of: those that clients have stay valid.
    #[n(1)]
    pub cookies: SavedSecret,
    /// The next handle: none is used twice.
    #[n(2)]
    pub next: u64,
    /// Its connections, ascending by their handles.
    #[n(3)]
    pub places: Vec<SavedPlace>,
    /// What happened to datagrams that are of no connection.
    #[n(4)]
    #[cbor(default)]
    pub counts: SavedEndpointCounts,
}

/// The place of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPlace {
    /// How the endpoint calls it.
    #[n(0)]
    pub handle: u64,
    /// How this end calls it in packets.
    #[n(1)]
    pub local: SavedId,
    /// How the peer does.
    #[n(2)]
    pub remote: SavedId,
    /// From where a client asked for it.
    #[n(3)]
    pub asked_from: Option<SavedAddress>,
    /// How that called it.
    #[n(4)]
    pub asked_as: Option<SavedId>,
    /// The answer, which is sent again if it was lost.
    #[n(5)]
    pub accept: SavedBytes,
    /// Whether the application does not read it any more.
    #[n(6)]
    pub is_released: bool,
    /// The connection; none if another driver has it, and saves it.
    #[n(7)]
    pub connection: Option<SavedConnection>,
}
