//! `outflow upgrade`

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use outflow_serve::fail;
use serde::Deserialize;

use super::api::Api;

/// How long an upgrade may take: the new process loads its configuration and plug-ins first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Has a running relay go on as the program that is in its place now, and waits until it does
///
/// Put the new program at the path of the old one first, as a new file (install and mv make one). A new process starts
/// with the same arguments, takes over receivers, publishers and sockets, and goes on; the old one ends. If that cannot
/// be, this says why, and the relay goes on as if nothing had been. SIGUSR2 to the relay does the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outflow upgrade\n  \
                        outflow upgrade http://edge:8080 --token \"$TOKEN\"")]
pub(crate) struct Upgrade {
    /// HTTP address of the relay
    #[arg(value_name = "URL", default_value = "http://localhost:8080")]
    url: String,
    /// A token of that relay with the right to control
    #[arg(long, env = "OUTFLOW_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

/// How the relay goes on.
#[derive(Debug, Deserialize)]
struct Upgraded {
    version: String,
    gap_ms: f64,
}

impl Upgrade {
    pub(crate) fn run(self) -> ExitCode {
        match self.upgrade() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => fail(why),
        }
    }

    fn upgrade(&self) -> Result<(), String> {
        let api = Api { url: &self.url, token: self.token.as_deref() };
        let Upgraded { version, gap_ms } = api.order("upgrade", PATIENCE)?;
        let text = format!("the relay goes on as version {version}; it sent nothing for {gap_ms:.1} ms");
        writeln!(std::io::stdout(), "{text}").map_err(|e| format!("standard output cannot be written: {e}"))
    }
}
