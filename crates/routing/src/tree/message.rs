//! What relays say to each other, and what a node asks its driver to do.

use core::time::Duration;

use super::path::{Contact, Offer, Path, RelayId, StreamId};
use crate::Level;

/// What relays say to each other of a stream. `ask` is the number of the subscription, which the child chose:
/// what is said of another one is old.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of a variant are said with it")]
pub enum Message {
    /// To a parent: may I have it, at this level?
    Ask { ask: u32, level: Level },
    /// To a child: yes, from now on.
    Grant {
        ask: u32,
        /// That of the parent.
        path: Path,
        /// Since when the parent has heard of no beat.
        age: Duration,
        /// Who else has it.
        others: Vec<Offer>,
    },
    /// To a child: no. Others may have it.
    Refuse { ask: u32, why: Refusal, others: Vec<Offer> },
    /// To a parent: I want this level from now on, or still.
    Want { ask: u32, level: Level },
    /// To a child: the source is there.
    Beat { ask: u32, path: Path, others: Vec<Offer> },
    /// To a parent: no more.
    Leave { ask: u32 },
    /// To a child: no more, or you are none.
    Drop { ask: u32 },
}

/// Why a relay is no parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// It does not have the stream, or has not heard of its source for too long, or has it of who asks.
    #[error("it does not have the stream")]
    NoPath,
    /// It has as many children as it may.
    #[error("it has as many children as it may")]
    Full,
    /// [`super::limits::DEPTH_MAX`].
    #[error("the tree is too deep there")]
    TooDeep,
}

/// What a node asks its driver to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields of a variant are said with it")]
pub enum Action {
    /// Say this to a relay, over the connection with it, which is made if there is none. If it cannot be
    /// said, [`super::Node::handle_lost`] is told so.
    Send { to: Contact, stream: StreamId, message: Message },
    /// Take the stream from this parent from now on, and from no other. The one before goes on until it has
    /// read the `Leave` that comes next, so that the change may be at a key frame.
    Take { stream: StreamId, parent: RelayId },
    /// There is no parent now.
    Lost { stream: StreamId },
    /// Send the stream to this child, at this level.
    Serve { stream: StreamId, child: RelayId, level: Level },
    /// Send it no more.
    Stop { stream: StreamId, child: RelayId },
    /// Say this to the directory, which forgets it after [`super::limits::ENTRY_LIFE`].
    Register { stream: StreamId, offer: Offer },
    /// The relay no longer has the stream.
    Withdraw { stream: StreamId },
    /// Ask the directory who has the stream. [`super::Node::handle_offers`] takes the answer: some that are
    /// near, and some others.
    Lookup { stream: StreamId },
}
