//! What control may ask of a worker: values, sent through a channel, carried out between packets.

use std::net::IpAddr;

use bytes::Bytes;
use outflow_config::LinkConfig;
use outflow_media::Format;
use outflow_relay::element::view::NoView;
use outflow_relay::graph::Graph;
use outflow_relay::receive::Incoming;
use outflow_relay::schedule::StartPoint;
use outflow_relay::{
    DropReason, Level, LevelBounds, LinkId, NoLevel, Priority, Selection, SinkSpec, StreamOptions, View,
};
use tokio::sync::{mpsc, oneshot};

use super::{CloseReason, ControlError, Delivery, Peer, PeerPath, Receiver, SessionState, WriteSide};
use crate::context::Line;
use crate::worker::{Inlet, Outlet};

/// Number of a stream; never given twice while the relay runs.
pub type StreamId = u64;
/// Number of a receiver; never given twice while the relay runs.
pub type ReceiverId = u64;
/// Number of a source's turn at a stream; never given twice while the relay runs.
pub type SourceId = u64;

/// A request to the worker that owns the stream.
#[derive(Debug)]
pub(crate) enum Command {
    AddStream {
        stream: StreamId,
        name: String,
        url: String,
        options: StreamOptions,
        /// From its renditions, if it has no source of its own.
        inlets: Vec<Inlet>,
    },
    RemoveStream {
        stream: StreamId,
        reason: CloseReason,
    },
    /// Serve receivers of a stream whose home is with another worker, with what comes through the
    /// queues; `stream` is its number here.
    Replicate {
        stream: StreamId,
        home: StreamId,
        name: String,
        options: StreamOptions,
        inlets: Vec<Inlet>,
    },
    /// Hand what comes in to another worker, too.
    Share {
        stream: StreamId,
        outlet: Outlet,
    },
    /// The stream has no receivers here: let its packets go, until it is replicated anew.
    Rest {
        stream: StreamId,
    },
    SetOptions {
        stream: StreamId,
        options: StreamOptions,
    },
    SetBounds {
        stream: StreamId,
        bounds: LevelBounds,
    },
    OpenSource {
        stream: StreamId,
        source: SourceId,
        spec: SourceSpec,
        reply: Reply<()>,
    },
    CloseSource {
        stream: StreamId,
        source: SourceId,
    },
    /// Its packets come from somebody else now.
    NameSource {
        stream: StreamId,
        source: SourceId,
        peer: String,
    },
    Describe {
        stream: StreamId,
        wanted: Selection,
        reply: Reply<Described>,
    },
    /// About the services of a stream.
    Services(ServicesCommand),
    Join {
        stream: StreamId,
        receiver: ReceiverId,
        spec: Box<JoinSpec>,
        reply: Reply<Joined>,
    },
    Start {
        stream: StreamId,
        receiver: ReceiverId,
        connection: Option<WriteSide>,
    },
    /// The same for a receiver that is reached by a state machine of its own.
    StartPeer {
        stream: StreamId,
        receiver: ReceiverId,
        peer: Box<dyn Peer>,
        path: PeerPath,
    },
    Pause {
        stream: StreamId,
        receiver: ReceiverId,
    },
    Resume {
        stream: StreamId,
        receiver: ReceiverId,
        reply: Reply<Vec<StartPoint>>,
    },
    Leave {
        stream: StreamId,
        receiver: ReceiverId,
        reason: CloseReason,
    },
    SetPriority {
        stream: StreamId,
        receiver: ReceiverId,
        priority: Priority,
    },
    /// Bytes that are no media (an RTSP response) for a receiver that is a byte stream.
    Inject {
        stream: StreamId,
        receiver: ReceiverId,
        bytes: Bytes,
    },
    /// An RTCP packet that a receiver sent inside its RTSP connection.
    ReceiverRtcp {
        stream: StreamId,
        receiver: ReceiverId,
        bytes: Bytes,
    },
    /// There is such a link from now on, or it is another one.
    PutLink {
        link: LinkId,
        name: String,
        config: Box<LinkConfig>,
    },
    /// A link is no more.
    RemoveLink {
        link: LinkId,
    },
    /// Answer when all commands before this one have been carried out.
    Settle {
        done: oneshot::Sender<()>,
    },
    Shutdown,
}

/// The best level of a stream that its receivers with one worker want; `None` if there are none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// Its number there.
    pub(crate) stream: StreamId,
    pub(crate) level: Option<Level>,
}

/// What a receiver gets of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Tracks, and what they carry.
    pub format: Format,
    /// How many levels there are to choose from; 0 if that is not known.
    pub levels: u8,
}

/// Reads what is to be seen.
///
/// # Errors
/// It is no view.
pub(crate) fn read_view(text: &str) -> Result<View, ControlError> {
    text.parse().map_err(|error: NoView| ControlError::Unsupported(error.to_string()))
}

/// Reads a quality.
///
/// # Errors
/// It is no level.
pub(crate) fn read_level(text: &str) -> Result<Level, ControlError> {
    Ok(text.parse::<Level>()?)
}

impl From<NoLevel> for ControlError {
    fn from(error: NoLevel) -> Self {
        ControlError::Unsupported(error.to_string())
    }
}

/// A request about the services of a stream.
#[derive(Debug)]
pub(crate) enum ServicesCommand {
    /// Put other services in place; what was there before comes back.
    Put { stream: StreamId, services: Services, reply: Reply<Swapped> },
    /// Let a receiver see something else from now on.
    View { stream: StreamId, receiver: ReceiverId, view: View, reply: Reply<()> },
    /// Let a receiver have another quality from now on.
    Level { stream: StreamId, receiver: ReceiverId, level: Level, reply: Reply<()> },
    /// What a receiver asks its own session: what it gets, and for a level if it names one.
    Session { stream: StreamId, receiver: ReceiverId, level: Option<u8>, reply: Reply<SessionState> },
    /// Let an element pass everything as it is, or no longer.
    Bypass { stream: StreamId, element: String, bypass: bool, reply: Reply<()> },
}

/// Services to be put in place.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) graph: Option<Box<Graph>>,
    /// Through the contexts in which stages of it run, if there are such.
    pub(crate) line: Option<Line>,
    /// What is to be said of them.
    pub(crate) note: Option<String>,
}

/// Services that were taken out.
#[derive(Debug)]
pub(crate) struct Swapped {
    /// What was there before.
    pub(crate) before: Option<Box<Graph>>,
    /// How long packets had to wait.
    pub(crate) took: std::time::Duration,
}

/// Where the answer to a command goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, ControlError>>;

/// A source that begins its turn.
#[derive(Debug)]
pub(crate) struct SourceSpec {
    /// What it carries.
    pub(crate) format: Format,
    /// Who it is, for people.
    pub(crate) peer: String,
    pub(crate) feed: Feed,
}

/// How a source's packets reach the worker.
#[derive(Debug)]
pub(crate) enum Feed {
    /// From a connection that a task of control reads.
    Queue(mpsc::Receiver<Ingest>),
    /// From sockets that the worker reads itself; the queue is kept, and dropped at the turn's end.
    Sockets(Vec<SourceSocket>, mpsc::Receiver<Ingest>),
}

/// What a publisher's task hands to the worker.
#[derive(Debug)]
pub(crate) enum Ingest {
    /// An RTP packet, or whole transport stream packets.
    Media { track: u8, bytes: Incoming },
    /// A compound RTCP packet.
    Rtcp { track: u8, bytes: Bytes },
    /// So many packets found the queue full before this.
    Dropped { reason: DropReason, packets: u64 },
}

/// A UDP socket that a source sends to.
#[derive(Debug)]
pub(crate) struct SourceSocket {
    pub(crate) socket: std::net::UdpSocket,
    pub(crate) track: u8,
    pub(crate) role: SocketRole,
    /// Only packets from this address count, if it is known.
    pub(crate) from: Option<IpAddr>,
}

/// What comes in at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketRole {
    /// Transport stream packets.
    Ts,
    /// RTP packets.
    Rtp,
    /// RTCP packets.
    Rtcp,
}

/// A receiver that joins.
#[derive(Debug)]
pub(crate) struct JoinSpec {
    pub(crate) receiver: Receiver,
    pub(crate) delivery: Delivery,
    /// The same for the core, with what the stream says where the receiver says nothing; the worker puts in the
    /// number of its branch.
    pub(crate) sink: SinkSpec,
    /// Told why, when the relay ends it.
    pub(crate) closed: oneshot::Sender<CloseReason>,
}

/// The place that a receiver has got.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Where its RTP tracks begin.
    pub(crate) starts: Vec<StartPoint>,
    /// The tracks of the stream that have no place in what it gets, by name; none before there was a source.
    pub(crate) left_out: Vec<String>,
}
