//! The `outflow` command: what it can do stands in `commands/`, one file each.

#![allow(clippy::disallowed_methods, reason = "this crate owns files, threads and time")]

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == commands::helper::NAME => commands::helper::run(),
        Some(name) if name == commands::starter::NAME => commands::starter::run(arguments),
        _ => commands::Cli::parse().run(),
    }
}
