//! What the receiving side accepts at most, and what happens beyond it.

/// Bytes of an HTTP response's head; more ends the connection.
pub const HTTP_HEAD_BYTES: usize = 16 * 1024;

/// Header fields of an HTTP response; more ends the connection.
pub const HTTP_HEADERS: usize = 64;

/// Bytes of the answer of a session; more count as no answer.
pub const SESSION_ANSWER_BYTES: usize = 64 * 1024;

/// Answers to what was asked of the session of a download that the caller has not heard. With as many, no more is asked.
pub const SESSION_ANSWERS_MAX: usize = 16;

/// Redirections followed in a row.
pub const REDIRECTS: usize = 5;

/// Bytes of the line before an HTTP chunk, extensions included; more ends the connection.
pub const CHUNK_LINE_BYTES: usize = 1024;

/// Bytes read from a connection by one call.
pub const READ_BYTES: usize = 64 * 1024;

/// The largest datagram.
pub const DATAGRAM_BYTES: usize = 65_535;

/// Datagrams taken from one socket before the others have their turn.
pub const DATAGRAMS_A_TURN: usize = 64;

/// Bytes of answers and reports that wait to be sent. A server that takes none of them is given up.
pub const UNSENT_BYTES: usize = 64 * 1024;

/// Attempts at two neighbouring UDP ports.
pub const PORT_ATTEMPTS: usize = 64;
