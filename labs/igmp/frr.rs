//! FRR's zebra and pimd (the package `frr`), with files of their own.

use std::path::Path;

use anyhow::{Context, Result};
use nix::unistd::User;
use outflow_labs::net::Namespace;
use outflow_labs::process::{Program, Running};
use outflow_labs::relay::PATIENCE;
use tempfile::TempDir;

use crate::scene::{CPU, IN, LAN};

/// Where Debian has the daemons, which are nowhere in the path.
const DAEMONS: &str = "/usr/lib/frr";

/// Both daemons.
#[derive(Debug)]
pub(crate) struct Frr {
    _pimd: Running,
    _zebra: Running,
    _folder: TempDir,
}

/// Why there is none, if there is none.
pub(crate) fn is_missing() -> Option<String> {
    let is_there = |name: &&str| Path::new(DAEMONS).join(name).exists();
    let all = ["zebra", "pimd"].iter().all(is_there);
    (!all).then(|| "FRR's pimd is missing: apt-get install frr, or scripts/setup test".to_owned())
}

/// What it says of itself.
pub(crate) fn version() -> Result<String> {
    let said = Program::new(format!("{DAEMONS}/pimd")).arg("--version").finish(PATIENCE)?.stdout;
    Ok(said.lines().next().unwrap_or_default().trim_end_matches('.').to_owned())
}

impl Frr {
    /// Starts them in a namespace: a querier with the RFC's times, which is the PIM domain's rendezvous point.
    pub(crate) fn start(namespace: &Namespace) -> Result<Self> {
        let folder = TempDir::new()?;
        let user = User::from_name("frr")?.context("the package frr makes the user frr, which is missing")?;
        std::os::unix::fs::chown(folder.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        let interfaces =
            [LAN, IN].map(|name| format!("interface {name}\n ip igmp\n ip igmp version 3\n ip pim\n"));
        let pimd = format!("hostname pimd\nip pim rp 10.1.0.1\n{}", interfaces.concat());
        let start = |name: &str, configuration: &str| {
            let path = |ending: &str| folder.path().join(format!("{name}.{ending}")).display().to_string();
            std::fs::write(path("conf"), configuration)?;
            let socket = folder.path().join("zserv.api").display().to_string();
            let folder = folder.path().display().to_string();
            let program = Program::new(format!("{DAEMONS}/{name}"));
            let program = program.args(["-f", &path("conf"), "-i", &path("pid"), "-z", &socket]);
            let program = program.args(["--vty_socket", &folder, "--log", "stdout"]);
            program.within(namespace).on_cpu(CPU).preferred().start()
        };
        let zebra = start("zebra", "hostname zebra\n")?;
        crate::scene::wait(
            "zebra's socket",
            || folder.path().join("zserv.api").exists(),
            || zebra.account(),
        )?;
        let pimd = start("pimd", &pimd)?;
        Ok(Frr { _pimd: pimd, _zebra: zebra, _folder: folder })
    }
}
