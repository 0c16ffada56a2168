//! What a stream answers when it is polled.

use core::time::Duration;

use outflow_media::Time;

use super::branches::Stages;
use super::handed::Handed;
use crate::feedback::Feedback;
use crate::schedule::SinkKey;
use crate::send::Order;

/// What the driver has to do next. This is all: when it is [`Output::Wait`], nothing else has to be asked.
#[derive(Debug, Clone)]
pub enum Output {
    /// Send these packets, then report what did not go.
    Order(Order),
    /// Send RTCP sender reports (see [`Stream::sender_report`](crate::Stream::sender_report)).
    SenderReports(ReportTo),
    /// What receivers say of the stream, for its publisher: where its source is.
    Feedback(Feedback),
    /// Give this, in this order, to each replica ([`Stream::handle_handed`](crate::Stream::handle_handed)).
    HandOver(Vec<Handed>),
    /// See to the services' stages that run elsewhere.
    Stages(Stages),
    /// Something happened that people or other parts of the program want to know.
    Event(Event),
    /// More urgent work may go first: not all that may be owed has been looked at. Poll again.
    GoOn,
    /// Nothing to do until something comes in, or until `until`. Polling earlier is harmless; any
    /// `handle_…` or report may change the answer.
    Wait {
        /// When to poll again at the latest, and why.
        until: Option<(Time, Wake)>,
    },
}

/// The sinks that sender reports go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTo {
    /// To every sink that gets RTP.
    All,
    /// To one that has just begun, so that it can bring its tracks together.
    One(SinkKey),
}

/// Why a stream wants to be polled at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// A receiver that catches up has its next turn, or packets have waited long enough for company or
    /// for their pace.
    CatchUp,
    /// The source may have gone away.
    SourceTimeout,
    /// A receiver may have become hopeless.
    Hopeless,
    /// Sender reports are due.
    SenderReports,
    /// A derived branch has no receivers any more.
    BranchLinger,
    /// What receivers have said is handed on to the publisher.
    Feedback,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Packets come in, for the first time or again.
    SourceUp,
    /// No packet has come for so long.
    SourceAway {
        /// For how long.
        silent: Duration,
    },
    /// The core has let a sink go. Its key may be given again from now on.
    SinkEnded {
        /// The sink's key, which is no longer valid.
        key: SinkKey,
        /// The driver's name for it.
        id: u64,
        /// Why.
        end: SinkEnd,
    },
}

/// Why the core lets a sink go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkEnd {
    /// It lost packets for longer than `hopeless_after` without ever catching up.
    Hopeless,
    /// The source's format is another one now, and the sink was told of the old.
    FormatChanged,
    /// The branch that it read is no longer there.
    BranchRemoved,
}
