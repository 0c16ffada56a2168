//! Network namespaces and the paths between them.

mod namespace;
mod paths;
mod sinks;

pub use namespace::{Namespace, cannot_make_namespaces};
pub use paths::{PLAYER, Paths, RELAY_IN, RELAY_OUT, SOURCE, STRANGER, link};
pub use sinks::{SINK_PORT, SINK_PORTS, SINKS_FIRST, sink};
