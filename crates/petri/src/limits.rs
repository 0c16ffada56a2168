//! Every limit of nets and services, with what happens when it is reached.

use core::time::Duration;

/// Transitions of a net. One with more is refused when it is built: a peer that proposes one costs no more
/// than a few milliseconds of checking.
pub const TRANSITIONS_MAX: usize = 4096;

/// Places of a net, those that carry objects and those that only order. One with more is refused when it is
/// built.
pub const PLACES_MAX: usize = 16_384;

/// Tokens that a place holds at the start. A net with more in one is refused when it is built. Tags name
/// frames up to 32 back: in a period of one frame, that is 32 rounds.
pub const INITIAL_TOKENS_MAX: u32 = 32;

/// Longest that an interval may reach, unless it is without end. A net with a longer one is refused.
pub const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of a name. A longer one is refused.
pub const NAME_BYTES_MAX: usize = 32;

/// Bytes of a net as text. A longer one is refused before it is read.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Rounds that an engine holds objects of. A wish for more is lowered to this, one for none is raised to one.
/// Objects of later rounds are refused (`Verdict::BeyondWindow`) until the oldest round is complete.
pub const WINDOW_ROUNDS_MAX: usize = 64;

/// Transitions and places of a circuit that an error names. Of a longer one the rest is only counted.
pub const CIRCUIT_NAMED_MAX: usize = 8;

/// Largest number on the wire, so that one takes at most nine bytes. A larger one is written as this, and
/// not read; a packet number or a unit gets there in some 300,000 years at a million a second.
pub const NUMBER_MAX: u64 = (1 << 63) - 1;

/// Classes of a flow. One with more is refused when it is checked, and malformed.
pub const CLASSES_MAX: usize = 16;

/// Bytes of the name of a resource. A longer one is not sent, and malformed.
pub const RESOURCE_BYTES_MAX: usize = 256;

/// Bytes of what is asked for, or agreed to, itself: 1024 that the transport has room for,
/// less 48 that are left to a key exchange. What is longer is not sent, and malformed.
pub const AGREED_BYTES_MAX: usize = 976;

/// Bytes of what is said to people about a refusal or an end. A longer text is cut, and malformed.
pub const REASON_BYTES_MAX: usize = 128;

/// How long what is reliable is sent again where it may not be without end, and nothing else is said.
pub const RELIABLE_VALIDITY: Duration = Duration::from_secs(30);

/// Transitions times places of a net of a live source, of which a server works out whether a receiver keeps
/// up: some 15 ms at worst. A larger one is refused.
pub const CHECKED_STEPS_MAX: usize = 1 << 16;
