//! The names and passwords of both ends (RFC 8445, section 5.3).

use core::fmt;

use stun_types::message::{IntegrityKey, ShortTermCredentials};

/// Characters of names and passwords (`ice-char`, RFC 8839, section 5.1).
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A user's name and password, as descriptions have them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `a=ice-ufrag`.
    pub ufrag: String,
    /// `a=ice-pwd`.
    pub password: String,
}

impl Credentials {
    /// Eight characters and 24 of them, of random bytes that cannot be guessed.
    pub fn of(random: [u8; 32]) -> Self {
        let text = random.map(|byte| char::from(CHARACTERS[usize::from(byte & 63)]));
        let (ufrag, password) = text.split_at(8);
        Credentials { ufrag: ufrag.iter().collect(), password: password.iter().collect() }
    }

    /// What messages are signed with that are for it.
    pub(crate) fn key(&self) -> IntegrityKey {
        ShortTermCredentials::new(self.password.clone()).make_key()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("ufrag", &self.ufrag).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_characters_of_ice_and_long_enough() {
        let credentials = Credentials::of(core::array::from_fn(|index| (index * 8) as u8 | 7));
        assert_eq!(credentials.ufrag, "HPXfnv3/");
        assert_eq!(credentials.password.len(), 24, "128 bits at least: RFC 8445, section 5.3");
    }

    #[test]
    fn a_password_is_not_shown() {
        let credentials = Credentials { ufrag: "name".into(), password: "secret".into() };
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
