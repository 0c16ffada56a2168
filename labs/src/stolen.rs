//! Time that the host took from this machine: what is measured meanwhile says nothing about what is measured.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

/// The column of a line of `/proc/stat`, its name included.
const STEAL: usize = 8;

/// Ticks (a hundredth of a second, mostly) that were taken so far from all cores: `steal` in `/proc/stat`, proc(5).
///
/// # Errors
/// The system does not tell.
pub fn stolen_ticks() -> Result<u64> {
    ticks("cpu")
}

/// Time that was taken so far from one core, to a tick.
///
/// # Errors
/// The system does not tell.
pub fn stolen_from(cpu: usize) -> Result<Duration> {
    let per_second = sysconf(SysconfVar::CLK_TCK)?.and_then(|ticks| u32::try_from(ticks).ok());
    let tick =
        Duration::from_secs(1) / per_second.filter(|ticks| *ticks > 0).context("how long is a tick?")?;
    Ok(tick * u32::try_from(ticks(&format!("cpu{cpu}"))?)?)
}

/// Of the line with this name.
fn ticks(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
    let ticks = line.and_then(|line| line.split_whitespace().nth(STEAL)?.parse().ok());
    ticks.with_context(|| format!("/proc/stat has no time that was stolen from {name}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_never_falls() {
        let before = super::stolen_ticks().expect("Linux");
        assert!(super::stolen_ticks().expect("Linux") >= before);
    }

    #[test]
    fn cores_are_told_apart() {
        let of_first = super::stolen_from(0).expect("Linux");
        assert!(super::stolen_from(0).expect("Linux") >= of_first);
        assert!(super::stolen_from(usize::MAX).is_err(), "there is no such core");
    }
}
