//! The unit for systemd, as systemd judges it.

#![allow(clippy::disallowed_methods, reason = "a test of files and processes")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// The most that `systemd-analyze security` may say of its exposure, of 100.
const EXPOSURE_MAX: &str = "20";

/// A copy of it by this name, and the folder in which that is.
fn unit(name: &str) -> (TempDir, String) {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/systemd/outflow@.service");
    let text = std::fs::read_to_string(ours).expect("it is there");
    // One that is not there would be called a mistake.
    let text = text.replace("/usr/local/bin/outflow", env!("CARGO_BIN_EXE_outflow"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(name);
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    (folder, file)
}

/// What systemd's tool says; `None` if it is not here.
fn analyzed(arguments: &[&str]) -> Option<Output> {
    let output = Command::new("systemd-analyze").args(arguments).output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            outflow_skip::skipped("the unit for systemd", format!("`systemd-analyze`: {error}"));
            None
        }
    }
}

#[test]
fn the_unit_is_exposed_to_little() {
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let (_folder, unit) = unit("outflow@.service");
    let Some(output) = analyzed(&["security", "--offline=true", "--no-pager", &threshold, &unit]) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("Overall exposure level"), "{said}");
}

#[test]
fn the_unit_has_no_mistakes() {
    let (_folder, unit) = unit("outflow@edge.service");
    let Some(output) = analyzed(&["verify", "--man=no", &unit]) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    // What it says of units of the machine is not ours.
    assert!(!said.lines().any(|line| line.contains("outflow@")), "{said}");
}
