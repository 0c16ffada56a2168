//! A receiver that is reached by a state machine of its own, which its worker drives: a protocol with
//! acknowledgements, encryption, a clock. The worker gives it packets, datagrams that came and time, and sends
//! what it wants to send, that of all such receivers together.

use core::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use outflow_media::Time;
use outflow_media::ecn::Mark;
use outflow_relay::Report;
use outflow_udp::Udp;

use crate::send::{Packets, Recent};

/// The state machine of such a receiver. It does no I/O, and knows no time but the one that it is given.
///
/// All calls that are given `now` may change what [`poll_transmit`](Self::poll_transmit) answers; when that has
/// nothing to send, [`poll_event`](Self::poll_event) is asked, and then [`next_timeout`](Self::next_timeout).
/// Dropping it ends it.
pub trait Peer: Send + fmt::Debug {
    /// Takes packets, from the first on, and answers how many. The others are offered again after a
    /// [`Report::Writable`]. What it takes and does not send is told by `tell`, or later by an event. What it has to
    /// send because of them may go to `out` at once, if there is one and nothing is to go before.
    fn write(
        &mut self,
        now: Time,
        packets: &mut Packets<'_>,
        out: Option<&mut dyn Outlet>,
        tell: &mut dyn FnMut(Report),
    ) -> usize;

    /// Reads a word of each place in memory that [`write`](Self::write) is about to need, and answers what depends on all of
    /// them. It is asked of all to which packets go before the first is given them: thousands are in no cache, and what is
    /// asked for at once comes in the time of one.
    fn warm(&self) -> usize {
        0
    }

    /// An RTCP packet of the relay about a track. It is left out if there is no room for it.
    fn write_rtcp(&mut self, now: Time, track: u8, packet: &[u8]);

    /// A datagram came for it from there, so marked, which it may change. What it was given of late it may send once
    /// more.
    fn handle_datagram(&mut self, now: Time, from: (SocketAddr, Mark), datagram: &mut [u8], recent: &Recent);

    /// The next datagram, written behind what is in `out`; nothing if none is to be sent now. Answers where it goes, and
    /// how it is marked.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)>;

    /// When to call [`handle_timeout`](Self::handle_timeout), or to ask for datagrams at the latest, and why.
    fn next_timeout(&self) -> Option<(Time, PeerWake)>;

    /// Time has passed.
    fn handle_timeout(&mut self, now: Time, recent: &Recent);

    /// What happened.
    fn poll_event(&mut self) -> Option<PeerEvent>;

    /// The relay ends it, and this is why. It is asked for datagrams once more, and dropped.
    fn close(&mut self, now: Time, why: &str);

    /// It as a value, for its front in another process; none if it cannot go on there.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }
}

/// What takes datagrams of a [`Peer`] at once.
pub trait Outlet {
    /// Takes the one that `write` puts behind what it is given, if it has one.
    fn put(&mut self, write: &mut WriteDatagram<'_>);
}

/// See [`Peer::poll_transmit`].
pub type WriteDatagram<'a> = dyn FnMut(&mut Vec<u8>) -> Option<(SocketAddr, Mark)> + 'a;

/// Why a [`Peer`] wants to be called at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerWake {
    /// The receiver counts as gone, if nothing is heard of it.
    Gone,
    /// Something counts as lost, and is sent again or asked for.
    Repair,
    /// What waits to be sent, or is waited for, is of no use any more.
    Late,
    /// The receiver is told something of the protocol: what came, that the relay is still there.
    Tell,
    /// The next datagram may go.
    Pace,
}

/// What a worker learns from a [`Peer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// RTCP that the receiver sent.
    Rtcp(Bytes),
    /// What became of packets, or that there is room for more.
    Report(Report),
    /// The receiver is gone: why, for people. The last event.
    Closed(String),
}

/// Where the datagrams of a [`Peer`] go out.
#[derive(Debug, Clone)]
pub struct PeerPath {
    /// The socket, which it may have in common with others.
    pub udp: Arc<Udp>,
    /// Where the receiver is.
    pub peer: SocketAddr,
    /// The own address that it sends to, if answers have to come from there.
    pub own: Option<IpAddr>,
}
