//! What peers show, and how it is compared with what the relay knows.

use outflow_config::{AccessToken, Secret};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What a peer shows for a right.
#[derive(Clone, Copy)]
pub(crate) enum Credential<'a> {
    /// A token.
    Token(&'a str),
    /// Something else.
    Answer(Judge<'a>),
}

/// Judges what is no token, in the words of the front that it came in by: whether it is made of this token.
pub type Judge<'a> = &'a dyn Fn(Known<'_>) -> Verdict;

/// A token as the relay knows it.
#[derive(Clone, Copy)]
pub enum Known<'a> {
    /// The token itself.
    Text(&'a str),
    /// Hashes of it.
    Hashed {
        /// What it is called.
        name: &'a str,
        /// SHA-256 of it.
        sha256: &'a [u8; 32],
        /// Hashes of name, realm and token for Digest, by MD5 and by SHA-256; if they are known.
        ha1: [Option<&'a str>; 2],
    },
}

/// What a credential is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It shows knowledge of a token.
    Right,
    /// It does not.
    Wrong,
    /// It is too old to tell.
    Stale,
}

impl<'a> From<&'a Secret> for Known<'a> {
    fn from(token: &'a Secret) -> Self {
        Known::Text(token.reveal())
    }
}

impl<'a> From<&'a AccessToken> for Known<'a> {
    fn from(token: &'a AccessToken) -> Self {
        let ha1 = |digits| token.ha1.iter().map(|ha1| ha1.0.reveal()).find(|text| text.len() == digits);
        Known::Hashed { name: &token.name, sha256: &token.sha256.0, ha1: [ha1(32), ha1(64)] }
    }
}

impl Credential<'_> {
    /// What it is worth with each of these. All are looked at, and how long this takes does not depend on how much of a
    /// token was right.
    pub(crate) fn judge(&self, known: &[Known<'_>]) -> Vec<Verdict> {
        match self {
            Credential::Token(given) => {
                let hash: [u8; 32] = Sha256::digest(given.as_bytes()).into();
                let equals = |known: &Known<'_>| match known {
                    Known::Text(token) => token.as_bytes().ct_eq(given.as_bytes()),
                    Known::Hashed { sha256, .. } => sha256[..].ct_eq(&hash[..]),
                };
                let verdict = |equal: bool| if equal { Verdict::Right } else { Verdict::Wrong };
                known.iter().map(|known| verdict(equals(known).into())).collect()
            }
            Credential::Answer(judge) => known.iter().map(|known| judge(*known)).collect(),
        }
    }
}
