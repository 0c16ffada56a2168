//! Limits of ICE, with what happens when they are reached.

use core::time::Duration;

/// Bytes of a message. A longer one is malformed. (Browsers may put a message of DTLS into one, in an attribute that
/// needs not be understood.)
pub const MESSAGE_BYTES_MAX: usize = 1500;

/// Characters of the peer's part of a user's name (RFC 8839, section 5.4). One that has more is malformed.
pub const UFRAG_MAX: usize = 256;

/// Attributes that are not understood and that a refusal names; further ones are in the next.
pub const UNKNOWN_MAX: usize = 8;

/// Paths of a peer that have been checked: by TCP each pair of candidates is one. With one more, the one goes that was
/// checked first and is not in use.
pub const PATHS_MAX: usize = 12;

/// A peer that sends no check for so long has ended, and gets nothing any more (RFC 7675, section 5.1). The same for
/// one that never has: an offer that nothing came of.
pub const CONSENT: Duration = Duration::from_secs(30);

/// Before media goes another way, the peer is asked there whether it wants it. It is asked again after this time, then
/// after twice as long ...
pub const ASK_AGAIN: Duration = Duration::from_millis(250);

/// ... and so on, this often in all. Without an answer media stays where it is.
pub const ASK_TIMES: u32 = 5;
