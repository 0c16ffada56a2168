//! What a peer was let in for: kept with its session, so that it ends when that holds no longer.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use outflow_config::{Date, JwtConfig, Secret, TokenHash};

use crate::hook::Lease;
use crate::request::StreamName;
use crate::rules::{Asked, Right, Rules, gives};

/// A peer may do something with a stream, because of something that it has shown. Clones are the same grant.
#[derive(Clone)]
pub struct Grant(Arc<Granted>);

struct Granted {
    stream: StreamName,
    pass: Pass,
}

/// A peer may do something with the relay as a whole, because of something that it has shown.
#[derive(Clone)]
pub struct Pass {
    right: Right,
    peer: IpAddr,
    by: By,
}

impl Pass {
    pub(crate) fn new(right: Right, peer: IpAddr, by: By) -> Self {
        Pass { right, peer, by }
    }

    /// The right, which peer has it, and what that was let in by.
    pub(crate) fn parts(&self) -> (Right, IpAddr, &By) {
        (self.right, self.peer, &self.by)
    }

    /// Whether these rules would give it, too; for a stream, if it is for one.
    pub(crate) fn holds(&self, stream: Option<&str>, rules: &Rules, today: Date) -> bool {
        let Pass { right, peer, by } = self;
        // What needs no token needs none of those that have it.
        if rules.is_open(*right) {
            return true;
        }
        let asked = Asked { right: *right, peer: *peer, stream, today };
        match by {
            By::Nothing => false,
            By::Listed(token) => rules.listed(*right).any(|listed| listed == token),
            By::Named(_, sha256) => {
                let mut tokens = rules.tokens.iter().filter(|token| token.sha256 == *sha256);
                tokens.any(|token| gives(token, &asked).is_ok())
            }
            By::Asked(lease) => rules.hook.is_some() && !lease.is_over(),
            By::Signed { until, config, .. } => rules.jwt.as_ref() == Some(config) && today < *until,
        }
    }
}

/// Tokens stay out of logs.
impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pass {{ {:?} to {} }}", self.right, self.peer)
    }
}

/// What a peer was let in by.
#[derive(Clone)]
pub(crate) enum By {
    /// Nothing was needed.
    Nothing,
    /// A token of a list.
    Listed(Secret),
    /// A token with a name.
    Named(Arc<str>, TokenHash),
    /// A signed token.
    Signed {
        /// Its subject.
        name: Arc<str>,
        /// When it expires.
        until: Date,
        /// What it was judged by.
        config: Arc<JwtConfig>,
    },
    /// What the hook has said.
    Asked(Arc<Lease>),
}

impl Grant {
    pub(crate) fn new(right: Right, stream: StreamName, peer: IpAddr, by: By) -> Self {
        Grant(Arc::new(Granted { stream, pass: Pass::new(right, peer, by) }))
    }

    /// The same without the stream.
    pub(crate) fn pass(&self) -> &Pass {
        &self.0.pass
    }

    /// The stream that it is for.
    pub fn stream(&self) -> &StreamName {
        &self.0.stream
    }

    /// Whether it is for this.
    pub fn is_for(&self, right: Right, stream: &StreamName) -> bool {
        self.0.pass.right == right && self.0.stream == *stream
    }

    /// What the token is called that it was given for, if that has a name.
    pub fn name(&self) -> Option<&str> {
        match &self.0.pass.by {
            By::Named(name, _) | By::Signed { name, .. } => Some(name),
            By::Nothing | By::Listed(_) | By::Asked(_) => None,
        }
    }

    /// What the token of `[[access.tokens]]` is called that it was given for, if it was.
    pub fn token(&self) -> Option<&str> {
        match &self.0.pass.by {
            By::Named(name, _) => Some(name),
            By::Nothing | By::Listed(_) | By::Signed { .. } | By::Asked(_) => None,
        }
    }

    /// Whether the hook has given it for this address and token.
    pub fn was_asked_for(&self, peer: IpAddr, token: Option<&str>) -> bool {
        match &self.0.pass.by {
            By::Asked(lease) => !lease.is_over() && lease.question.is_of(peer, token),
            By::Nothing | By::Listed(_) | By::Named(..) | By::Signed { .. } => false,
        }
    }

    /// When it ends by itself, whatever the rules say.
    pub(crate) fn until(&self) -> Option<Date> {
        match &self.0.pass.by {
            By::Signed { until, .. } => Some(*until),
            By::Nothing | By::Listed(_) | By::Named(..) | By::Asked(_) => None,
        }
    }

    /// Whether these rules would give it, too.
    pub(crate) fn holds(&self, rules: &Rules, today: Date) -> bool {
        self.0.pass.holds(Some(&self.0.stream), rules, today)
    }
}

/// Tokens stay out of logs.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Granted { stream, pass: Pass { right, peer, .. } } = &*self.0;
        write!(f, "Grant {{ {right:?} {stream} to {peer} by {:?} }}", self.name())
    }
}
