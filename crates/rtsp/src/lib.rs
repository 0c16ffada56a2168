//! RTSP (RFC 2326, and what of RFC 7826 is met in the field), without I/O and clock.
//!
//! - [`codec`]: bytes to messages and interleaved media, and back;
//! - [`transport`], [`header`]: the headers that say where media goes;
//! - [`auth`]: Basic and Digest, the asking and the answering side;
//! - [`client`]: a state machine that plays or publishes a stream;
//! - [`server`]: a state machine of a connection that players and publishers come by.
//!
//! Messages are those of the [`rtsp_types`] crate.

pub mod auth;
pub mod client;
pub mod codec;
pub mod header;
pub mod limits;
pub mod server;
pub mod transport;

pub use client::{ClientOptions, RtspClient};
pub use codec::{DecodeError, Decoder, Item, encode_request, encode_response, interleaved_prefix};
pub use rtsp_types::{HeaderName, Method, StatusCode, Version, headers};
pub use transport::{Lower, Pair, Transport};

/// A request with its body.
pub type Request = rtsp_types::Request<Vec<u8>>;
/// A response with its body.
pub type Response = rtsp_types::Response<Vec<u8>>;

/// Begins a response of RTSP 1.0.
pub fn response(status: StatusCode) -> rtsp_types::ResponseBuilder {
    let response = rtsp_types::Response::builder(Version::V1_0, status);
    // As the RFC spells it.
    if status == StatusCode::Ok { response.reason_phrase("OK") } else { response }
}
