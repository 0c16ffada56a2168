//! What an interface is for.

use crate::querier::Downstream;

/// What an interface is for, whether it is there or not.
#[derive(Debug, Default)]
pub(super) struct Role {
    pub(super) hosts: Option<Downstream>,
    /// What a hop over it counts, if neighbours may be there.
    pub(super) metric: Option<u8>,
    pub(super) is_upstream: bool,
}

impl Role {
    /// Whether it is nothing any more.
    pub(super) const fn is_empty(&self) -> bool {
        self.hosts.is_none() && self.metric.is_none() && !self.is_upstream
    }
}
