//! A source that begins its turn at a stream, and how its packets reach the worker.

use std::net::{AddrParseError, IpAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use outflow_media::{Format, Time};
use outflow_packet::{DropReason, Incoming};
use outflow_relay::Feedback;
use tokio::sync::mpsc;

use super::{SavedRole, SavedSocket};

/// A source that begins its turn.
#[derive(Debug)]
pub struct SourceSpec {
    /// What it carries; none if its turn began in another process, and the stream has it.
    pub format: Option<Format>,
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
    /// What was heard there by the process before.
    pub heard: SocketHeard,
}

/// What was heard at a socket, as it is saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketHeard {
    /// The sender: its address, when it sent last, and its SSRC.
    pub sender: Option<(String, u64, Option<u32>)>,
    /// Datagrams that the kernel has dropped, as it counts them.
    pub overflows: u32,
}

impl SourceSocket {
    /// A new one.
    pub fn new(socket: std::net::UdpSocket, track: u8, role: SocketRole, from: Option<IpAddr>) -> Self {
        SourceSocket { socket, track, role, from, heard: SocketHeard::default() }
    }

    /// One of the process before.
    ///
    /// # Errors
    /// The address that it is for is none.
    pub fn taken(saved: SavedSocket, socket: OwnedFd) -> Result<Self, AddrParseError> {
        let SavedSocket { track, role, from, sender, overflows, .. } = saved;
        let from = from.map(|from| from.parse()).transpose()?;
        let role = match role {
            SavedRole::Ts => SocketRole::Ts,
            SavedRole::Rtp => SocketRole::Rtp,
            SavedRole::Rtcp => SocketRole::Rtcp,
        };
        Ok(SourceSocket {
            heard: SocketHeard { sender, overflows },
            ..Self::new(socket.into(), track, role, from)
        })
    }
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
