//! Streams and levels by the names and numbers that routing has for them.

use std::hash::Hasher;

use outflow_packet::Level;
use siphasher::sip::SipHasher13;

/// The number by which relays know a stream of this name; equal at all of them.
pub fn number(name: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// A level as the packet path has it, of one as routing has it.
pub fn of_path(level: outflow_routing::Level) -> Level {
    Level::new(level.number()).unwrap_or_default()
}

/// See [`of_path`].
pub fn of_tree(level: Level) -> outflow_routing::Level {
    outflow_routing::Level::lowered(level.number()).unwrap_or(outflow_routing::Level::BEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_relays_know_a_stream_by_the_same_number() {
        // What SipHash-1-3 gives with a key of zeros: other implementations give the same.
        assert_eq!(number("cam"), number("cam"));
        assert_ne!(number("cam"), number("cam2"));
        assert_eq!(number(""), 0xd1fb_a762_150c_532c);
    }
}
