//! `outflow run`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::failure::fail;
use super::serve::{self, Status};

/// Runs the relay that a configuration describes
///
/// SIGHUP, or a request to the API, loads the file again: unchanged streams are not disturbed. A file that is
/// empty or half written is refused, and so is one that removes most streams.
/// SIGTERM or Ctrl-C ends the relay, within seconds. If something fails without which it cannot go on, it ends by
/// itself, with status 70 and the reason as the last line of its log.
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
}

impl Run {
    pub(crate) fn run(self) -> ExitCode {
        let config = match outflow_control::load(&self.path, &outflow_fronts::protocols()) {
            Ok(config) => config,
            Err(error) => return fail(error),
        };
        if !self.allow_empty
            && let Err(error) = outflow_control::refuse_empty(&config)
        {
            return fail(format!("{}: {error}", self.path.display()));
        }
        let log = match serve::start_log(&config.log) {
            Ok(log) => log,
            Err(error) => return fail(error),
        };
        let status = if self.status { Status::Line } else { Status::None };
        let file = (config, Some(self.path), self.allow_empty);
        serve::until_ended(&log, file, outflow_fronts::all(), status, || Ok(()))
    }
}
