//! What compiles plug-ins and runs them, over Wasmtime.

mod batch;
mod code;
mod contract;
mod element;
mod guest;
mod options;
mod parts;
mod rest;
#[cfg(test)]
mod tests;
mod wrap;

use outflow_graph::{Element, Settings, Unfit};

/// Makes an element of the bytes of a .wasm file, with the options of kind "wasm".
///
/// They are compiled, here and now, unless an element of the same bytes is still around: this
/// belongs into the control plane, never into the path.
///
/// # Errors
/// What keeps them from being a plug-in, and what to do.
pub fn load(settings: &Settings, bytes: &[u8]) -> Result<Box<dyn Element>, Unfit> {
    let options = options::Options::of(settings)?;
    Ok(Box::new(element::WasmElement::new(code::Code::of(bytes)?, options)))
}
