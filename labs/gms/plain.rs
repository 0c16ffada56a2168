//! A router that knows of no levels: mrouted, if it is there. `MROUTED` names it, or it is on the PATH.

use std::path::PathBuf;

use anyhow::{Context, Result};
use outflow_labs::net::Namespace;
use outflow_labs::process::{Program, Running};
use tempfile::TempDir;

/// Where it is, if it is.
pub(crate) fn mrouted() -> Option<PathBuf> {
    std::env::var_os("MROUTED").map(PathBuf::from).or_else(|| outflow_skip::program("mrouted"))
}

/// One that runs, with files of its own.
pub(crate) struct Mrouted {
    running: Running,
    _files: TempDir,
}

impl Mrouted {
    /// Starts it on all interfaces of a namespace.
    pub(crate) fn start(program: &std::path::Path, namespace: &Namespace) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let file = |name: &str| files.path().join(name).display().to_string();
        std::fs::write(file("conf"), "")?;
        let arguments =
            ["-n", "-f", &file("conf"), "-i", namespace.name(), "-p", &file("pid"), "-u", &file("socket")];
        let line = Program::new(program.display().to_string()).args(arguments);
        let running = line.within(namespace).start().context("cannot start mrouted")?;
        Ok(Mrouted { running, _files: files })
    }

    /// It has not ended by itself.
    pub(crate) fn healthy(&mut self) -> Result<()> {
        anyhow::ensure!(self.running.alive(), "mrouted has ended: {}", self.running.account());
        Ok(())
    }
}
