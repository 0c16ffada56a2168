//! What a receiver's state machine is to another process, and the tasks of publishers and of receivers that are connected
//! to. Numbers of fields are never given to something else.

use minicbor::{Decode, Encode};
use outflow_poc::save::SavedConnection;
use outflow_poc_socket::save::SavedEnd;

/// The state machine.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPeer {
    #[n(0)]
    pub(super) connection: SavedConnection,
    /// Whether units are packets of RTP.
    #[n(1)]
    pub(super) is_rtp: bool,
    /// For how many nanoseconds packets are of use.
    #[n(2)]
    pub(super) latency: u64,
    #[n(3)]
    pub(super) pace: SavedPace,
    #[n(4)]
    pub(super) ledger: SavedLedger,
    /// Whether a packet that is not urgent has found no room.
    #[n(5)]
    pub(super) waits: bool,
}

/// How far it has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPace {
    /// How old the first packet was, in nanoseconds.
    #[n(0)]
    pub(super) begun: Option<u64>,
    #[n(1)]
    pub(super) is_up: bool,
}

/// What was given to the connection and is not known to have come.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedLedger {
    /// The number of the first unit.
    #[n(0)]
    pub(super) base: u64,
    /// Bytes of each, and why it may not come: 0 not repaired, 1 late, 2 less valuable, 3 depends on what was dropped.
    #[n(1)]
    pub(super) units: Vec<(u32, u8)>,
}

/// What a client sends, beside its turn. Its connection is said by its listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPublication {
    /// How its end calls the connection.
    #[n(0)]
    pub(super) number: u64,
    /// Whether units are packets of RTP.
    #[n(1)]
    pub(super) is_rtp: bool,
}

/// A receiver that is connected to, beside its state machine.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedSink {
    #[n(0)]
    pub(super) name: String,
    /// The stream that it gets.
    #[n(1)]
    pub(super) stream: String,
    /// Its address, without secrets.
    #[n(2)]
    pub(super) to: String,
    /// What has the socket.
    #[n(3)]
    pub(super) end: SavedEnd,
}

/// As it is handed over.
pub(super) fn encode(value: &impl Encode<()>) -> Vec<u8> {
    // Nothing that is written to memory fails.
    minicbor::to_vec(value).unwrap_or_default()
}
