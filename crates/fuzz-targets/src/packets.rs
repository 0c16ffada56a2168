//! Several packets in one input.

/// The packets of an input: each has its length in front, two bytes, big-endian. A length that
/// goes beyond the end means all that is left.
pub(crate) fn packets(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let &[high, low, ref behind @ ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        let (packet, next) = behind.split_at(length);
        rest = next;
        Some(packet)
    })
}
