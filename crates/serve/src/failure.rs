//! How a command ends that fails.

use std::io::Write as _;
use std::process::ExitCode;

/// Says on standard error what went wrong. The command ends with status 1; mistakes in its
/// arguments end it with 2.
pub fn fail(what: impl std::fmt::Display) -> ExitCode {
    // If that cannot be written, the status says it.
    let _ = writeln!(std::io::stderr(), "{what}");
    ExitCode::FAILURE
}
