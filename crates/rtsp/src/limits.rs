//! What this crate accepts at most, and what happens beyond it.

use core::time::Duration;

/// Bytes of a message up to its empty line; more ends the connection.
pub const HEADER_BYTES: usize = 16 * 1024;

/// Bytes of a message's body; more ends the connection before the body is read.
pub const BODY_BYTES: usize = 64 * 1024;

/// Bytes of an interleaved frame, by its 16-bit length field: nothing larger can be claimed.
pub const INTERLEAVED_BYTES: usize = u16::MAX as usize;

/// Alternatives in one Transport header; those behind are not considered.
pub const TRANSPORTS: usize = 8;

/// Challenges in one WWW-Authenticate header; those behind are not considered.
pub const CHALLENGES: usize = 8;

/// Entries of an RTP-Info header; those behind are not considered.
pub const RTP_INFOS: usize = 32;

/// Tracks that a client sets up; the channel numbers of more would not fit a byte.
pub const TRACKS: usize = 64;

/// Redirections that a client follows in a row before it gives up.
pub const REDIRECTS: u32 = 5;

/// Times that a client answers challenges to one request: the first, and one stale nonce.
pub const CHALLENGE_ANSWERS: u32 = 2;

/// A message to a server that has begun must be complete within that time, and the first one that long after
/// connecting: else the connection is ended, and counted as slow.
pub const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// How long a server's session lives without a sign of life: a request, a packet, a receiver report. The
/// connection is ended then.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// The same of a session that takes part in a group.
pub const GROUP_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

const _: () = assert!(TRACKS * 2 <= 256, "each track has two interleaved channels, numbered by a byte");
