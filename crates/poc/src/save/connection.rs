//! A connection.

use minicbor::{Decode, Encode};

use super::{
    SavedAddress, SavedBytes, SavedDatagramCounts, SavedDelay, SavedId, SavedIncoming, SavedMarks,
    SavedOutgoing, SavedReceived, SavedSecret, SavedSent,
};

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedConnection {
    /// How this end calls it.
    #[n(0)]
    pub local: SavedId,
    /// How the peer does.
    #[n(1)]
    pub remote: SavedId,
    /// Where the peer is.
    #[n(2)]
    pub address: SavedAddress,
    /// How often the peer was found at another address.
    #[n(3)]
    #[cbor(default)]
    pub moves: u64,
    /// What was agreed on, as an accept carries it: what this end sends as what goes to the server.
    #[n(4)]
    pub service: SavedBytes,
    /// Its protection, as that has written it.
    #[n(5)]
    pub keys: SavedBytes,
    /// What challenges are made of.
    #[n(6)]
    pub secret: SavedSecret,
    /// Whether it is still there.
    #[n(7)]
    pub state: SavedState,
    /// Until when it is not forgotten, if it is over.
    #[n(8)]
    pub until: Option<u64>,
    /// How it ended.
    #[n(9)]
    pub closed: Option<SavedClosed>,
    /// Until when all that was due is done.
    #[n(10)]
    pub now: u64,
    /// What is known of the path.
    #[n(11)]
    pub path: SavedPath,
    /// Packets that were received.
    #[n(12)]
    pub received: SavedReceived,
    /// Packets that were sent.
    #[n(13)]
    pub sent: SavedSent,
    /// What it sends.
    #[n(14)]
    pub outgoing: Option<SavedOutgoing>,
    /// What it receives.
    #[n(15)]
    pub incoming: Option<SavedIncoming>,
    /// Whether the application was told that it has to wait.
    #[n(16)]
    pub is_blocked: bool,
    /// What the application has not read, in this order.
    #[n(17)]
    pub events: Vec<SavedEvent>,
    /// When something was last heard.
    #[n(18)]
    pub heard: u64,
    /// When something was last sent.
    #[n(19)]
    pub spoke: u64,
    /// When it ends unless something is heard.
    #[n(20)]
    pub reset_at: Option<u64>,
    /// Whether something is to be sent that has to be acknowledged.
    #[n(21)]
    pub pings: bool,
    /// In how many packets, whatever congestion control says.
    #[n(22)]
    pub probes: u32,
    /// When progress is to be told at the latest.
    #[n(23)]
    pub progress_at: Option<u64>,
    /// The next number that is left out.
    #[n(24)]
    pub skip_at: u64,
    /// What was counted of datagrams.
    #[n(25)]
    #[cbor(default)]
    pub counts: SavedDatagramCounts,
}

/// Whether a connection is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SavedState {
    /// It is.
    #[n(0)]
    Open,
    /// It is to be closed when all that was sent is over.
    #[n(1)]
    Finishing,
    /// This end has closed it, and says so to a peer that still sends.
    #[n(2)]
    Closing,
    /// Nothing is sent any more.
    #[n(3)]
    Draining,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedClosed {
    /// By which side: 0 the application, 1 this end, 2 the peer.
    #[n(0)]
    pub by: u8,
    /// Why.
    #[n(1)]
    pub code: u64,
    /// The same for people.
    #[n(2)]
    pub text: String,
    /// Whether the application knows.
    #[n(3)]
    pub is_told: bool,
    /// Whether the peer is to be told (again).
    #[n(4)]
    pub is_said: bool,
}

/// What is known of the path.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPath {
    /// Bytes that may be in flight.
    #[n(0)]
    pub window_bytes: u64,
    /// Whether packets never waited so far.
    #[n(1)]
    pub is_start: bool,
    /// What is known of the delay.
    #[n(2)]
    pub delay: Option<SavedDelay>,
    /// Up to when all that was sent is paid for.
    #[n(3)]
    pub paid_until: u64,
    /// When a packet with units was sent last.
    #[n(4)]
    pub sent: u64,
    /// Whether packets are still marked.
    #[n(5)]
    pub is_marking: bool,
    /// What the peer has counted of marks since then.
    #[n(6)]
    pub marks: SavedMarks,
    /// When the peer received a packet, in nanoseconds of its clock, the last one that is known of.
    #[n(7)]
    pub told_received: Option<u64>,
    /// When that was sent.
    #[n(8)]
    pub told_sent: u64,
    /// How large datagrams may be.
    #[n(9)]
    pub mtu: SavedMtu,
}

/// How large datagrams may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedMtu {
    /// What is known to get through.
    #[n(0)]
    pub bytes: u32,
    /// How often the next size was tried.
    #[n(1)]
    pub attempts: u32,
    /// Packets with lower numbers went another way.
    #[n(2)]
    pub since: u64,
    /// When to try next.
    #[n(3)]
    pub at: u64,
    /// Datagrams of this size that were lost in a row.
    #[n(4)]
    pub lost: u32,
}

/// What an application is told of a unit, or that there is room again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedEvent {
    /// Which unit; none if there is room.
    #[n(0)]
    pub unit: Option<u64>,
    /// Why it is not sent (again): 0 too late, 1 overload, 2 dependency, 3 not needed; lost and 4 not needed, 5 too late, 6 unreliable, 7 sent too often. Without a reason the receiver had it not.
    #[n(1)]
    pub why: Option<u8>,
}
