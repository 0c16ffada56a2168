//! Elements in WebAssembly: foreign code in the path of packets, which can do no harm.
//!
//! A plug-in is a component of the contract in `wit/plugin.wit` ([`WIT`]), or a module that exports
//! the contract's functions by their canonical names. It is given whole batches
//! of packets, with as much of their bytes as it wants, and answers what becomes of each. Its memory
//! and the instructions of a call are limited; it has no clock, chance, files or network. What goes
//! wrong in it costs the packet with which it went wrong, and is counted.
//!
//! What runs them is the feature `host`; without it, every plug-in is refused with the reason. What compiles them is
//! a program of its own (`outflow-plugin-compiler`): a compiler is larger than all of the relay.
//!
//! [`open`] makes an element of a file; [`scaffold`] begins a new one in Rust, Go, C or JavaScript.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate runs a compiler and writes files; it does so aside, never in the path"
)]

#[cfg(feature = "host")]
mod host;
pub mod limits;
mod scaffold;
mod version;

use std::path::Path;

use limits::FILE_BYTES_MAX;
use outflow_file::Unreadable;
use outflow_graph::{Element, Settings, Unfit};

#[cfg(feature = "host")]
pub use host::{load, settings, spoken};
pub use scaffold::{Lang, ScaffoldError, scaffold};
pub use version::{VERSION, WIT};

/// Makes an element of the file that the options of kind "wasm" name. As [`load`], it belongs into the
/// control plane.
///
/// # Errors
/// The file cannot be read or is no plug-in, and what to do.
pub fn open(settings: &Settings) -> Result<Box<dyn Element>, Unfit> {
    let file = settings.text("file").unwrap_or_default();
    let bytes = outflow_file::read(Path::new(file), FILE_BYTES_MAX).map_err(|error| {
        let help = match error {
            Unreadable::Bytes(_) => "give the path of a plug-in; strip it of what it does not need",
            _ => "give the path of a plug-in that can be read",
        };
        Unfit::new(format!("{file} cannot be read: {error}"), help)
    })?;
    load(settings, &bytes)
}

/// A build without the host of plug-ins has none.
///
/// # Errors
/// Always; it says how to get a build that has it.
#[cfg(not(feature = "host"))]
pub fn load(_: &Settings, _: &[u8]) -> Result<Box<dyn Element>, Unfit> {
    Err(Unfit::new(
        "this build of outflow has no plug-ins",
        "build it with the feature `outflow-fronts/wasm`",
    ))
}
