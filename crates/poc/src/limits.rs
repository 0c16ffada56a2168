//! Every limit of the transport, with what happens when it is reached.

use core::time::Duration;

use outflow_petri::limits::AGREED_BYTES_MAX;

/// Bytes of a datagram that is sent, unless its path is known to carry more (RFC 9000 section 14). What does
/// not fit waits for the next one.
pub const DATAGRAM_BYTES_MAX: usize = 1200;

/// Bytes that a writer has at least. A smaller size is raised to this.
pub const DATAGRAM_BYTES_MIN: usize = 64;

/// Bytes of a hello: it is padded to them, and a shorter one is refused unanswered. No answer is longer, so
/// a host whose address is forged is sent no more than was sent in its name (RFC 9000 section 8).
pub const HELLO_BYTES_MIN: usize = 1200;

/// Bytes of a cookie. A longer one is not sent, and malformed.
pub const COOKIE_BYTES_MAX: usize = 64;

/// Bytes of a service that is asked for. A longer one is not sent, and malformed.
pub const SERVICE_BYTES_MAX: usize = AGREED_BYTES_MAX + KEY_EXCHANGE_BYTES;

/// Frames in a datagram, so that one does not cost a multiple of others. Further ones wait for the next
/// datagram; a datagram with more is malformed behind them.
pub const FRAMES_MAX: usize = 64;

/// Ranges in a frame. Of more, an acknowledgement holds the newest, other frames the first; a frame with
/// more is malformed.
pub const SPANS_MAX: usize = 32;

/// Times of arrival in an acknowledgement. The oldest are left out, and their packets give congestion
/// control nothing; an acknowledgement with more is malformed.
pub const ARRIVALS_MAX: usize = 64;

/// Bytes of a unit. A fragment of a larger one is malformed.
pub const UNIT_BYTES_MAX: usize = 8 << 20;

/// Bytes of a fragment that does not end its unit. Where less is free, it waits for the next datagram.
pub const FRAGMENT_BYTES_MIN: usize = 32;

/// Ranges of packet numbers that a receiver remembers. When there are more the oldest is forgotten, and all
/// that is older still counts as received before.
pub const RECEIVED_SPANS_MAX: usize = 256;

/// Packets below the largest one of an acknowledgement that is known to have come, that are acknowledged
/// again in later ones: what came late is not in it. Older ones are not.
pub const ACKED_AGAIN: u64 = 64;

/// Packets from the oldest in flight to the newest: 300 ms of 2 Gbit/s. At this many,
/// nothing is sent.
pub const HISTORY_PACKETS_MAX: usize = 65_536;

/// Packets declared lost that a late acknowledgement is noticed of. The oldest are forgotten: then it is not.
pub const LOST_REMEMBERED_MAX: usize = 256;

/// Numbers left out that an acknowledgement is refused for. The oldest are forgotten: then it is not.
pub const SKIPPED_REMEMBERED_MAX: usize = 16;

/// Places that a packet may be behind others before it counts as lost, however late some came. RFC 9002
/// section 6.1.1 begins with 3.
pub const REORDER_PACKETS_MAX: u64 = 64;

/// Probes in a row without an answer. When another one is due, what is in flight for longer than an answer
/// takes counts as lost.
pub const PROBES_MAX: u32 = 6;

/// Longest wait for an answer before a probe, however many there were (RFC 9002 section 6.2).
pub const PROBE_AFTER_MAX: Duration = Duration::from_secs(10);

/// Copies of what is sent again for the last time. A wish for more is lowered to this.
pub const COPIES_MAX: u32 = 4;

// A hello with a cookie and a service of full length still fits.
const _: () = assert!(10 + 1 + COOKIE_BYTES_MAX + 2 + SERVICE_BYTES_MAX <= HELLO_BYTES_MIN);
const _: () = assert!(RECEIVED_SPANS_MAX >= SPANS_MAX);
// What is written counts as it is.
const _: () = assert!(DATAGRAM_BYTES_MIN as u64 == outflow_congestion::limits::DATAGRAM_BYTES_LEAST);

/// Bytes of a service that are left to a key exchange: what a Noise handshake adds to its first messages.
pub const KEY_EXCHANGE_BYTES: usize = 48;

/// Answers to datagrams of no connection that wait to be sent. Further ones are left out, and counted.
pub const ANSWERS_MAX: usize = 1024;

/// Resets in a second, which say that a connection is not known. Further ones are not sent, and are counted.
pub const RESETS_A_SECOND_MAX: u32 = 1000;

/// Units from the oldest that the receiver is not done with to the newest that the application gave. At
/// this many, the next one is refused until some are over.
pub const UNITS_OUTSTANDING_MAX: usize = 65_536;

/// Events of a sender that wait to be read. Of more, the oldest are dropped, and counted.
pub const EVENTS_MAX: usize = 8192;

/// Gaps in a unit that comes in pieces. A sender that makes more violates the protocol: it sends pieces in
/// order, so that gaps are where some were lost.
pub const GAPS_MAX: usize = 8192;

/// Datagrams that are written to learn whether the path carries them, by size. The larger ones are tried as
/// far as the settings allow.
pub const PROBED_BYTES: [u16; 8] = [1280, 1350, 1400, 1452, 1472, 4000, 8900, 65_000];

/// How often a size that does not get through is tried.
pub const PROBES_OF_SIZE_MAX: u32 = 3;
