//! Every protocol that this program has: one line each. What is behind a feature can be left out.

use std::sync::Arc;

use outflow_config::Protocols;
use outflow_control::Front;

/// A list of fronts, each with its feature.
macro_rules! fronts {
    ($($feature:literal => $front:ident,)+) => {
        /// All of them.
        pub fn all() -> Vec<Arc<dyn Front>> {
            vec![$(#[cfg(feature = $feature)] $front::front(),)+]
        }
    };
}

fronts! {
    "demo" => demo,
    "rtsp" => rtsp,
    "http-ts" => http_ts,
    "poc" => poc,
    "multicast" => multicast,
    "hooks" => hooks,
    "tree" => tree,
    "wasm" => wasm,
    "webrtc" => webrtc,
}

/// What all of them add to the configuration.
pub fn protocols() -> Protocols {
    outflow_control::protocols(&all())
}
