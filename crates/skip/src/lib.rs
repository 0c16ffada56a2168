//! Checks that cannot run on this machine, and the programs that checks look for.
//!
//! A check that lacks a program, a privilege or a feature of the kernel calls [`skipped`] and returns. A line on
//! standard error says so. In CI (environment variable `CI` set and not empty) the check fails instead, unless
//! `.ci/skips` lists it with its reason: a check that never runs proves nothing.

#![allow(clippy::disallowed_methods, reason = "this crate is for tests alone")]

use std::io::Write;
use std::path::PathBuf;

/// The checks that CI may skip: a line each, `CHECK: why it cannot run there`.
const LIST: &str = include_str!("../../../.ci/skips");

/// What a skipped check means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is told, and the test passes.
    Reported,
    /// It is told, and CI expects it, for this reason.
    Listed(&'static str),
    /// The test fails.
    Failure,
}

/// Says that `check` is skipped and why, on standard error itself: test harnesses keep what macros print.
///
/// # Panics
/// In CI, if the check is not listed in `.ci/skips`.
#[track_caller]
pub fn skipped(check: &str, why: impl core::fmt::Display) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let verdict = verdict(LIST, check, in_ci);
    let listed = match verdict {
        Verdict::Listed(reason) => format!("; CI expects it: {reason}"),
        _ => String::new(),
    };
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {check} ({why}){listed}");
    assert!(
        verdict != Verdict::Failure,
        "`{check}` was skipped ({why}), and in CI nothing may be missing: let scripts/setup install it, \
         or list the check in .ci/skips with its reason"
    );
}

/// The file of a program: in `PATH`, or where Debian keeps those of the administrator.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn verdict(list: &'static str, check: &str, in_ci: bool) -> Verdict {
    if !in_ci {
        return Verdict::Reported;
    }
    let reason = entries(list).find(|(name, _)| *name == check).map(|(_, reason)| reason);
    reason.map_or(Verdict::Failure, Verdict::Listed)
}

fn entries(list: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap_or((line, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_check_has_a_reason() {
        for (check, reason) in entries(LIST) {
            assert!(reason.len() > 10, "{check}: say why it cannot run in CI");
        }
    }

    #[test]
    fn in_ci_a_skipped_check_fails_unless_it_is_listed() {
        let list = "# why\n\nvlan: the kernel has no 802.1Q\n";
        assert_eq!(verdict(list, "vlan", true), Verdict::Listed("the kernel has no 802.1Q"));
        assert_eq!(verdict(list, "vla", true), Verdict::Failure);
        assert_eq!(verdict(list, "vla", false), Verdict::Reported);
        assert_eq!(verdict(list, "vlan", false), Verdict::Reported);
    }

    #[test]
    fn programs_are_found() {
        assert!(program("sh").is_some());
        assert_eq!(program("no-such-program-of-outflow"), None);
    }
}
