//! The steps from a request to its answer.

use super::message::Question;
use super::publication::Publication;
use super::reply::Reply;
use crate::Pair;

/// A SETUP on its way.
#[derive(Debug)]
pub(super) struct Setup<S> {
    pub(super) selection: S,
    pub(super) base: String,
    /// As the URL names it; once a transport is chosen, the one that is meant.
    pub(super) track: Option<usize>,
}

/// What an answer of the driver is for.
#[derive(Debug)]
pub(super) enum Step<S> {
    Entering,
    Describing { base: String },
    Counting(Setup<S>),
    Placing(Setup<S>, Pair<u16>),
    Joining(Setup<S>),
    Announcing(Box<Publication>),
    Opening(u8, Pair<u16>),
    Playing,
    Recording,
    Setting,
}

/// How it goes on with a request.
#[derive(Debug)]
pub(super) enum Next<S> {
    Ask(Question<S>, Step<S>),
    Done(Reply),
    /// Packets follow the answer.
    Start {
        reply: Reply,
        within: bool,
    },
    TearDown,
}
