//! Keys that tokens are signed with: a set of them (JWKS, RFC 7517).

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use outflow_config::KeysAt;
use serde::Deserialize;

use crate::limits::JWT_KEYS_MAX;

/// Keys, and where they were found.
#[derive(Debug)]
pub(crate) struct Keys {
    from: KeysAt,
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    key: DecodingKey,
}

/// A set of keys; each may be of a kind that is not known here.
#[derive(Debug, Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

/// A text that is no set of keys.
#[derive(Debug, thiserror::Error)]
#[error("{0}: a set of keys (JWKS, RFC 7517) is needed, with one that signs (EC, OKP or RSA)")]
pub(crate) struct NoKeys(String);

impl Keys {
    /// Reads a set.
    ///
    /// # Errors
    /// It is none, or has no key of use.
    pub(crate) fn parse(from: KeysAt, json: &[u8]) -> Result<Keys, NoKeys> {
        let set: Set = serde_json::from_slice(json).map_err(|error| NoKeys(error.to_string()))?;
        let keys: Vec<_> = set.keys.into_iter().filter_map(key).take(JWT_KEYS_MAX).collect();
        if keys.is_empty() { Err(NoKeys("it has no key of use".to_owned())) } else { Ok(Keys { from, keys }) }
    }

    /// Whether they were found there.
    pub(super) fn are_from(&self, place: &KeysAt) -> bool {
        self.from == *place
    }

    /// The key of a token: that of its name, or the only one if it names none.
    pub(super) fn of(&self, id: Option<&str>) -> Option<&DecodingKey> {
        let key = match (id, &self.keys[..]) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        };
        key.map(|key| &key.key)
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }
}

/// A key that verifies signatures, and makes none: one that is shared is left out.
fn key(json: serde_json::Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(json).ok()?;
    let is_public =
        !matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_));
    if !is_public || matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return None;
    }
    Some(Key { key: DecodingKey::from_jwk(&jwk).ok()?, id: jwk.common.key_id })
}
