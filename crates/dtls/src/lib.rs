//! DTLS as WebRTC has it (RFC 8827, section 6.5): the relay's end. It agrees on keys of SRTP (RFC 5764), and
//! knows the peer by the fingerprint of its certificate, which came in the description before (RFC 8122).
//!
//! The protocol is dimpl's, versions 1.2 and 1.3; its cryptography is ring's. It draws randomness as it needs it; time is
//! given to it.
//!
//! ```
//! # use outflow_dtls::{Output, Scratch, Server};
//! # use outflow_media::Time;
//! # fn datagram(server: &mut Server, now: Time, bytes: &mut [u8], scratch: &mut Scratch, send: impl Fn(Vec<u8>)) {
//! let _ignored = server.handle_datagram(now, bytes, scratch);
//! loop {
//!     match server.poll() {
//!         Output::Send(bytes) => send(bytes),
//!         Output::Agreed(_keys) => { /* media can be sealed and opened from now on */ }
//!         Output::Ended(_why) => { /* there is nothing more to be had of it */ }
//!         Output::Wait(_until) => break,
//!     }
//! }
//! # }
//! ```

mod fingerprint;
mod identity;
pub mod limits;
mod provider;
mod server;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use fingerprint::Fingerprint;
pub use identity::{BadIdentity, Identity};
pub use server::{Agreed, Clock, End, Ignored, Output, Scratch, Server, Settings};
