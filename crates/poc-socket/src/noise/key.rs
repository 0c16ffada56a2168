//! Keys, and how they are written.

use core::fmt;
use core::str::FromStr;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ring::rand::{SecureRandom, SystemRandom};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use subtle::ConstantTimeEq;

use crate::limits::{KEYS_BYTES_MAX, PASSPHRASE_CHARS_MIN};

/// Bytes of a key, whatever it is for.
pub const KEY_BYTES: usize = 32;

/// What passphrases are stretched with. It is the same everywhere, because both ends have to find the same
/// key without having met.
const SALT: &[u8] = b"outflow POC shared key 1";

/// Why there is no key, or not the right one. The writer of the text is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is too short or too long.
    #[error("a key is 64 hexadecimal digits or 44 characters of Base64; this has {0} characters")]
    Length(usize),
    /// It has characters that do not belong there.
    #[error("this is neither hexadecimal nor Base64; for a passphrase write `passphrase:` in front")]
    Digits,
    /// It says to be for something else.
    #[error("this is a {found} key where a {wanted} key is wanted")]
    Kind {
        /// What was asked for.
        wanted: &'static str,
        /// What it says to be.
        found: &'static str,
    },
    /// A passphrase that is soon guessed.
    #[error("a passphrase of less than {PASSPHRASE_CHARS_MIN} characters; make a key instead")]
    Short,
    /// There are two keys of a kind.
    #[error("a second {0} key; there may be one")]
    Twice(&'static str),
    /// There is none that would be of use.
    #[error("no key for this end: {0}")]
    Missing(&'static str),
    /// More text than any keys are.
    #[error("more than {KEYS_BYTES_MAX} bytes: these are no keys")]
    Text,
    /// The system gave no random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

/// A secret that both ends know.
#[derive(Clone)]
pub struct SharedKey(pub(super) [u8; KEY_BYTES]);

/// The secret half of a server's key.
#[derive(Clone)]
pub struct PrivateKey(pub(super) [u8; KEY_BYTES]);

/// The half of a server's key that clients know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub(super) [u8; KEY_BYTES]);

const SHARED: &str = "shared";
const PRIVATE: &str = "private";
const PUBLIC: &str = "public";
const PASSPHRASE: &str = "passphrase";

impl SharedKey {
    /// A new one, from the system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        random().map(SharedKey)
    }

    /// Reads `shared:` and a key, a key alone, or `passphrase:` and a passphrase.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        match text.trim().split_once(':') {
            Some((PASSPHRASE, passphrase)) => SharedKey::from_passphrase(passphrase),
            _ => parse(text, SHARED).map(SharedKey),
        }
    }

    /// Stretches a passphrase, without the blanks around it, by Argon2id with 64 MiB, three passes and four
    /// lanes (RFC 9106 section 4, the second recommendation). That takes some tenths of a second.
    ///
    /// The salt is fixed. So each guess costs as much time and memory, but guesses can be prepared once for
    /// all users of Outflow, and a host that heard one handshake can try them unnoticed: that holds
    /// off guesses at the passphrase of no user in particular, not a rich enemy. A passphrase should be
    /// six words by dice; a key from [`SharedKey::generate`] has none of these troubles.
    pub fn from_passphrase(passphrase: &str) -> Result<Self, KeyError> {
        let passphrase = passphrase.trim();
        if passphrase.chars().count() < PASSPHRASE_CHARS_MIN {
            return Err(KeyError::Short);
        }
        let params = Params::new(64 << 10, 3, 4, Some(KEY_BYTES)).expect("within the bounds of RFC 9106");
        let mut memory = vec![Block::default(); params.block_count()];
        let mut key = [0; KEY_BYTES];
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(passphrase.as_bytes(), SALT, &mut key, &mut memory)
            .expect("a text of less than 4 GiB, and a salt and memory as long as they should be");
        Ok(SharedKey(key))
    }

    /// As it is written: `shared:` and Base64. This is the secret.
    pub fn to_text(&self) -> String {
        text(SHARED, &self.0)
    }
}

impl PrivateKey {
    /// A new one, from the system's randomness.
    pub fn generate() -> Result<Self, KeyError> {
        random().map(PrivateKey)
    }

    /// Reads `private:` and a key, or a key alone.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        parse(text, PRIVATE).map(PrivateKey)
    }

    /// What clients are to know.
    pub fn public(&self) -> PublicKey {
        let mut curve = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("it is built in");
        curve.set(&self.0);
        PublicKey(curve.pubkey().try_into().expect("points of the curve are of this length"))
    }

    /// As it is written: `private:` and Base64. This is the secret.
    pub fn to_text(&self) -> String {
        text(PRIVATE, &self.0)
    }
}

impl PublicKey {
    /// Reads `public:` and a key, or a key alone.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        parse(text, PUBLIC).map(PublicKey)
    }

    /// As it is written: `public:` and Base64.
    pub fn to_text(&self) -> String {
        text(PUBLIC, &self.0)
    }
}

impl PartialEq for SharedKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SharedKey {}

impl PartialEq for PrivateKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for PrivateKey {}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(secret)")
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(secret)")
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// Keys of one end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// A secret that both ends know.
    pub shared: Option<SharedKey>,
    /// The server's own key; clients have no use for it.
    pub private: Option<PrivateKey>,
    /// The server's key as clients know it; the server has no use for it.
    pub public: Option<PublicKey>,
}

impl FromStr for Keys {
    type Err = KeyError;

    /// Reads keys, one a line: each with its kind in front, one without being a shared one. Empty lines, and
    /// those that begin with `#`, are left out.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.len() > KEYS_BYTES_MAX {
            return Err(KeyError::Text);
        }
        let mut keys = Keys::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(':') {
                Some((PRIVATE, _)) => once(&mut keys.private, PrivateKey::from_text(line)?, PRIVATE)?,
                Some((PUBLIC, _)) => once(&mut keys.public, PublicKey::from_text(line)?, PUBLIC)?,
                _ => once(&mut keys.shared, SharedKey::from_text(line)?, SHARED)?,
            }
        }
        Ok(keys)
    }
}

fn once<K>(place: &mut Option<K>, key: K, kind: &'static str) -> Result<(), KeyError> {
    if place.replace(key).is_some() { Err(KeyError::Twice(kind)) } else { Ok(()) }
}

fn random() -> Result<[u8; KEY_BYTES], KeyError> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut key).map_err(|_| KeyError::NoRandomness)?;
    Ok(key)
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn text(kind: &str, key: &[u8; KEY_BYTES]) -> String {
    format!("{kind}:{}", BASE64.encode(key))
}

fn parse(text: &str, wanted: &'static str) -> Result<[u8; KEY_BYTES], KeyError> {
    let text = text.trim();
    let digits = match text.split_once(':') {
        Some((kind, digits)) if kind == wanted => digits.trim(),
        Some((kind, _)) => {
            let found = [SHARED, PRIVATE, PUBLIC, PASSPHRASE].into_iter().find(|known| *known == kind);
            return Err(found.map_or(KeyError::Digits, |found| KeyError::Kind { wanted, found }));
        }
        None => text,
    };
    let bytes = match digits.chars().count() {
        64 => hex(digits),
        43 | 44 => BASE64.decode(digits).ok(),
        other => return Err(KeyError::Length(other)),
    };
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(KeyError::Digits)
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pair = |pair: &[u8]| u8::try_from(digit(&pair[0])? << 4 | digit(&pair[1])?).ok();
    digits.as_bytes().chunks_exact(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64_ONES: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn keys_are_read_as_they_are_written() {
        let (shared, private) =
            (SharedKey::generate().expect("random"), PrivateKey::generate().expect("random"));
        assert_eq!(SharedKey::from_text(&shared.to_text()), Ok(shared.clone()));
        assert_eq!(PrivateKey::from_text(&private.to_text()), Ok(private.clone()));
        assert_eq!(PublicKey::from_text(&private.public().to_text()), Ok(private.public()));
        assert_ne!(shared, SharedKey::generate().expect("random"));
    }

    #[test]
    fn hexadecimal_and_base64_are_the_same_key() {
        let hex = SharedKey::from_text(&format!(" {}\n", "01".repeat(32)));
        assert_eq!(hex, Ok(SharedKey([1; 32])));
        assert_eq!(SharedKey::from_text(BASE64_ONES), hex);
        assert_eq!(SharedKey::from_text(BASE64_ONES.trim_end_matches('=')), hex);
        assert_eq!(SharedKey::from_text(&format!("shared: {BASE64_ONES}")), hex);
    }

    #[test]
    fn what_is_no_key_says_why() {
        assert_eq!(SharedKey::from_text("00"), Err(KeyError::Length(2)));
        assert_eq!(SharedKey::from_text(&"é".repeat(32)), Err(KeyError::Length(32)));
        assert_eq!(SharedKey::from_text(&"é".repeat(64)), Err(KeyError::Digits));
        assert_eq!(SharedKey::from_text(&"+1".repeat(32)), Err(KeyError::Digits));
        assert_eq!(SharedKey::from_text(&"!".repeat(44)), Err(KeyError::Digits));
        assert_eq!(SharedKey::from_text(&format!("other:{BASE64_ONES}")), Err(KeyError::Digits));
        assert_eq!(SharedKey::from_text("passphrase: too short "), Err(KeyError::Short));
        let public = PrivateKey([1; 32]).public().to_text();
        let error = KeyError::Kind { wanted: "private", found: "public" };
        assert_eq!(PrivateKey::from_text(&public), Err(error));
        assert_eq!(error.to_string(), "this is a public key where a private key is wanted");
    }

    #[test]
    fn a_passphrase_gives_the_same_key_everywhere() {
        let key = SharedKey::from_text("passphrase: correct horse battery staple\n").expect("long enough");
        assert_eq!(key.to_text(), "shared:T3Ep52zi1AJBO4Y1uBgYcQR4l1h6hjP/nfuQX+E+XzQ=");
    }

    #[test]
    fn a_public_key_is_that_of_rfc_7748() {
        // Section 6.1: Alice's.
        let private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
        let public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
        let private = PrivateKey::from_text(private).expect("hexadecimal");
        assert_eq!(Ok(private.public()), PublicKey::from_text(public));
    }

    #[test]
    fn a_text_of_keys_has_one_of_a_kind_a_line() {
        let private = PrivateKey([2; 32]);
        let text = format!(
            "# of the studio\n\n{}\n{}\n{BASE64_ONES}\n",
            private.to_text(),
            private.public().to_text()
        );
        let keys: Keys = text.parse().expect("three keys");
        assert_eq!((keys.public, keys.shared), (Some(private.public()), Some(SharedKey([1; 32]))));
        assert_eq!(keys.private, Some(private));
        assert_eq!(
            format!("{BASE64_ONES}\nshared:{BASE64_ONES}").parse::<Keys>(),
            Err(KeyError::Twice("shared"))
        );
        assert_eq!("\n".repeat(KEYS_BYTES_MAX + 1).parse::<Keys>(), Err(KeyError::Text));
        assert_eq!("".parse(), Ok(Keys::default()));
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys = Keys {
            shared: Some(SharedKey([0xa5; 32])),
            private: Some(PrivateKey([0xa5; 32])),
            public: Some(PublicKey([1; 32])),
        };
        let shown = format!("{keys:?}");
        let expected = "Keys { shared: Some(SharedKey(secret)), private: Some(PrivateKey(secret)), \
                        public: Some(public:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=) }";
        assert_eq!(shown, expected);
    }
}
