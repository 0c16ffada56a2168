//! `outflow run`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use outflow_serve::{Loaded, Status, fail, serve};

/// Runs the relay that a configuration describes
///
/// SIGHUP, or a request to the API, loads the file again: unchanged streams are not disturbed. A file that is
/// empty or half written is refused, and so is one that removes most streams.
/// SIGUSR2, or `outflow upgrade`, has the relay go on as the program that is in its place by then.
/// SIGTERM or Ctrl-C ends the relay, within seconds. If something fails without which it cannot go on, another process
/// goes on with it under systemd; else it ends by itself, with status 70 and the reason as the last line of its log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow run outflow.toml\n  outflow run outflow.toml --status")]
pub(crate) struct Run {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Show a live status line on standard error
    #[arg(long)]
    status: bool,
    /// Take a file that says nothing of what is to be relayed, also when SIGHUP loads it again
    #[arg(long)]
    allow_empty: bool,
    /// Go on with what another relay did, which is at the other end of standard input
    #[arg(long, hide = true)]
    take_over: bool,
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        let from = match self.take_over.then(outflow_serve::line).transpose() {
            Ok(from) => from,
            Err(error) => return fail(error),
        };
        let config = match outflow_control::load(&self.path, &outflow_fronts::protocols()) {
            Ok(config) => config,
            Err(error) => return fail(error),
        };
        if !self.allow_empty
            && let Err(error) = outflow_control::refuse_empty(&config)
        {
            return fail(format!("{}: {error}", self.path.display()));
        }
        let status = if self.status { Status::Line } else { Status::None };
        let loaded = Loaded { config, path: Some(self.path), allow_empty: self.allow_empty, from };
        serve(loaded, outflow_fronts::all(), status, || Ok(()))
    }
}
