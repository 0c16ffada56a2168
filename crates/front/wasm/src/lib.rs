//! Plug-ins: elements of the kind "wasm" in the services of a running relay.

use std::sync::Arc;

use outflow_control::{Front, MakeElement};

/// Elements in WebAssembly.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Wasm)
}

#[derive(Debug)]
struct Wasm;

impl Front for Wasm {
    fn maker(&self, kind: &str) -> Option<MakeElement> {
        (kind == "wasm").then_some(outflow_plugin::open)
    }
}
