//! A source that begins its turn at a stream, and how its packets reach the worker.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Incoming};
use outflow_relay::Feedback;
use tokio::sync::mpsc;

/// A source that begins its turn.
#[derive(Debug)]
pub struct SourceSpec {
    /// What it carries.
    pub format: Format,
    /// What it is, for people.
    pub peer: String,
    /// How its packets come.
    pub feed: Feed,
    /// What receivers say, for its front. What finds it full is left out: it is said again.
    pub feedback: mpsc::Sender<Feedback>,
    /// Where it is said that media has come.
    pub media: LastMedia,
}

/// When media of a source came last: its worker says so, once a batch; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct LastMedia(Arc<AtomicU64>);

impl LastMedia {
    /// Media came.
    pub fn came(&self, now: Time) {
        // 0 stands for none. Nothing else is read because of it.
        self.0.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    /// When media came last, if any did.
    pub fn at(&self) -> Option<Time> {
        Some(self.0.load(Ordering::Relaxed)).filter(|nanos| *nanos > 0).map(Time::from_nanos)
    }
}

/// How a source's packets reach the worker.
#[derive(Debug)]
pub enum Feed {
    /// From a connection that a task of control reads.
    Queue(mpsc::Receiver<Ingest>),
    /// From sockets that the worker reads itself; the queue is kept, and dropped at the turn's end.
    Sockets(Vec<SourceSocket>, mpsc::Receiver<Ingest>),
}

/// What a publisher's task hands to the worker.
#[derive(Debug)]
pub enum Ingest {
    /// An RTP packet, or whole transport stream packets.
    Media {
        /// The track.
        track: u8,
        /// The bytes.
        bytes: Incoming,
    },
    /// A compound RTCP packet.
    Rtcp {
        /// The track.
        track: u8,
        /// The bytes.
        bytes: Bytes,
    },
    /// `packets` packets found the queue full before this.
    Dropped {
        /// Why, for its receivers.
        reason: DropReason,
        /// How many.
        packets: u64,
    },
}

/// A UDP socket that a source sends to.
#[derive(Debug)]
pub struct SourceSocket {
    /// The socket itself.
    pub socket: std::net::UdpSocket,
    /// The track.
    pub track: u8,
    /// What comes in there.
    pub role: SocketRole,
    /// Only packets from this address count, if it is known.
    pub from: Option<IpAddr>,
}

/// What comes in at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketRole {
    /// Transport stream packets.
    Ts,
    /// RTP packets.
    Rtp,
    /// RTCP packets.
    Rtcp,
}
