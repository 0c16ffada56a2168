//! What a datagram begins with: its kind, and the version of the protocol.

/// The version of the protocol that is spoken here.
pub const VERSION: u8 = 1;

/// What errors call it.
pub(super) const FORMAT: &str = "POC";

/// The fixed bits of the first byte.
const FIXED: u8 = 0x08;

pub(super) const HELLO: u8 = FIXED;
pub(super) const RETRY: u8 = FIXED | 1;
pub(super) const ACCEPT: u8 = FIXED | 2;
pub(super) const REFUSE: u8 = FIXED | 3;
pub(super) const DATA: u8 = FIXED | 4;
pub(super) const RESET: u8 = FIXED | 5;

/// Whether a datagram that begins with this byte may be ours.
pub const fn is_ours(first: u8) -> bool {
    first & 0xf8 == FIXED
}
