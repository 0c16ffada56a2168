//! Every protocol that this program has: one line each. What is behind a feature can be left out.

use std::sync::Arc;

use outflow_control::Front;

/// All of them.
pub fn all() -> Vec<Arc<dyn Front>> {
    vec![
        #[cfg(feature = "demo")]
        outflow_front_demo::front(),
        #[cfg(feature = "rtsp")]
        outflow_front_rtsp::front(),
        #[cfg(feature = "http-ts")]
        outflow_front_http_ts::front(),
        #[cfg(feature = "poc")]
        outflow_front_poc::front(),
        #[cfg(feature = "multicast")]
        outflow_front_multicast::front(),
        #[cfg(feature = "tree")]
        outflow_front_tree::front(),
    ]
}
