//! A receiver as its worker holds it, and how it is reached.

use std::sync::Arc;

use outflow_media::Growth;
use outflow_packet::Level;
use outflow_relay::SinkKey;
use tokio::sync::oneshot;

use super::links::Behind;
use crate::message::{CloseReason, Framing, ReceiverId, ReceiverReport, RtcpCounts, RtcpGate};
use crate::send::stream::{Connection, Connections};
use crate::send::udp::UdpRoute;

/// A receiver.
pub(super) struct LiveSink {
    pub(super) id: ReceiverId,
    pub(super) kind: &'static str,
    pub(super) to: String,
    pub(super) name: Option<String>,
    /// What the token is called that it was let in by, if that has a name.
    pub(super) token: Option<String>,
    pub(super) closed: oneshot::Sender<CloseReason>,
    pub(super) out: Out,
    /// What it has at the link that it is behind.
    pub(super) behind: Option<Behind>,
    pub(super) reports: Vec<ReceiverReport>,
    /// Bits a second that its way carries, once that was said.
    pub(super) carries_bps: Option<u64>,
    /// How often it asked for a key frame.
    pub(super) key_frame_requests: u64,
    /// What its RTCP has to pass that comes by UDP. What comes in a connection has passed one like it.
    pub(super) rtcp: RtcpGate,
    pub(super) sent_bytes: Growth,
    /// The level that it wants, as the task that fetches the stream was told.
    pub(super) wants: Option<Level>,
}

impl LiveSink {
    /// One of which nothing was heard yet: how it is called, how it is reached, and what it has with control.
    pub(super) fn new(
        (id, kind, to): (ReceiverId, &'static str, String),
        (name, token): (Option<String>, Option<String>),
        (out, behind): (Out, Option<Behind>),
        (rtcp, closed): (Arc<RtcpCounts>, oneshot::Sender<CloseReason>),
    ) -> Self {
        LiveSink {
            id,
            kind,
            to,
            name,
            token,
            closed,
            out,
            behind,
            reports: Vec::new(),
            carries_bps: None,
            key_frame_requests: 0,
            rtcp: RtcpGate::new(rtcp),
            sent_bytes: Growth::default(),
            wants: None,
        }
    }

    /// Whether packets of a track have an address to go to.
    pub(super) fn is_reached(&self, track: u8) -> bool {
        match &self.out {
            Out::Udp { route, .. } => route.address(track).is_some(),
            Out::Stream { connection, .. } => connection.is_some(),
            Out::Peer { place, .. } => place.is_some(),
        }
    }
}

/// How a receiver is reached.
pub(super) enum Out {
    /// By UDP.
    Udp {
        route: UdpRoute,
        /// Where sender reports go, per track.
        rtcp: Vec<(u8, socket2::SockAddr)>,
        /// The socket is its own and closes with it.
        own_socket: bool,
    },
    /// Through a connection, once it is there.
    Stream {
        connection: Option<(Connection, usize)>,
        framing: Framing,
        /// What is to go first, of the process before.
        unsent: Vec<u8>,
    },
    /// By a state machine of its own, once it is there: its place among those of the worker. Each packet takes so
    /// many bytes on the way beside its own and those of UDP.
    Peer { place: Option<usize>, overhead: usize },
}

impl Out {
    /// The place of its state machine, if it has one.
    pub(super) fn peer(&self) -> Option<usize> {
        match self {
            Out::Peer { place, .. } => *place,
            Out::Udp { .. } | Out::Stream { .. } => None,
        }
    }
}

impl Connections for Vec<Option<LiveSink>> {
    fn connection(&mut self, key: SinkKey) -> Option<(&mut Connection, &Framing)> {
        match &mut self.get_mut(key.0)?.as_mut()?.out {
            Out::Stream { connection: Some((connection, _)), framing, .. } => Some((connection, framing)),
            Out::Stream { connection: None, .. } | Out::Udp { .. } | Out::Peer { .. } => None,
        }
    }
}
