//! The directory of relays, in NATS: which relay has which stream, where it is, and how much room it has.
//!
//! Relays on several machines find each other in a bucket of JetStream's key-value store. Each says what it
//! has ([`Directory::register`]) and what it is ([`Directory::announce`]), again and again; what is not said
//! again expires ([`Options::max_age`]). A relay that is asked for a stream that it does not have looks up
//! which relays do ([`Directory::lookup`]); [`outflow_routing::tree`] says what it makes of the answer.
//!
//! | module | what |
//! |---|---|
//! | [`entry`] | what is said, as JSON |
//! | [`key`] | under which keys |
//! | `options` | where NATS is, credentials, TLS |
//! | `own` | what this relay says, and what of it NATS is still to be told |
//! | `session` | one connection: handshake, bucket, values out and in |
//! | `watch` | streams that were looked up: read once, then followed for a while |
//! | `task` | connects, puts, and connects again |
//! | [`limits`] | what is bounded, and what happens then |
//!
//! # When NATS is away
//!
//! Nothing blocks and nothing fails. What the relay says is kept, the newest of each key; lookups say
//! [`Away`] at once. It is tried again for ever, with growing pauses. When it is back everything that the
//! bucket would still have is put again, whatever the server has kept, and [`Event::Back`] is sent.
//!
//! NATS is away when its connection is lost or silent, but also when it does not answer what it is told: a
//! cluster without a leader, a bucket that was removed, permissions that are missing.
//!
//! # What others say
//!
//! A client that may write to the bucket may write anything. Values are bounded, checked, and left out with
//! a count ([`Counters`]) if they are not what they should be; what they say may still be wrong, and a relay
//! that is asked in vain says so. Relays need to publish on `$KV.BUCKET.>`, `$JS.API.>` and `$JS.FC.>`, and
//! to subscribe to `_INBOX.>`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns clock and files, and nothing here is on a packet's way"
)]

mod choose;
mod counters;
mod directory;
pub mod entry;
pub mod key;
pub mod limits;
mod options;
mod own;
mod session;
mod task;
mod watch;

pub use counters::Counters;
pub use directory::{Away, Directory, Event};
pub use entry::{Entry, RelayRecord};
pub use options::{Auth, Error, Options, Storage, Tls};
