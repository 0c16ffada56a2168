//! ICE as a server with public addresses has it: lite (RFC 8445, section 2.5), with consent (RFC 7675).
//!
//! The peer finds the way: it sends checks to the candidates that it was told, and says which pair is to be used. An
//! [`Agent`] answers, one a peer. It does no I/O, and knows no time but the one that it is given:
//!
//! ```
//! # use outflow_ice::{Agent, Check, Output, Path};
//! # use outflow_media::Time;
//! # fn datagram(agent: &mut Agent, now: Time, path: Path, bytes: &[u8], mut send: impl FnMut(Path, Vec<u8>)) {
//! if let Ok(check) = Check::new_checked(bytes) {
//!     // A message that is not the peer's, or answers nothing, is counted, and gets no answer.
//!     let _ignored = agent.handle(now, path, &check);
//! }
//! let until = loop {
//!     match agent.poll() {
//!         Output::Send(path, bytes) => send(path, bytes),
//!         Output::Valid(_path) => { /* other datagrams from there are this peer's */ }
//!         Output::Invalid(_path) => { /* they are not any more */ }
//!         Output::Selected(_path) => { /* media goes there from now on */ }
//!         Output::Ended(_why) => { /* it gets nothing any more */ }
//!         Output::Wait(until, _why) => break Some(until),
//!         Output::Nothing => break None,
//!     }
//! };
//! # let _ = until;
//! # }
//! ```

mod agent;
mod candidate;
mod check;
mod credentials;
pub mod frame;
pub mod limits;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::net::SocketAddr;

pub use agent::{Agent, End, Ignored, Output, Saved, Wake};
pub use candidate::{Candidate, Transport};
pub use check::Check;
pub use credentials::Credentials;

/// A way between a peer and a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The own end, as its owner numbers sockets and connections.
    pub own: u32,
    /// The peer's address, as it is seen from here.
    pub peer: SocketAddr,
}
