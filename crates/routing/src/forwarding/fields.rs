//! Fields of the headers of IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC 768), as far as a router needs them.

/// Bytes of a header of IPv4 without options.
pub const HEADER_BYTES: usize = 20;
/// Bytes of the fixed header of IPv6.
pub const HEADER_BYTES_V6: usize = 40;
/// Bytes of a header of UDP.
pub const UDP_HEADER_BYTES: usize = 8;

/// The protocol that is UDP.
pub const UDP: u8 = 17;

/// In the word at byte 6 of IPv4's header: the packet is not to be cut.
pub const DONT_FRAGMENT: u16 = 0x4000;
/// In the same word: further fragments follow.
pub const MORE_FRAGMENTS: u16 = 0x2000;
/// In the same word: where the fragment belongs, in units of 8 bytes.
pub const OFFSET: u16 = 0x1fff;

/// Whether a packet is of IPv6.
#[inline]
pub fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

/// The number of two bytes, the high one first, at this byte.
///
/// # Panics
/// There are not two bytes there.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes it.
///
/// # Panics
/// There are not two bytes there.
#[inline]
pub fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// A checksum as words before it become others (RFC 1624).
#[inline]
pub(super) fn followed(sum: u16, words: &[(u16, u16)]) -> u16 {
    let changed = words.iter().map(|(before, after)| u32::from(!before) + u32::from(*after));
    let sum = u32::from(!sum) + changed.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}
