//! Why a peer is not let in.

use std::time::Duration;

use outflow_config::Invalid;

use crate::limits::{HOOK_AGAIN, OVERLOAD_WAIT};

/// A peer is not let in. Its text names the cause and what to do; each front has one table of what it answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No stream can be called that.
    #[error(transparent)]
    BadName(#[from] Invalid),
    /// What of the stream is asked for cannot be read.
    #[error("{0}")]
    BadSelection(String),
    /// A token is needed and none was given.
    #[error("a token is needed: give it as password, as ?token=…, or as Authorization: Bearer …")]
    TokenMissing,
    /// The token given is not among those configured.
    #[error("the token is not one of those that [access] lists for this")]
    TokenWrong,
    /// The token given is good for something else.
    #[error("token '{name}' does not give this: {why}; see [access]")]
    NotGiven {
        /// What it is called.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// What the peer was let in for before holds no longer.
    #[error("what let this in is no longer good: show a token that is")]
    Revoked,
    /// Control without a configured token is for the machine itself.
    #[error("control is open to this machine only until [access] control lists a token")]
    NotLocal,
    /// The relay was told to end, and takes no more peers.
    #[error("the relay is about to end: ask another one, or this one later")]
    Draining,
    /// The program that says which peer may come in has not answered.
    #[error(
        "[access.hook] does not answer: try again in {} s; the relay's log has the reason",
        seconds(HOOK_AGAIN)
    )]
    NotAnswered,
    /// Too many wrong tokens came from the address.
    #[error("too many wrong tokens came from this address: try again in {} s", seconds(*.wait))]
    TooOften {
        /// How long it has to wait.
        wait: Duration,
    },
    /// The relay has too much to do already.
    #[error(
        "the relay has too much to do to take on more: try again in {} s; its operator finds the reason in \
         'overload' of /api/v1/relay",
        seconds(OVERLOAD_WAIT)
    )]
    Overloaded,
    /// A configured number is reached.
    #[error("{what} are at their limit of {limit}: raise {key} in the configuration, or free some")]
    Full {
        /// What there would be too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
        /// The configuration key that says so.
        key: &'static str,
    },
}

impl Refused {
    /// After how many seconds it makes sense to ask again, if that is known.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Refused::TooOften { wait } => Some(seconds(*wait)),
            Refused::NotAnswered => Some(seconds(HOOK_AGAIN)),
            Refused::Overloaded => Some(seconds(OVERLOAD_WAIT)),
            _ => None,
        }
    }
}

/// Whole seconds, none too few.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
