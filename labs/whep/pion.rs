//! The relay over pion: built by Go, where that is installed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use outflow_labs::bench::SOURCE_PORT;
use outflow_labs::net::{RELAY_IN, RELAY_OUT};
use outflow_labs::process::Program;
use outflow_labs::programs::missing;
use outflow_labs::relay::HTTP_PORT;

/// Where its viewers come to.
const UDP_PORT: u16 = 8189;
/// Go fetches modules the first time.
const BUILT_WITHIN: Duration = Duration::from_secs(600);

/// Builds it, beside this program.
pub(crate) fn program() -> Result<Program> {
    if let Some(why) = missing("go") {
        bail!("{why}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("whep/pion");
    let ours = std::env::current_exe()?;
    let to = ours.with_file_name("lab-whep-pion").display().to_string();
    let build = ["build", "-C", &folder.display().to_string(), "-mod=readonly", "-o", &to, "."];
    Program::new("go").args(build).finish(BUILT_WITHIN).context("Go cannot build it")?;
    Ok(Program::new(to).args([
        format!("{RELAY_IN}:{SOURCE_PORT}"),
        format!("{RELAY_OUT}:{HTTP_PORT}"),
        format!("{RELAY_OUT}:{UDP_PORT}"),
    ]))
}
