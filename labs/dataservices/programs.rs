//! Other people's programs, and what they use of the processor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Runs a program on a core, in a folder, and returns the processor time that it took.
pub(crate) fn processor_time(line: &[&str], folder: &Path, cpu: usize) -> Result<Duration> {
    let before = children()?;
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]).args(line).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().context("cannot run taskset: scripts/setup test")?;
    ensure!(status.success(), "it failed (scripts/setup test installs it): {}", line.join(" "));
    Ok(children()?.saturating_sub(before))
}

/// Processor time of the programs that this one has waited for.
fn children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}
