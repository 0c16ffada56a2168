//! What user space tells the driver, as the kernel does by upcalls.

use outflow_routing::forwarding::Pair;

/// Packets came in that nothing was set for, or not by this interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its index.
    pub(crate) interface: u32,
    pub(crate) pair: Pair,
}
