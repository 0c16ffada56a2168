//! What goes in and out of a connection.

use core::net::SocketAddr;
use core::time::Duration;

use bytes::Bytes;
use outflow_congestion::Options;
use outflow_petri::service::Class;

use crate::limits::DATAGRAM_BYTES_MAX;
use crate::packet::{Code, Mark};
use crate::recovery::{GiveUp, ReceivedSettings, RepairSettings, SentSettings};

/// How a connection behaves; the ends need not agree on it, but for the longest delay of acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// When acknowledgements are sent.
    pub received: ReceivedSettings,
    /// What is known of the path before.
    pub sent: SentSettings,
    /// What is sent again, and with how much redundancy.
    pub repairs: RepairSettings,
    /// How fast to send.
    pub congestion: Options,
    /// Nothing heard for so long ends the connection.
    pub idle: Duration,
    /// Nothing sent for so long, and the other end is asked whether it is there. To be well below its `idle`.
    pub keep_alive: Duration,
    /// Bytes of a datagram, at most; what the path carries is found out. At least 1200.
    pub datagram_bytes_max: usize,
    /// Whether packets are sent as ECN-capable, as long as the path lets that through.
    pub marks: bool,
}

impl Default for Settings {
    /// Ends after 10 s of silence, and asks after 2 s; datagrams of 1452 bytes, the most that IPv6 has in an
    /// Ethernet frame.
    fn default() -> Self {
        Settings {
            received: ReceivedSettings::default(),
            sent: SentSettings::default(),
            repairs: RepairSettings::default(),
            congestion: Options { datagram_bytes: DATAGRAM_BYTES_MAX as u64, ..Options::default() },
            idle: Duration::from_secs(10),
            keep_alive: Duration::from_secs(2),
            datagram_bytes_max: 1452,
            marks: true,
        }
    }
}

/// What a unit is worth to its sender, where that is less than the service says; by default it is not. The
/// receiver is not asked: it is told of what is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worth {
    /// It is of use for so long from now on, if that is over before what its class says.
    pub useful_for: Option<Duration>,
    /// How it is sent again, and whether it may be left out. What was agreed on is the most: a class that is
    /// stronger than that of the service changes nothing.
    pub class: Option<Class>,
    /// How much it is missed when there is more than can be sent in time: of units of one class, those of the
    /// lowest rank are left out first.
    pub rank: u8,
}

/// What an application is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A unit came, and it is its turn.
    Delivered {
        /// Which one.
        unit: u64,
        /// What it is.
        data: Bytes,
    },
    /// A unit will not be delivered: it did not come in time, or was given up by its sender.
    Missed {
        /// Which one.
        unit: u64,
    },
    /// A unit is not sent, or not sent again. It may have come all the same.
    GivenUp {
        /// Which one.
        unit: u64,
        /// Why.
        why: NotSent,
    },
    /// The receiver is done with a unit, and did not have it: of the same units its application was told
    /// [`Event::Missed`].
    Lost {
        /// Which one.
        unit: u64,
    },
    /// There is room for units again, after one was refused.
    Writable,
    /// The connection is over. The last event.
    Closed(Closed),
}

/// Why a unit is not sent (again).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotSent {
    /// Its time was over before it could be sent.
    TooLate,
    /// There was more than could be sent in time, and this was missed the least.
    Overload,
    /// What it needs was not sent.
    Dependency,
    /// The receiver does not wait for it any more.
    NotNeeded,
    /// It was lost, and is not sent again.
    NotRepaired(GiveUp),
}

impl NotSent {
    /// A word for it, in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotSent::TooLate => "too_late",
            NotSent::Overload => "overload",
            NotSent::Dependency => "dependency",
            NotSent::NotNeeded => "not_needed",
            NotSent::NotRepaired(_) => "not_repaired",
        }
    }
}

/// Why a unit was not taken; the application's to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It would never fit.
    #[error(
        "a unit of {bytes} bytes; the receiver keeps {most}: send smaller ones, or ask for a larger buffer"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
        /// How long it may be.
        most: u32,
    },
    /// There are units behind it already.
    #[error("unit {unit} comes after unit {next} was next: give units in ascending order")]
    Passed {
        /// Which one.
        unit: u64,
        /// The lowest that can be given.
        next: u64,
    },
    /// Too much waits. [`Event::Writable`] tells when to try again.
    #[error("too much waits to be sent; try again when there is room")]
    Full,
    /// This end of the connection does not send.
    #[error("the service has no flow in this direction")]
    NoFlow,
    /// The connection is over, or about to be.
    #[error("the connection is over")]
    Closed,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Which side ended it.
    pub by: By,
    /// Why.
    pub code: Code,
    /// The same for people.
    pub text: String,
}

/// Which side ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// The application at this end.
    Us,
    /// This end, because of something it noticed.
    Here,
    /// The other end.
    Peer,
}

/// What a peer did that must not be; the connection is closed by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer {0}")]
pub struct Violation(pub(super) &'static str);

/// A datagram to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// How to mark it.
    pub mark: Mark,
}

/// What a connection counted of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatagramCounts {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Datagrams that were received and read.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Dropped: came before, or so late that this is not known.
    pub duplicate: u64,
    /// Dropped: not sealed by the peer.
    pub forged: u64,
    /// Dropped: cannot be read, or is for another connection.
    pub malformed: u64,
    /// Dropped: came when the connection was over.
    pub closed: u64,
    /// Events of the sender that the application did not read in time.
    pub unread: u64,
}
