//! Trees of relays over unicast: from which parent a relay takes a stream that is wanted below it, and which
//! children it serves.
//!
//! A [`Node`] is one relay's place in the trees of all its streams. A relay is a client of its parent and a
//! server to its children. Asked for a stream that it does not have, it asks the directory which relays have
//! it, takes it from the nearest of them at the best level that is wanted below ([`crate::demand`]), and lets
//! it go when no receiver wants it any more.
//!
//! | module | what |
//! |---|---|
//! | `above` | towards the source: which relay is asked, taken, lost |
//! | `below` | towards the receivers: which are served |
//! | `candidates` | possible parents, known beforehand, and which is best |
//! | [`limits`] | times and limits |
//!
//! # Loops
//!
//! A source beats twice a second; the beat goes down the tree, and with it a [`Path`]: which source, which
//! beat, how many relays. Paths are ordered, the newer beat and the shorter way first. A relay that has
//! children takes a parent only if the parent's path is smaller than what it told its children last, and what
//! it tells them only ever gets smaller. Hence along the tree, from child to parent, what was told last gets
//! strictly smaller at any time, whatever is lost or late, and whatever the directory says: there is no loop,
//! not even for a moment. It is the feasibility condition of EIGRP (RFC 7868) with the numbers of
//! DSDV and Babel (RFC 8966 section 2.4 and 2.5). A path that lists relays is not enough: two that move at
//! the same time, each below the other, both find themselves in no list.
//!
//! A relay that finds no such parent lets its children go, after [`limits::PATIENCE`] at the most. Without
//! children it may take any relay: none could close a loop. As the beat does not come to relays that are cut
//! off, and comes to all others, that is rare: every relay outside of its own subtree may be taken half a
//! second later.
//!
//! What counts is that the parent serves the child under the number that the child takes it by: a parent that
//! was restarted serves no child, and a child that was restarted asks again, by another number.
//!
//! # Failures
//!
//! - **A parent is gone or silent** ([`Node::handle_lost`]; the driver knows, as media flows): the best
//!   candidate is asked, others if it does not answer, without the directory. Candidates are others' children
//!   and parents, which grants, refusals and beats name, and what the directory said. Each relay finds others a
//!   bit nearer than they are, so that the children of a dead parent spread.
//! - **A parent does not give one stream** ([`Node::handle_failed`]): another is taken for that one only. One
//!   that failed comes after all others for a while, and is asked more and more rarely if there is no other.
//! - **The way up is broken farther above**: the relay directly below it acts. If beats stay out for
//!   [`limits::DRY`], every relay below does; a dry relay is no parent, so that those cut off do not gather.
//! - **A partition**: the part with a source is served. The others ask again, more and more rarely, and are
//!   served within [`limits::LOOKUPS`] after it is over.
//! - **Two sources of one stream**: the smaller [`Root`] is taken by all that hear of it, from the directory
//!   or from neighbours. Meanwhile there are two trees. In a partition each part has the one it can reach; if
//!   the better one is lost, the other is found as any parent is.
//! - **The directory is away**: everything goes on with what is known. When it is back
//!   ([`Node::handle_directory_back`]), each relay says again what it has. What it says may be wrong: a relay
//!   that is asked in vain says so.
//! - **A relay is restarted**: it is a new one that knows nothing, with a larger incarnation.
//! - **Messages are lost**: asks are repeated at others, wants are repeated, a relay that is served without
//!   wanting it says so, and a relay that wants from one that does not serve is told so.
//!
//! A better parent is asked before the one that is there is left; for that moment, both send.

mod above;
mod below;
mod candidates;
mod counters;
pub mod limits;
mod message;
mod node;
mod path;
mod stream;

pub use counters::Counters;
pub use message::{Action, Message, Refusal};
pub use node::{Node, Settings};
pub use path::{Contact, Location, NoRelayId, Offer, Path, RelayId, Root, StreamId};

use crate::Level;

/// A child below that wants a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Child {
    /// Receivers of one level, however many.
    Receivers(Level),
    Relay(RelayId),
}

#[cfg(test)]
mod tests;
