//! What control may ask of a worker: values, sent through a channel, carried out between packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use outflow_config::LinkConfig;
use outflow_media::Format;
use outflow_relay::element::view::NoView;
use outflow_relay::graph::Graph;
use outflow_relay::receive::Incoming;
use outflow_relay::schedule::StartPoint;
use outflow_relay::{
    DropReason, Level, LevelBounds, LinkId, NoLevel, Priority, Report, SinkSpec, StreamOptions, View,
};
use tokio::sync::{mpsc, oneshot};

use super::{CloseReason, ControlError, SessionState, WriteSide};
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
        wanted: Wanted,
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
    /// What was handed on to a receiver has not come to it.
    Undelivered {
        stream: StreamId,
        receiver: ReceiverId,
        report: Report,
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

/// What of a stream a receiver wants. The default is the stream as it comes in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// One of its branches, by name.
    pub branch: Option<String>,
    /// What is to be seen of its images.
    pub view: View,
    /// The quality.
    pub level: Level,
}

impl Wanted {
    /// What `branch=`, `level=`, `part=`, `size=` and `gray=` of a query ask for; the rest of it is left
    /// alone.
    ///
    /// # Errors
    /// A view or a level that cannot be read.
    pub fn of_query(query: &str) -> Result<Self, ControlError> {
        let (mut branch, mut level, mut view) = (None, Level::BEST, Vec::new());
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "branch" => branch = Some(value.into_owned()),
                "level" => level = read_level(&value)?,
                "part" | "size" | "gray" => view.push(format!("{name}={value}")),
                _ => {}
            }
        }
        Ok(Wanted { branch, view: read_view(&view.join("&"))?, level })
    }

    /// Whether it is the stream as it comes in.
    pub fn is_all(&self) -> bool {
        *self == Wanted::default()
    }
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
    /// What it wants; the worker puts in the number of its branch.
    pub(crate) sink: SinkSpec,
    /// What of the stream it wants.
    pub(crate) wanted: Wanted,
    pub(crate) route: Route,
    pub(crate) kind: &'static str,
    pub(crate) to: String,
    pub(crate) name: Option<String>,
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

/// How a receiver is reached.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// By UDP, from the worker's own RTP socket pair at an address of the machine: each track to its addresses.
    Rtsp { from: IpAddr, to: Vec<TrackAddress> },
    /// By UDP, from a socket of its own.
    Push(PushRoute),
    /// Through a connection that is given by [`Command::Start`]: the bytes as they are.
    Raw,
    /// The same, each packet with what it is worth in front.
    Units,
    /// The same, each packet in an RTSP interleaved frame (RFC 2326, section 10.12).
    Interleaved(Vec<TrackChannel>),
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
pub(crate) struct PushRoute {
    /// The address; a track `n` of an RTP stream goes to its port plus `2 n`.
    pub(crate) to: SocketAddr,
    /// The address that a group is sent from, if it matters.
    pub(crate) from: Option<Ipv4Addr>,
    pub(crate) ttl: Option<u8>,
    pub(crate) interface: Option<String>,
    /// Whether members on this machine get what goes to a group, too.
    pub(crate) loops: bool,
}

impl PushRoute {
    /// Whether packets to it need no socket of their own: it is one host, reached as the system's
    /// routes say, with the usual time to live.
    pub(crate) fn is_plain(&self) -> bool {
        !self.to.ip().is_multicast() && self.ttl.is_none() && self.interface.is_none()
    }
}
