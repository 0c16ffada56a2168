//! `outflow run` with a file that says nothing of what is to be relayed.

#![allow(clippy::disallowed_methods, reason = "a test of programs and files")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn run(file: &Path) -> Command {
    let mut run = Command::new(env!("CARGO_BIN_EXE_outflow"));
    run.arg("run").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    run
}

#[test]
fn it_is_refused_unless_that_is_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outflow.toml");
    // The second is a file of which the rest is not written yet.
    for text in ["", "[listen]\nrtsp = \"off\"\nhttp = \"off\"\n"] {
        std::fs::write(&file, text).expect("written");
        let output = run(&file).output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("--allow-empty"), "{said}");
    }
    let mut running = run(&file).arg("--allow-empty").spawn().expect("it begins");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(running.try_wait().expect("asked"), None, "it runs");
    running.kill().expect("ended");
    running.wait().expect("ended");
}
