//! The `outflow` command: what it can do stands in `commands/`, one file each.

#![allow(clippy::disallowed_methods, reason = "this crate owns files, threads and time")]

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    outflow_serve::by_another_name().unwrap_or_else(|| commands::Cli::parse().run())
}
