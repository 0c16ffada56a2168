//! Control: what can be asked of a running relay, and what it shows.
//!
//! [`Control`] is a handle that fronts, the API and sources share. It knows which streams there are
//! and which workers serve each; every request goes to that worker as a value and comes back as an
//! answer. No lock is ever taken on a packet's way. [`Relay`] starts all of it from a configuration,
//! with the protocols that it is given ([`Front`]); it names none of them.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod admission;
mod change;
mod control;
mod decisions;
mod description;
mod ending;
mod events;
mod front;
mod grants;
mod health;
pub mod limits;
mod links;
mod listen;
mod load;
mod overload;
mod placing;
mod publisher;
mod publishers;
mod push;
mod pushes;
mod reach;
mod receiver;
mod receivers;
mod reconnect;
mod registry;
mod relay;
mod reserves;
mod rules;
mod services;
mod session;
mod shared;
mod shedding;
mod supervise;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
mod turn;
pub mod upgrade;
mod usage;
mod workers;

pub use change::{Changed, StreamLimits};
pub use control::Control;
pub use decisions::{Decisions, RuleDecision, RuleLog};
pub use description::session_description;
pub use ending::{Drain, Ending};
pub use events::{Event, Events, Happened};
pub use front::{Front, MakeElement, Started, protocols};
pub use grants::Wanted;
pub use health::{Health, Heartbeat, LogState};
pub use listen::{Listener, datagrams, place};
pub use load::{load, refuse_empty};
pub use overload::{Overload, OverloadState, Scarce};
pub use publisher::{Announced, Heard, PublishOptions, Publisher, Push, UdpPorts};
pub use publishers::{HeardOfAll, Publishers};
pub use pushes::PushOptions;
pub use reach::{Known, Reach};
pub use receiver::Playing;
pub use receivers::{is_session_of, sessions_of_tokens};
pub use reconnect::Reconnect;
pub use relay::{Ended, Relay};
pub use session::SessionToken;
pub use task::Task;
pub use turn::EndedTurns;
pub use upgrade::{Lingering, Member, PULLED, Part, Upgrade, Upgraded, hand_over, recovered};
