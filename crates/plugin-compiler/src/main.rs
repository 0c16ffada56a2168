//! The compiler of plug-ins, a program of its own that the relay runs: a plug-in comes on standard
//! input, its machine code goes to standard output.
//!
//! If the plug-in cannot be compiled, the program ends with 1. Then standard error says what is wrong, and
//! its last line what to do about it. Time and memory are limited.

mod wrap;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use outflow_graph::Unfit;
use outflow_plugin::limits::{COMPILE_MEMORY_BYTES_MAX, COMPILE_TIME_MAX, FILE_BYTES_MAX};
use rustix::process::{Resource, Rlimit, setrlimit};
use wasmtime::Engine;

fn main() -> ExitCode {
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Unfit { what, help }) => {
            eprintln!("{what}\n{help}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), Unfit> {
    bound()?;
    let mut plugin = Vec::new();
    std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut plugin).map_err(|error| {
        Unfit::new(format!("standard input cannot be read: {error}"), "give a .wasm file on standard input")
    })?;
    if plugin.len() as u64 > FILE_BYTES_MAX {
        let what = format!("the plug-in has more than {FILE_BYTES_MAX} bytes");
        return Err(Unfit::new(what, "strip it of what it does not need"));
    }
    let code = code(&plugin)?;
    std::io::stdout()
        .write_all(&code)
        .map_err(|error| Unfit::new(format!("standard output cannot be written: {error}"), "give it a pipe"))
}

/// The machine code of a plug-in.
fn code(plugin: &[u8]) -> Result<Vec<u8>, Unfit> {
    let component = wrap::component(plugin)?;
    let mut settings = outflow_plugin::settings();
    // The same numbers on every machine. The relay's Wasmtime has no such setting, as it only runs what is compiled.
    settings.cranelift_nan_canonicalization(true);
    let engine = Engine::new(&settings).map_err(|error| {
        let what = format!("WebAssembly cannot be compiled here: {error:#}");
        Unfit::new(what, "leave elements of kind \"wasm\" out")
    })?;
    engine.precompile_component(&component).map_err(|error| {
        Unfit::new(format!("it is no valid WebAssembly: {error:#}"), "build it again from its source")
    })
}

/// Takes from this process what compiling does not need.
fn bound() -> Result<(), Unfit> {
    let limits = [
        (Resource::As, COMPILE_MEMORY_BYTES_MAX),
        (Resource::Cpu, COMPILE_TIME_MAX.as_secs()),
        (Resource::Core, 0),
        // No file can grow; pipes can be written to.
        (Resource::Fsize, 0),
    ];
    limits.into_iter().try_for_each(|(resource, limit)| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }).map_err(|error| {
            let help = "start the relay with higher limits (`ulimit -a`)";
            Unfit::new(format!("{resource:?} cannot be limited: {error}"), help)
        })
    })
}
