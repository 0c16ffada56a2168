//! The door: what every peer passes, whatever it came in by.
//!
//! | step | module |
//! |---|---|
//! | a connection is accepted, if there is a place for it | [`accept`], [`admission`] |
//! | TLS | [`tls`] |
//! | the path, the query and the token of a request are read | [`request`] |
//! | the token is compared, unless too many wrong ones came from the address | [`access`], `credential`, `failures` |
//! | a token that is signed is verified, by keys that are kept up to date | `jwt` |
//! | a program is asked for what is not known here | `hook` |
//! | what the token gives, and whether that still holds | `rules`, [`grant`] |
//! | which user of this machine a peer is | [`local`] |
//! | what is kept for when descriptors run out | `spare` |
//! | what is refused | [`refused`] |
//!
//! A front brings its own words: how a request is written, and how each [`Refused`] is answered.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns files, sockets and locks; no packet passes here"
)]

pub mod accept;
pub mod access;
pub mod admission;
mod credential;
mod failures;
pub mod grant;
mod hook;
mod jwt;
pub mod limits;
pub mod local;
mod refusals;
pub mod refused;
pub mod request;
mod rules;
mod saved;
mod seldom;
mod spare;
mod subject;
pub mod tls;

pub use accept::{accept, accept_to_the_last};
pub use access::{Door, Look};
pub use admission::{Counts, Permit};
pub use credential::{Judge, Known, Verdict};
pub use grant::{Grant, Pass};
pub use hook::ask_again;
pub use jwt::keep_keys;
pub use refusals::Refusal;
pub use refused::Refused;
pub use request::{Request, StreamName, query_value, selection};
pub use rules::{Right, Rules};
pub use saved::SavedGrant;
pub use subject::subject;
