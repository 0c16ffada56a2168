//! What a receiver wants, and how it is reached: the same from the configuration, the API and sessions.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use outflow_packet::TrackMask;
use outflow_relay::{Encapsulation, LinkClaim, Priority, Selection, Timing};

/// What a receiver wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// How it is reached, in a word of the API.
    pub kind: &'static str,
    /// Where it is, for people.
    pub address: String,
    /// What it is called, if it is a configured receiver.
    pub name: Option<String>,
    /// What the token is called that it was let in by, if that has a name.
    pub token: Option<String>,
    /// What of the stream it gets.
    pub selection: Selection,
    /// Its class, if it is not the stream's own.
    pub class: Option<Priority>,
    /// When its packets go, if not as the stream says.
    pub timing: Option<Timing>,
    /// The bottleneck that it is behind.
    pub link: LinkChoice,
    /// What it has there.
    pub claim: LinkClaim,
}

impl Receiver {
    /// A receiver that wants this, and everything else as the stream says.
    pub fn new(kind: &'static str, address: impl ToString, selection: Selection) -> Self {
        let address = address.to_string();
        let (name, token, class, timing, link) = (None, None, None, None, LinkChoice::OfStream);
        let claim = LinkClaim::default();
        Receiver { kind, address, name, token, selection, class, timing, link, claim }
    }
}

/// The link that a receiver is behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LinkChoice {
    /// That of the stream, if it has one.
    #[default]
    OfStream,
    /// None.
    Direct,
    /// The one of this name.
    Named(String),
}

impl LinkChoice {
    /// This link, or none.
    pub fn of(name: Option<String>) -> Self {
        name.map_or(LinkChoice::Direct, LinkChoice::Named)
    }
}

/// How a receiver is reached.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Datagrams, each a packet, without state of the receiver's.
    Datagrams(Encapsulation, Ends),
    /// A byte stream: packets one after the other. The connection is given when the receiver starts.
    Bytes(Encapsulation, Framing),
    /// A state machine of its own, which is given when the receiver starts ([`Peer`](super::Peer)), for these tracks.
    /// Beside its own bytes and those of UDP, a packet takes this many on the way.
    Peer(Encapsulation, usize, TrackMask),
}

/// Where datagrams come from and go to.
#[derive(Debug, Clone)]
pub enum Ends {
    /// From the ports of a worker that the receiver was told, to an address for each track.
    Negotiated(UdpSite, Vec<TrackAddress>),
    /// To one place, from a port of the relay.
    Configured(Destination),
}

/// A worker's RTP ports, and the worker they belong to: a receiver that was told them is served
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpSite {
    /// The number of the worker.
    pub worker: usize,
    /// The address that its packets come from.
    pub from: IpAddr,
    /// Port that RTP packets come from.
    pub rtp: u16,
    /// Port that receives receiver reports.
    pub rtcp: u16,
}

/// What stands before each packet of a byte stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framing {
    /// Nothing: the packets' own boundaries are enough (a transport stream).
    Raw,
    /// `$`, channel, length (RFC 2326, section 10.12).
    Interleaved(Vec<TrackChannel>),
}

impl Delivery {
    /// The form of the packets.
    pub fn encapsulation(&self) -> Encapsulation {
        match self {
            Delivery::Datagrams(encapsulation, _)
            | Delivery::Bytes(encapsulation, _)
            | Delivery::Peer(encapsulation, ..) => *encapsulation,
        }
    }

    /// The tracks that are delivered.
    pub fn tracks(&self) -> TrackMask {
        let of = |tracks: &mut dyn Iterator<Item = u8>| {
            tracks.fold(TrackMask::NONE, |mask, track| mask.with(TrackMask::only(track)))
        };
        match self {
            Delivery::Datagrams(_, Ends::Negotiated(_, to)) => of(&mut to.iter().map(|to| to.track)),
            Delivery::Bytes(_, Framing::Interleaved(channels)) => of(&mut channels.iter().map(|c| c.track)),
            Delivery::Peer(_, _, tracks) => *tracks,
            Delivery::Datagrams(_, Ends::Configured(_)) | Delivery::Bytes(..) => TrackMask::ALL,
        }
    }
}

/// Where a track's RTP and RTCP go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackAddress {
    /// The track.
    pub track: u8,
    /// Where its RTP packets go.
    pub rtp: SocketAddr,
    /// Where its sender reports go.
    pub rtcp: SocketAddr,
}

/// The interleaved channels of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackChannel {
    /// The track.
    pub track: u8,
    /// Channel of its RTP packets.
    pub rtp: u8,
    /// Channel of its RTCP packets.
    pub rtcp: u8,
}

/// Where a configured receiver is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address; a track `n` of an RTP stream goes to its port plus `2 n`.
    pub to: SocketAddr,
    /// The address that a group is sent from, if it matters.
    pub from: Option<Ipv4Addr>,
    /// The time to live, if it is not the usual one.
    pub ttl: Option<u8>,
    /// The interface that packets leave by, if it is not the route's.
    pub interface: Option<String>,
    /// Whether members on this machine get what goes to a group, too.
    pub loops: bool,
}

impl Destination {
    /// Whether packets to it need no socket of their own: it is one host, reached as the system's
    /// routes say, with the usual time to live.
    pub fn is_plain(&self) -> bool {
        !self.to.ip().is_multicast() && self.ttl.is_none() && self.interface.is_none()
    }

    /// The address of a track.
    pub fn track(&self, track: u8) -> SocketAddr {
        let mut to = self.to;
        to.set_port(to.port().saturating_add(2 * u16::from(track)));
        to
    }
}
