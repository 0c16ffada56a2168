//! What the two processes say to each other: all is CBOR (RFC 8949) in maps with numbered fields.

use minicbor::{Decode, Encode};
use outflow_door::SavedGrant;
use outflow_engine::message::{ControlError, SavedLive, SavedPorts};

/// The format of all values together. A process that knows another one takes nothing of it.
pub(super) const FORMAT: u32 = 3;

/// Kinds of messages.
pub(super) mod kind {
    /// The new process: what it understands.
    pub(crate) const HELLO: u8 = 1;
    /// The old one: what the new one begins with.
    pub(crate) const BASE: u8 = 2;
    /// The new one: it could go on.
    pub(crate) const READY: u8 = 3;
    /// The old one, which still serves: what does not change with media.
    pub(crate) const CONNECTIONS: u8 = 4;
    /// The new one: it has that.
    pub(crate) const CONNECTED: u8 = 5;
    /// The old one, which stands still: all else.
    pub(crate) const STATE: u8 = 6;
    /// The new one: it has it.
    pub(crate) const RESTORED: u8 = 7;
    /// The old one: the new one goes on, and the old one never does.
    pub(crate) const GO: u8 = 8;
    /// The new one: it goes on.
    pub(crate) const ON: u8 = 9;
    /// Either: it cannot be, and why.
    pub(crate) const REFUSED: u8 = 10;
}

/// What the new process says first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Hello {
    #[n(0)]
    pub(super) format: u32,
    #[n(1)]
    pub(super) version: String,
    #[n(2)]
    pub(super) pid: u32,
}

/// What the new process begins with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Base {
    /// The clock's zero on the system's monotonic clock, and the NTP time of that.
    #[n(0)]
    pub(super) zero_ns: u64,
    #[n(1)]
    pub(super) ntp_at_zero: u64,
    /// Numbers below were given.
    #[n(2)]
    pub(super) next_id: u64,
    #[n(3)]
    pub(super) workers: u64,
    /// Which worker owns which stream.
    #[n(4)]
    pub(super) places: Vec<(String, u64)>,
    /// How often a process has gone on because something had ended in the one before.
    #[n(5)]
    #[cbor(default)]
    pub(super) recoveries: u64,
    /// When one last was to.
    #[n(6)]
    pub(super) recovered_ns: Option<u64>,
    /// Streams that are not in the file, and their sources.
    #[n(7)]
    #[cbor(default)]
    pub(super) adopted: Vec<(String, String)>,
}

/// What does not change with media. Descriptors stand beside it in the order of the fields.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedConnections {
    /// Numbers below are given, or may be before all else is said.
    #[n(0)]
    pub(super) next_id: u64,
    #[n(1)]
    pub(super) receivers: Vec<SavedEntry>,
    #[n(2)]
    pub(super) parts: Vec<SavedPart>,
    /// Protocol and address: a descriptor each.
    #[n(3)]
    pub(super) listeners: Vec<(String, String)>,
}

/// All else that a relay has, once it stands still. Descriptors stand beside it in the order of the fields.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedRelay {
    /// The UDP ports of each worker: two descriptors a pair.
    #[n(0)]
    pub(super) ports: Vec<Vec<SavedPorts>>,
    #[n(1)]
    pub(super) streams: Vec<SavedAt>,
    #[n(2)]
    pub(super) turns: Vec<SavedPublisher>,
    /// Receivers that have come since.
    #[n(3)]
    pub(super) receivers: Vec<SavedEntry>,
    /// Parts that media waits for.
    #[n(4)]
    pub(super) parts: Vec<SavedPart>,
}

/// A stream at a worker.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedAt {
    #[n(0)]
    pub(super) worker: u64,
    #[n(1)]
    pub(super) live: SavedLive,
    #[n(2)]
    pub(super) descriptors: u32,
}

/// A publisher's turn.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPublisher {
    #[n(0)]
    pub(super) stream: String,
    #[n(1)]
    pub(super) source: u64,
    #[n(2)]
    pub(super) peer: String,
    #[n(3)]
    pub(super) begun_ns: u64,
    #[n(4)]
    pub(super) media_ns: Option<u64>,
    #[n(5)]
    pub(super) grant: Option<SavedGrant>,
    /// Whether its packets come from the old process: a descriptor.
    #[n(6)]
    pub(super) is_piped: bool,
}

/// A receiver, as it was written down.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedEntry {
    #[n(0)]
    pub(super) id: u64,
    #[n(1)]
    pub(super) stream: String,
    #[n(2)]
    pub(super) worker: u64,
    /// The name of its session, which is a secret.
    #[n(3)]
    pub(super) session: Option<(u64, u64)>,
    #[n(4)]
    pub(super) grant: Option<SavedGrant>,
}

/// What a task of a front gave.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPart {
    #[n(0)]
    pub(super) front: String,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(super) value: Vec<u8>,
    #[n(2)]
    pub(super) descriptors: u32,
    #[n(3)]
    pub(super) turn: Option<u64>,
}

/// A value as it is sent.
pub(super) fn encode(value: &impl Encode<()>) -> Vec<u8> {
    // Nothing that is written to memory fails.
    minicbor::to_vec(value).unwrap_or_default()
}

/// A value that has come.
pub(super) fn decode<T: for<'b> Decode<'b, ()>>(bytes: &[u8]) -> Result<T, ControlError> {
    minicbor::decode(bytes).map_err(|error| {
        ControlError::NotUpgraded(format!(
            "the two versions do not understand each other ({error}); drain the relay, and start the new one"
        ))
    })
}
