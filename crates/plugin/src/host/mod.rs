//! What has plug-ins compiled and runs them, over Wasmtime.

mod batch;
mod code;
mod compiler;
mod contract;
mod element;
mod guest;
mod live;
mod options;
mod parts;
mod rest;
mod spoken;
#[cfg(test)]
mod tests;

use outflow_graph::{Element, Settings, Unfit};

pub use code::settings;
pub use spoken::spoken;

/// Makes an element of the bytes of a .wasm file, with the options of kind "wasm".
///
/// They are compiled now, by the program `outflow-plugin-compiler` beside this one, unless an element of the
/// same bytes is still around: this belongs into the control plane, never into the path.
///
/// # Errors
/// What keeps them from being a plug-in, and what to do.
pub fn load(settings: &Settings, bytes: &[u8]) -> Result<Box<dyn Element>, Unfit> {
    let options = options::Options::of(settings)?;
    Ok(Box::new(element::WasmElement::new(code::Code::of(bytes)?, options)))
}
