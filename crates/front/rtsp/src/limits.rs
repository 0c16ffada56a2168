//! The RTSP server's limits, with what happens when they are reached. Those of messages and sessions
//! are in `outflow_rtsp::limits`.

use std::time::Duration;

/// How long an answer may take to go out to a peer that does not read; the connection is ended
/// then.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How long a connection whose session is over stays, so that the last answer arrives.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Bytes read at once from a connection that sends requests and reports. Every one of thousands of
/// players holds that much.
pub(super) const READ_BYTES: usize = 512;

/// Bytes read at once from a connection that publishes.
pub(super) const READ_BYTES_PUBLISHER: usize = 64 << 10;

/// Bytes encrypted at once: a TLS record has no more.
pub(super) const ENCRYPT_BYTES: usize = 16 << 10;

/// Silence after which the kernel asks the peer's kernel whether it is there.
pub(super) const KEEPALIVE_AFTER: Duration = Duration::from_secs(20);

/// Time between such questions.
pub(super) const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);

/// Such questions without an answer after which the connection is broken.
pub(super) const KEEPALIVE_RETRIES: u32 = 4;

/// Requests of a connection that are read in a second ...
pub(super) const REQUESTS_PER_SECOND: u64 = 20;

/// ... and at once. With more, it is not read until there is room again: TCP pushes back.
pub(super) const REQUESTS_AT_ONCE: u64 = 50;

/// Bytes that are read in a second of a connection that does not publish, as of one that plays: some times what
/// the reports are that are taken of a receiver ...
pub(super) const BYTES_PER_SECOND: u64 = 256 << 10;

/// ... and at once. With more, it is not read until there is room again: TCP pushes back.
pub(super) const BYTES_AT_ONCE: u64 = 256 << 10;
