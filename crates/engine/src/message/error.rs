//! What can go wrong when the relay is asked for something, and what to do about it.

use outflow_context::LineError;
use outflow_door::Refused;

/// A request that was not granted. Its text names the cause and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// No such stream is configured.
    #[error("no stream named '{0}' is configured: add [streams.{0}] and reload, or correct the name")]
    UnknownStream(String),
    /// The stream's source is not a pushed one.
    #[error("stream '{0}' takes no publisher: it has another source; set source = \"push\" to publish to it")]
    NotPushed(String),
    /// Another peer publishes already.
    #[error("stream '{0}' is being published already: end that first, or see takeover in the configuration")]
    Busy(String),
    /// The stream was removed while something was asked of it.
    #[error("the stream has just been removed: add it again and reload, or ask for another one")]
    StreamGone,
    /// The peer that asks is not let in.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The stream has never had a source, so nothing is known of its format.
    #[error("stream '{0}' has no source yet: try again once it is published")]
    NoSource(String),
    /// No such receiver.
    #[error("no receiver {0}: it has left, or never was")]
    UnknownReceiver(u64),
    /// No such session.
    #[error(
        "there is no such session: Outflow-Session in the answer to GET /NAME.ts says where one's own is, \
         and it ends with that download"
    )]
    UnknownSession,
    /// A peer that says which level of a group it wants is not known to receive it.
    #[error("{0}")]
    NoMember(String),
    /// A session is asked too often, or a host says too much.
    #[error("{0}")]
    TooOften(String),
    /// A receiver of that name is being sent to.
    #[error("a receiver named '{0}' exists already: choose another name, or remove it first")]
    NameTaken(String),
    /// That address is sent to already: two streams there would be one that cannot be decoded.
    #[error("stream '{0}' is sent to {1} already: remove that first")]
    AddressTaken(String, String),
    /// No such configured or added receiver.
    #[error("no receiver named '{0}' is sent stream '{1}': see the list of receivers for the names")]
    UnknownSink(String, String),
    /// No such link.
    #[error("no link named '{0}' is configured: add [link.{0}] and reload, or correct the name")]
    UnknownLink(String),
    /// No such element.
    #[error("stream '{1}' has no element named '{0}': see its list of elements for the names")]
    UnknownElement(String, String),
    /// Another process could not go on with the relay, which goes on as before.
    #[error("the relay was not upgraded, and goes on as before: {0}")]
    NotUpgraded(String),
    /// Another process has gone on with the relay meanwhile.
    #[error("another process has the relay now: ask again")]
    HandedOver,
    /// A configured number is reached.
    #[error("{what} are at their limit of {limit}: raise {key} in the configuration, or free some")]
    Limit {
        /// What there would be too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
        /// The configuration key that says so.
        key: &'static str,
    },
    /// What is reserved elsewhere leaves no room: what, and what to do.
    #[error("{0}")]
    NoRoom(String),
    /// The stream's format cannot be carried as asked.
    #[error("{0}")]
    Unsupported(String),
    /// The system refused.
    #[error("{doing}: {error}")]
    System {
        /// What was being done.
        doing: String,
        /// The system's words.
        error: String,
    },
    /// The relay is shutting down.
    #[error("the relay is shutting down")]
    ShuttingDown,
    /// The configuration could not be loaded; nothing was changed.
    #[error("{0}")]
    Configuration(String),
}

impl ControlError {
    /// The error for something that the system refused.
    pub fn system(doing: impl Into<String>, error: &std::io::Error) -> Self {
        ControlError::System { doing: doing.into(), error: error.to_string() }
    }
}

impl From<LineError> for ControlError {
    fn from(error: LineError) -> Self {
        match &error {
            LineError::TooMany => ControlError::NoRoom(error.to_string()),
            LineError::System { context, error } => {
                ControlError::system(format!("starting the context '{context}'"), error)
            }
        }
    }
}

/// Why a receiver's or a publisher's connection was ended by the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// It lost packets for longer than `hopeless_after` without ever catching up.
    #[error("fell behind for longer than hopeless_after")]
    Hopeless,
    /// Its connection broke or was closed by the peer.
    #[error("connection closed by the peer")]
    PeerGone,
    /// The source came back with another format, which this receiver was not told of.
    #[error("the stream's format changed")]
    FormatChanged,
    /// The branch was taken out of the configuration, or its services now make something else.
    #[error("the branch was removed")]
    BranchRemoved,
    /// The stream was taken out of the configuration.
    #[error("the stream was removed")]
    StreamRemoved,
    /// Another publisher has the stream now.
    #[error("another publisher has taken the stream over")]
    TakenOver,
    /// It was to publish, and no media came for as long as `publish_timeout`.
    #[error("no media came for publish_timeout")]
    NoMedia,
    /// What it was let in by holds no longer: a token that has expired, or was taken out of the configuration.
    #[error("its token is no longer good: it has expired, or [access] says something else now")]
    Revoked,
    /// It is of the low class, and the relay has too much to do.
    #[error("the relay has too much to do, and ends receivers of the low class")]
    Shed,
    /// An operator removed it.
    #[error("removed by an operator")]
    Removed,
    /// The relay shuts down.
    #[error("the relay is shutting down")]
    ShuttingDown,
}
