//! The `outflow` command: what it can do stands in `commands/`, one file each.

#![allow(clippy::disallowed_methods, reason = "this crate owns files, threads and time")]

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == commands::helper::NAME) {
        return commands::helper::run();
    }
    commands::Cli::parse().run()
}
