//! A peer of WebRTC (RFC 8825), as a relay has it: it is found by checks of ICE, known by DTLS, and media goes to it and
//! comes from it as SRTP, all by one path. What media that is, is its owner's business.
//!
//! ```
//! # use outflow_dtls::Scratch;
//! # use outflow_ice::Path;
//! # use outflow_media::Time;
//! # use outflow_webrtc::{Output, Received, Session};
//! # fn datagram(
//! #     session: &mut Session, now: Time, path: Path, bytes: &mut [u8], scratch: &mut Scratch, send: impl Fn(Path, Vec<u8>),
//! # ) {
//! match session.handle_datagram(now, path, bytes, scratch) {
//!     Ok(Received::Media(_length)) => { /* the first bytes are a packet of RTP */ }
//!     Ok(Received::Control(_length)) => { /* ... or of RTCP */ }
//!     Ok(Received::Own) => {}
//!     Err(_why) => { /* it is counted */ }
//! }
//! loop {
//!     match session.poll() {
//!         Output::Send(path, bytes) => send(path, bytes),
//!         Output::Valid(_path) | Output::Invalid(_path) => { /* where other datagrams are for it */ }
//!         Output::Ready => { /* media can be sealed from now on */ }
//!         Output::Ended(_why) => { /* it gets nothing any more */ }
//!         Output::Wait(_until, _why) => break,
//!         Output::Nothing => break,
//!     }
//! }
//! # }
//! ```

mod session;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use session::{End, Ignored, Output, Received, Saved, Session, Wake};
