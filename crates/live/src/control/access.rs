//! Who may do what.

use std::net::IpAddr;

use outflow_config::Secret;
use subtle::ConstantTimeEq;

use super::Control;

/// A right that a token gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// To be a stream's source.
    Publish,
    /// To receive a stream.
    Play,
    /// To look at everything and to change it.
    Control,
}

/// No token, or not one of those that give the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A token is needed and none was given.
    #[error("a token is needed: give it as password, as ?token=…, or as Authorization: Bearer …")]
    Missing,
    /// The token given is not among those configured.
    #[error("the token is not one of those that [access] lists for this")]
    Wrong,
    /// Control without a configured token is for the machine itself.
    #[error("control is open to this machine only until [access] control lists a token")]
    NotLocal,
}

impl Control {
    /// Whether `token`, given from `peer`, gives `right`.
    ///
    /// Relays of the tree may play, by its own token. Without configured tokens everybody may publish and
    /// play; control is then open to loopback addresses only. Tokens are compared in constant time.
    ///
    /// # Errors
    /// It does not.
    pub fn authorize(&self, right: Right, token: Option<&str>, peer: IpAddr) -> Result<(), Denied> {
        let config = self.config();
        let of_relays = config.tree.token.iter().filter(|_| right == Right::Play);
        let tokens = match right {
            Right::Publish => &config.access.publish,
            Right::Play => &config.access.play,
            Right::Control => &config.access.control,
        };
        if tokens.is_empty() {
            let open = right != Right::Control || peer.to_canonical().is_loopback();
            return if open { Ok(()) } else { Err(Denied::NotLocal) };
        }
        is_among(tokens.iter().chain(of_relays), token)
    }

    /// Whether `token` is that of this relay's tree, if that has one. Compared in constant time.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn authorize_relay(&self, token: Option<&str>) -> Result<(), Denied> {
        let config = self.config();
        match &config.tree.token {
            Some(expected) => is_among(std::iter::once(expected), token),
            None => Ok(()),
        }
    }
}

fn is_among<'t>(tokens: impl Iterator<Item = &'t Secret>, token: Option<&str>) -> Result<(), Denied> {
    let token = token.ok_or(Denied::Missing)?;
    let known = tokens.fold(0, |found, t| found | t.as_bytes().ct_eq(token.as_bytes()).unwrap_u8());
    if known == 1 { Ok(()) } else { Err(Denied::Wrong) }
}
