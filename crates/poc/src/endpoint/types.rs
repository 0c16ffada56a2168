//! What goes in and out of an endpoint.

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::Malformed;
use outflow_petri::leb128::TooLong;
use outflow_petri::service::{Beyond, Request, Service};

use crate::connection;
use crate::packet::Code;
use crate::protection::{HandshakeError, ServerHandshake};

/// How an endpoint calls a connection, from when it is asked for until it is over. None is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub(super) u64);

impl Handle {
    /// Its number, by which it is found in what was saved.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Makes the handshake for each attempt of a client.
pub type Handshakes = Box<dyn FnMut() -> Option<Box<dyn ServerHandshake>> + Send>;

/// How an endpoint behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How its connections do.
    pub connection: connection::Settings,
    /// Connections, and those that are asked for. At this many, further clients are refused.
    pub connections_max: usize,
    /// How long a client asks, and a server has to decide.
    pub patience: Duration,
}

impl Default for Settings {
    /// 16,384 connections, 5 s.
    fn default() -> Self {
        Settings {
            connection: connection::Settings::default(),
            connections_max: 16_384,
            patience: Duration::from_secs(5),
        }
    }
}

/// What there is to do for a connection.
#[derive(Debug)]
pub enum Notice {
    /// A client asks: to be answered by `accept` or `refuse`.
    Asked {
        /// From where.
        from: SocketAddr,
        /// For what.
        request: Request,
    },
    /// The server has agreed: the connection is there.
    Connected {
        /// To what.
        service: Service,
    },
    /// There is no connection.
    Failed(ConnectError),
    /// There are events to be read.
    Ready,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No server answered.
    #[error("there is no answer from {0}: check the address, and that UDP gets there")]
    Silent(SocketAddr),
    /// The server does not want to.
    #[error("the server refuses: {text} (code {})", code.0)]
    Refused {
        /// Why.
        code: Code,
        /// The same for people.
        text: String,
    },
    /// The server speaks another version.
    #[error("the server speaks version {theirs} of the protocol: use a matching release at both ends")]
    OtherVersion {
        /// Which one.
        theirs: u8,
    },
    /// The request is too long; the application is to blame.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// There is no hello; keys or system are to blame.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The server's answer cannot be read.
    #[error("the server's answer cannot be read: {0}")]
    Malformed(Malformed),
    /// The server offers what was not asked for.
    #[error("the server offers more than was asked for: {0}")]
    NotAsked(Beyond),
}

/// Why a client cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// It does not ask (any more).
    #[error("this handle is not known (any more)")]
    NotAsked,
    /// The service is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The handshake failed.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

/// What happened to datagrams that are of no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Hellos, and of them those without a cookie of ours.
    pub hellos: u64,
    /// Hellos that were answered by a cookie.
    pub retries: u64,
    /// Hellos of clients that may not connect, by their keys.
    pub strangers: u64,
    /// Hellos refused because there were too many connections.
    pub busy: u64,
    /// Hellos of versions that are not spoken here.
    pub other_versions: u64,
    /// Dropped: cannot be read, or is nothing of ours.
    pub malformed: u64,
    /// Dropped: of connections that are not known.
    pub unknown: u64,
    /// Resets that said so.
    pub resets: u64,
    /// Dropped: came before there was a connection.
    pub early: u64,
    /// Answers that were left out because there were too many.
    pub answers_left_out: u64,
}
