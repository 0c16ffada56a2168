//! Time that the host took from this machine: what is measured meanwhile says nothing about what is measured.

use anyhow::{Context, Result};

/// Ticks (a hundredth of a second, mostly) that were taken so far from all cores: `steal` in `/proc/stat`, proc(5).
///
/// # Errors
/// The system does not tell.
pub fn stolen_ticks() -> Result<u64> {
    const STEAL: usize = 8;
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let of_all = text.lines().next().and_then(|line| line.split_whitespace().nth(STEAL));
    of_all.and_then(|ticks| ticks.parse().ok()).context("/proc/stat has no time that was stolen")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_never_falls() {
        let before = super::stolen_ticks().expect("Linux");
        assert!(super::stolen_ticks().expect("Linux") >= before);
    }
}
