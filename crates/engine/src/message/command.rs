//! What control may ask of a worker: values, sent through a channel, carried out between packets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outflow_config::LinkConfig;
use outflow_context::Line;
use outflow_graph::elements::view::NoView;
use outflow_graph::{Graph, View};
use outflow_media::Format;
use outflow_packet::{Level, NoLevel};
use outflow_relay::schedule::StartPoint;
use outflow_relay::{
    Encapsulation, Feedback, LevelBounds, LinkId, Priority, Selection, SinkSpec, StreamOptions,
};
use tokio::sync::oneshot;

use super::{
    CloseReason, ControlError, Delivery, Peer, PeerPath, Receiver, ReceiverId, RtcpCounts, SessionState,
    SourceId, SourceSpec, StreamId, UpgradeCommand, WaitingRtcp, WriteSide,
};
use crate::worker::{OwnerEnd, ReplicaEnd};

/// A request to the worker that owns the stream.
#[derive(Debug)]
pub enum Command {
    /// Make a stream.
    AddStream {
        /// The number of the stream.
        stream: StreamId,
        /// Its name.
        name: String,
        /// What its source is, for people.
        url: String,
        /// What the stream is like.
        options: StreamOptions,
        /// From its renditions, if it has no source of its own.
        replica_ends: Vec<ReplicaEnd>,
    },
    /// Remove one.
    RemoveStream {
        /// The number of the stream.
        stream: StreamId,
        /// Why, for its receivers.
        reason: CloseReason,
    },
    /// Serve receivers of a stream whose owner is with another worker, with what comes through the
    /// queues; `stream` is its number here.
    Replicate {
        /// The number of the stream.
        stream: StreamId,
        /// The number that it has where its source is.
        owner: StreamId,
        /// Its name.
        name: String,
        /// What the stream is like.
        options: StreamOptions,
        /// The queues by which its packets come.
        replica_ends: Vec<ReplicaEnd>,
    },
    /// Hand what comes in to another worker, too.
    Share {
        /// The number of the stream.
        stream: StreamId,
        /// The queue.
        owner_end: OwnerEnd,
        /// Whether the other end has all that has been before.
        knows: bool,
    },
    /// The stream has no receivers here: let its packets go, until it is replicated again.
    Rest {
        /// The number of the stream.
        stream: StreamId,
    },
    /// Let a stream be otherwise.
    SetOptions {
        /// The number of the stream.
        stream: StreamId,
        /// What the stream is like.
        options: StreamOptions,
    },
    /// Let receivers of a stream have no more than this.
    SetBounds {
        /// The number of the stream.
        stream: StreamId,
        /// What they may have.
        bounds: LevelBounds,
    },
    /// A source begins its turn at a stream.
    OpenSource {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the turn.
        source: SourceId,
        /// What it is.
        spec: SourceSpec,
        /// Where the answer goes.
        reply: Reply<()>,
    },
    /// Its turn is over.
    CloseSource {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the turn.
        source: SourceId,
    },
    /// Its packets come from another peer now.
    NameSource {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the turn.
        source: SourceId,
        /// What they come from, for people.
        peer: String,
    },
    /// What a receiver would get of a stream.
    Describe {
        /// The number of the stream.
        stream: StreamId,
        /// What of it, and in which form.
        wanted: (Selection, Encapsulation),
        /// Where the answer goes.
        reply: Reply<Described>,
    },
    /// About the services of a stream.
    Services(ServicesCommand),
    /// Take a receiver in; nothing is sent yet.
    Join {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// What it is.
        spec: Box<JoinSpec>,
        /// Where the answer goes.
        reply: Reply<Joined>,
    },
    /// Send to it from now on.
    Start {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// Where a byte stream goes.
        connection: Option<WriteSide>,
    },
    /// The same for a receiver that is reached by a state machine of its own.
    StartPeer {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// The state machine.
        peer: Box<dyn Peer>,
        /// Where its datagrams go.
        path: PeerPath,
    },
    /// Send nothing to it until it is resumed.
    Pause {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
    },
    /// Let it have a place at the newest key frame again.
    Resume {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// Where the answer goes.
        reply: Reply<Vec<StartPoint>>,
    },
    /// Let a receiver go.
    Leave {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// Why, for its receivers.
        reason: CloseReason,
    },
    /// Let a receiver be of another class.
    SetPriority {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// Its class.
        priority: Priority,
    },
    /// Bytes that are no media (a response) for a receiver that is a byte stream.
    Inject {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// The bytes.
        bytes: Bytes,
    },
    /// An RTCP packet that a receiver sent inside its connection.
    ReceiverRtcp {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// The packet.
        rtcp: WaitingRtcp,
    },
    /// What receivers of the stream with other workers say of it.
    Feedback {
        /// The number of the stream.
        stream: StreamId,
        /// What they say.
        feedback: Feedback,
    },
    /// There is such a link from now on, or it is another one.
    PutLink {
        /// The number of the link.
        link: LinkId,
        /// Its name.
        name: String,
        /// What it is like.
        config: Box<LinkConfig>,
    },
    /// A link is no more.
    RemoveLink {
        /// The number of the link.
        link: LinkId,
    },
    /// Make snapshots this often, at least.
    Snapshots {
        /// The time between two.
        every: Duration,
    },
    /// Answer when all commands before this one have been carried out.
    Settle {
        /// What is told.
        done: oneshot::Sender<()>,
    },
    /// About the upgrade to another process.
    Upgrade(UpgradeCommand),
    /// End, and all streams with you.
    Shutdown,
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
pub fn read_view(text: &str) -> Result<View, ControlError> {
    text.parse().map_err(|error: NoView| ControlError::Unsupported(error.to_string()))
}

/// Reads a quality.
///
/// # Errors
/// It is no level.
pub fn read_level(text: &str) -> Result<Level, ControlError> {
    Ok(text.parse::<Level>()?)
}

impl From<NoLevel> for ControlError {
    fn from(error: NoLevel) -> Self {
        ControlError::Unsupported(error.to_string())
    }
}

/// A request about the services of a stream.
#[derive(Debug)]
pub enum ServicesCommand {
    /// Put other services in place; what was there before comes back.
    Put {
        /// The number of the stream.
        stream: StreamId,
        /// The services.
        services: Services,
        /// Where the answer goes.
        reply: Reply<Swapped>,
    },
    /// Let a receiver see something else from now on.
    View {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// What it is to see.
        view: View,
        /// Where the answer goes.
        reply: Reply<()>,
    },
    /// Let a receiver have another quality from now on.
    Level {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// The level.
        level: Level,
        /// Where the answer goes.
        reply: Reply<()>,
    },
    /// What a receiver asks its own session: what it gets, and for a level if it names one.
    Session {
        /// The number of the stream.
        stream: StreamId,
        /// The number of the receiver.
        receiver: ReceiverId,
        /// The level.
        level: Option<u8>,
        /// Where the answer goes.
        reply: Reply<SessionState>,
    },
    /// Let an element pass everything as it is, or no longer.
    Bypass {
        /// The number of the stream.
        stream: StreamId,
        /// The name of the element.
        element: String,
        /// Whether it is passed by.
        bypass: bool,
        /// Where the answer goes.
        reply: Reply<()>,
    },
}

/// Services to be put in place.
#[derive(Debug)]
pub struct Services {
    /// The elements; none if packets go through as they are.
    pub graph: Option<Box<Graph>>,
    /// Through the contexts in which stages of it run, if there are such.
    pub line: Option<Line>,
    /// What is to be said of them.
    pub note: Option<String>,
}

/// Services that were taken out.
#[derive(Debug)]
pub struct Swapped {
    /// What was there before.
    pub before: Option<Box<Graph>>,
    /// How long packets had to wait.
    pub took: std::time::Duration,
}

/// Where the answer to a command goes.
pub type Reply<T> = oneshot::Sender<Result<T, ControlError>>;

/// A receiver that joins.
#[derive(Debug)]
pub struct JoinSpec {
    /// The number of the receiver.
    pub receiver: Receiver,
    /// How it is reached.
    pub delivery: Delivery,
    /// The same for the core, with what the stream says where the receiver says nothing; the worker puts in the
    /// number of its branch.
    pub sink: SinkSpec,
    /// What becomes of its RTCP.
    pub rtcp: Arc<RtcpCounts>,
    /// Told why, when the relay ends it.
    pub closed: oneshot::Sender<CloseReason>,
}

/// The place that a receiver has got.
#[derive(Debug)]
pub struct Joined {
    /// Where its RTP tracks begin.
    pub starts: Vec<StartPoint>,
    /// The tracks of the stream that have no place in what it gets, by name; none before there was a source.
    pub left_out: Vec<String>,
}
