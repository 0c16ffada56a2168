//! A worker's streams, receivers and sources as values that another process takes up: beside the core of a stream
//! ([`SavedStream`](outflow_relay::save::SavedStream)), how each receiver is reached and where a source is heard.
//!
//! All is CBOR (RFC 8949) in maps with numbered fields: one that is not known is passed over, and a new one is
//! optional. Descriptors stand beside a value ([`Moved`]) and are named in it by their places.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use minicbor::{Decode, Encode};

/// A value, and the descriptors that it names by their places.
#[derive(Debug, Default)]
pub struct Moved<T> {
    /// The value.
    pub value: T,
    /// The descriptors; copies of those that the other process has, too.
    pub descriptors: Vec<OwnedFd>,
}

/// What a worker has.
#[derive(Debug, Default)]
pub struct SavedWorker {
    /// The pairs of UDP ports that it serves receivers from. Descriptors: for each the one of RTP, and that of RTCP.
    pub ports: Moved<Vec<SavedPorts>>,
    /// Its streams.
    pub streams: Vec<Moved<SavedLive>>,
}

/// A pair of UDP ports.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPorts {
    /// Whether it is of IPv6.
    #[n(0)]
    pub is_ipv6: bool,
    /// The address of the machine that it sends from, if it has one of its own.
    #[n(1)]
    pub from: Option<String>,
}

/// A stream at a worker.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedLive {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// Whether its source is with this worker.
    #[n(1)]
    pub is_owner: bool,
    /// Its core, a [`SavedStream`](outflow_relay::save::SavedStream). Its worker writes and reads it, so that workers
    /// do not wait for each other.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub core: Vec<u8>,
    /// Its receivers.
    #[n(3)]
    pub receivers: Vec<SavedReceiver>,
    /// Its source, if it has a turn.
    #[n(4)]
    pub source: Option<SavedTurn>,
}

/// A source's turn.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedTurn {
    /// Its number.
    #[n(0)]
    pub id: u64,
    /// What its packets come from, for people.
    #[n(1)]
    pub peer: String,
    /// The sockets that the worker reads for it; none if its packets come through a queue.
    #[n(2)]
    pub sockets: Vec<SavedSocket>,
}

/// A socket of a source.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSocket {
    /// The place of its descriptor.
    #[n(0)]
    pub descriptor: u32,
    /// The track.
    #[n(1)]
    pub track: u8,
    /// What comes there.
    #[n(2)]
    pub role: SavedRole,
    /// The only address that it may come from.
    #[n(3)]
    pub from: Option<String>,
    /// Its sender: its address, when it sent last, and its SSRC.
    #[n(4)]
    pub sender: Option<(String, u64, Option<u32>)>,
    /// Datagrams that the kernel has dropped there, as it counts them.
    #[n(5)]
    pub overflows: u32,
}

/// What comes to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SavedRole {
    /// Transport stream packets.
    #[n(0)]
    Ts,
    /// RTP packets.
    #[n(1)]
    Rtp,
    /// RTCP packets.
    #[n(2)]
    Rtcp,
}

/// A receiver.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedReceiver {
    /// Its number.
    #[n(0)]
    pub id: u64,
    /// How it is reached, in a word of the API.
    #[n(1)]
    pub kind: String,
    /// Where it is, for people.
    #[n(2)]
    pub to: String,
    /// What it is called, if it is a configured one.
    #[n(3)]
    pub name: Option<String>,
    /// What the token is called that it was let in by.
    #[n(4)]
    pub token: Option<String>,
    /// How it is reached.
    #[n(5)]
    pub out: SavedOut,
}

/// How a receiver is reached.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SavedOut {
    /// By UDP.
    #[n(0)]
    Udp {
        /// From where.
        #[n(0)]
        from: SavedFrom,
        /// Where each track goes.
        #[n(1)]
        media: Vec<(u8, String)>,
        /// Where its sender reports go.
        #[n(2)]
        rtcp: Vec<(u8, String)>,
    },
    /// Through a connection.
    #[n(1)]
    Stream {
        /// The place of its descriptor, once there is a connection. Where control reads from that, it hands over
        /// another one.
        #[n(0)]
        descriptor: Option<u32>,
        /// What has to go before the next packet.
        #[cbor(n(1), with = "minicbor::bytes")]
        unsent: Vec<u8>,
        /// Track, channel of RTP and channel of RTCP, if packets are interleaved.
        #[n(2)]
        channels: Option<Vec<(u8, u8, u8)>>,
    },
    /// By a state machine of its own.
    #[n(2)]
    Peer {
        /// Bytes that a packet takes on the way beside its own and those of UDP.
        #[n(0)]
        overhead: u64,
        /// What it says of itself; none if it cannot go on.
        #[cbor(n(1), with = "minicbor::bytes")]
        value: Option<Vec<u8>>,
    },
}

/// The socket that a receiver is served from by UDP.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SavedFrom {
    /// The one at this place among the pairs of ports of its worker.
    #[n(0)]
    Pair(#[n(0)] u32),
    /// One of its own.
    #[n(1)]
    Own {
        /// The place of its descriptor.
        #[n(0)]
        descriptor: u32,
        /// What was asked for it.
        #[n(1)]
        destination: SavedDestination,
    },
}

/// Where a configured receiver is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedDestination {
    /// Its address.
    #[n(0)]
    pub to: String,
    /// The address that a group is sent from.
    #[n(1)]
    pub from: Option<String>,
    /// The time to live.
    #[n(2)]
    pub ttl: Option<u8>,
    /// The interface that packets leave by.
    #[n(3)]
    pub interface: Option<String>,
    /// Whether members on this machine get what goes to a group.
    #[n(4)]
    pub loops: bool,
}

/// Addresses of tracks, as they are saved.
pub(crate) fn saved_addresses(addresses: &[(u8, socket2::SockAddr)]) -> Vec<(u8, String)> {
    let address = |(track, to): &(u8, socket2::SockAddr)| Some((*track, to.as_socket()?.to_string()));
    addresses.iter().filter_map(address).collect()
}

/// The same as they were; what is no address is left out.
pub(crate) fn addresses(saved: &[(u8, String)]) -> Vec<(u8, socket2::SockAddr)> {
    let address = |(track, to): &(u8, String)| Some((*track, to.parse::<SocketAddr>().ok()?.into()));
    saved.iter().filter_map(address).collect()
}
