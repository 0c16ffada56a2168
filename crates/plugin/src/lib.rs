//! Elements in WebAssembly: anybody's code in the path of packets, which can do no harm.
//!
//! A plug-in is a component of the contract in `wit/plugin.wit` ([`WIT`]), or a module that exports
//! the contract's functions by their canonical names and is wrapped here. It is given whole batches
//! of packets, with as much of their bytes as it wants, and answers what becomes of each. Its memory
//! and the instructions of a call are limited; it has no clock, chance, files or network. What goes
//! wrong in it costs the packet with which it went wrong, and is counted.
//!
//! [`open`] makes an element of a file; [`scaffold`] begins a new one in Rust, Go, C or JavaScript.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate compiles and writes files; it does so aside, never in the path"
)]

mod batch;
mod code;
mod contract;
mod element;
mod guest;
pub mod limits;
mod options;
mod parts;
mod rest;
mod scaffold;
#[cfg(test)]
mod tests;
mod wrap;

use std::fs::File;
use std::io::Read as _;

use limits::FILE_BYTES_MAX;
use outflow_relay::graph::{Element, Settings, Unfit};

pub use contract::{VERSION, WIT};
pub use scaffold::{Lang, ScaffoldError, scaffold};

/// Makes an element of the file that the options of kind "wasm" name. As [`load`], it belongs into the
/// control plane.
///
/// # Errors
/// The file cannot be read or is no plug-in, and what to do.
pub fn open(settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
    let file = settings.text("file").unwrap_or_default();
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        Unfit::new(format!("{file} cannot be read: {error}"), "give the path of a plug-in that can be read")
    })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let what = format!("{file} has more than {FILE_BYTES_MAX} bytes");
        return Err(Unfit::new(what, "give the path of a plug-in; strip it of what it does not need"));
    }
    load(settings, &bytes)
}

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
