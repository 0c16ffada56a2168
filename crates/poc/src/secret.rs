//! What no other host can guess: ids, challenges, cookies. A keyed hash, SipHash-2-4 with 128 bits, of a key
//! that the driver takes from the system's randomness.

use core::fmt;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::save::SavedSecret;

/// A key, and how often it was used.
#[derive(Clone)]
pub struct Secret {
    key: [u8; 16],
    count: u64,
}

impl Secret {
    /// Of a key that no other host knows. With the same key, all that follows is the same.
    pub const fn new(key: [u8; 16]) -> Self {
        Secret { key, count: 0 }
    }

    /// Sixteen bytes that only a holder of the key can work out from `what`.
    pub fn tag(&self, what: &[u8]) -> [u8; 16] {
        self.hash(b"t", what)
    }

    /// Sixteen bytes that were not there before.
    pub fn fresh(&mut self) -> [u8; 16] {
        self.count += 1;
        self.hash(b"f", &self.count.to_le_bytes())
    }

    /// Another secret, of which nothing can be learnt from this one's bytes.
    pub fn derive(&mut self) -> Secret {
        self.count += 1;
        Secret::new(self.hash(b"d", &self.count.to_le_bytes()))
    }

    /// What another one needs to go on.
    pub(crate) const fn save(&self) -> SavedSecret {
        SavedSecret { key: self.key, count: self.count }
    }

    /// One that goes on.
    pub(crate) const fn restore(saved: SavedSecret) -> Self {
        Secret { key: saved.key, count: saved.count }
    }

    fn hash(&self, purpose: &[u8], what: &[u8]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        core::hash::Hasher::write(&mut hasher, purpose);
        core::hash::Hasher::write(&mut hasher, what);
        hasher.finish128().as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fresh_never_comes_again_and_depends_on_the_key() {
        let (mut a, mut b) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let mut all: Vec<_> = (0..100).flat_map(|_| [a.fresh(), b.fresh()]).collect();
        all.push(a.derive().fresh());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 201);
        assert_eq!(a.tag(b"x"), Secret::new([1; 16]).tag(b"x"));
        assert_ne!(a.tag(b"x"), b.tag(b"x"));
    }

    #[test]
    fn nothing_is_shown_of_it() {
        assert_eq!(format!("{:?}", Secret::new([7; 16])), "Secret");
    }
}
