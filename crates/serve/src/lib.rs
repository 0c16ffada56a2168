//! A relay as a process: from its start to a signal, or to the end of something without which it cannot go on. The
//! programs that have one are `outflow` and, with less in it, `outflow-demo`.

#![allow(clippy::disallowed_methods, reason = "this crate owns files, threads and time")]

mod demo;
mod failure;
mod helper;
mod relay;
mod starter;
mod status;
mod systemd;

use std::process::ExitCode;

pub use demo::Demo;
pub use failure::fail;
pub use relay::{Loaded, Status, serve};
pub use starter::line;

/// Does what this process is for where a relay has started it by another name; none where it is a program of its own.
pub fn by_another_name() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == helper::NAME => Some(helper::run()),
        Some(name) if name == starter::NAME => Some(starter::run(arguments)),
        _ => None,
    }
}
