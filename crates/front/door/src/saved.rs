//! Grants of sessions that go on in another process.

use std::fmt;

use minicbor::{Decode, Encode};
use outflow_config::{Date, Secret, TokenHash};

use crate::access::Door;
use crate::grant::{By, Grant};
use crate::hook::Question;
use crate::request::StreamName;
use crate::rules::Right;

/// A grant as another process takes it up. It may hold a token, and is never shown.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedGrant {
    #[n(0)]
    right: String,
    #[n(1)]
    stream: String,
    #[n(2)]
    peer: String,
    #[n(3)]
    by: SavedBy,
}

#[derive(Clone, PartialEq, Eq, Encode, Decode)]
enum SavedBy {
    #[n(0)]
    Nothing,
    #[n(1)]
    Listed(#[n(0)] String),
    #[n(2)]
    Named(#[n(0)] String, #[cbor(n(1), with = "minicbor::bytes")] [u8; 32]),
    #[n(3)]
    Signed(#[n(0)] String, #[n(1)] i64),
    #[n(4)]
    Asked(#[n(0)] Option<String>, #[n(1)] String),
}

/// Tokens stay out of logs.
impl fmt::Debug for SavedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SavedGrant {{ {} {} to {} }}", self.right, self.stream, self.peer)
    }
}

impl Grant {
    /// It as another process takes it up.
    pub fn save(&self) -> SavedGrant {
        let (right, peer, by) = self.pass().parts();
        let by = match by {
            By::Nothing => SavedBy::Nothing,
            By::Listed(token) => SavedBy::Listed(token.reveal().to_owned()),
            By::Named(name, TokenHash(hash)) => SavedBy::Named(name.to_string(), *hash),
            By::Signed { name, until, .. } => SavedBy::Signed(name.to_string(), until.0),
            By::Asked(lease) => {
                let Question { token, protocol, .. } = &lease.question;
                SavedBy::Asked(token.as_ref().map(|token| token.reveal().to_owned()), protocol.to_string())
            }
        };
        let (right, peer) = (right.name().to_owned(), peer.to_string());
        SavedGrant { right, stream: self.stream().to_string(), peer, by }
    }
}

impl Door {
    /// A grant of another process. Whether it holds is asked as of any other. None if it cannot be understood.
    pub fn restore(&self, saved: SavedGrant) -> Option<Grant> {
        let SavedGrant { right, stream, peer, by } = saved;
        let right = Right::ALL.into_iter().find(|known| known.name() == right)?;
        let (stream, peer) = (StreamName::of(stream)?, peer.parse().ok()?);
        let by = match by {
            SavedBy::Nothing => By::Nothing,
            SavedBy::Listed(token) => By::Listed(Secret::new(token)),
            SavedBy::Named(name, hash) => By::Named(name.into(), TokenHash(hash)),
            SavedBy::Signed(name, until) => {
                By::Signed { name: name.into(), until: Date(until), config: self.jwt()? }
            }
            SavedBy::Asked(token, protocol) => {
                let (token, protocol) = (token.map(Secret::new), protocol.into());
                let stream = stream.to_string();
                By::Asked(self.hook().lease_again(Question { right, stream, token, peer, protocol }))
            }
        };
        Some(Grant::new(right, stream, peer, by))
    }
}
