//! Network namespaces and the paths between them.

mod namespace;
mod paths;
mod sinks;

pub use namespace::{Namespace, cannot_make_namespaces};
pub use paths::{
    PLAYER, PLAYER_V6, Paths, RELAY_IN, RELAY_IN_V6, RELAY_OUT, RELAY_OUT_V6, SOURCE, SOURCE_V6, STRANGER,
    link,
};
pub use sinks::{SINK_PORT, SINK_PORTS, SINKS_FIRST, sink, sink_v6};
