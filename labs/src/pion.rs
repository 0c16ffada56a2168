//! Programs over pion, an implementation of WebRTC in Go (`labs/pion`): built here, where Go is.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Program;
use crate::programs::missing;

/// Go fetches modules the first time, where `scripts/setup` has not, and compiles its library.
const BUILT_WITHIN: Duration = Duration::from_secs(600);

/// The Go that `scripts/setup` has brought, or the system's.
fn go() -> Option<String> {
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/go/bin/go");
    if brought.is_file() {
        return Some(brought.display().to_string());
    }
    missing("go").is_none().then(|| "go".to_owned())
}

/// Why there cannot be such programs here, if so.
pub fn lacking() -> Option<String> {
    go().is_none().then(|| "go is not installed".to_owned())
}

/// Builds one of them, a folder there, beside this program.
///
/// # Errors
/// Go is not there, or cannot build it.
pub fn program(name: &str) -> Result<Program> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(go) = go() else { bail!("go is not installed") };
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = ours.join("pion").display().to_string();
    let to = std::env::current_exe()?.with_file_name(format!("lab-pion-{name}")).display().to_string();
    // What a test builds as root is none of the user's.
    let cache = ours.join("../target/tmp/go-build").display().to_string();
    let build =
        Program::new(go).args(["build", "-C", &folder, "-mod=readonly", "-buildvcs=false", "-o", &to]);
    let build = build.arg(format!("./{name}")).env("GOCACHE", &cache);
    build.finish(BUILT_WITHIN).context("Go cannot build it")?;
    Ok(Program::new(to))
}
