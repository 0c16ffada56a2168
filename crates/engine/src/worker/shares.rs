//! Scratch space for orders whose sinks do not all get the same.

use outflow_relay::{Share, SinkKey};

/// What each sink of an order gets, if that differs; kept so that no memory is asked for an order.
#[derive(Debug, Default)]
pub(super) struct Shares {
    pub(super) members: Vec<(Share, SinkKey)>,
    pub(super) max_layers: Vec<Share>,
    pub(super) keys: Vec<SinkKey>,
}
