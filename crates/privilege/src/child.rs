//! Other programs: they may less than the relay, and use no more than they are given.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, nice, prlimit};

use crate::apart;

/// What a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How far it stands back behind the thread that starts it.
    pub nice: i32,
    /// Bytes of memory that it may write to. Addresses are not bounded: programs reserve more than they use.
    pub memory_bytes: u64,
    /// Descriptors that it may have open.
    pub files: u64,
}

/// What a program finds of the relay's environment.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Gives a program an environment of its own: where programs and its home are, its language, and these variables:
/// `NAME`, as the relay has it, or `NAME=VALUE`.
pub fn environment(command: &mut Command, variables: &[String]) {
    let all = PASSED_ON.into_iter().chain(variables.iter().map(String::as_str));
    let found = all.filter_map(|variable| match variable.split_once('=') {
        Some((name, value)) => Some((name, value.into())),
        None => Some((variable, std::env::var_os(variable)?)),
    });
    command.env_clear().envs(found);
}

/// Starts a program that has no capabilities, can get none, and is bounded, in a process group of its own: a signal to
/// the relay's terminal is not one to it, and it ends with what it started.
///
/// It is started as a thread starts one that does not copy the relay's memory first: what it may not is taken from that
/// thread, and the bounds are set at once after the start.
///
/// # Errors
/// It cannot be started, or not be bounded.
pub fn spawn(command: &mut Command, bounds: Bounds) -> io::Result<Child> {
    command.process_group(0);
    let mut child = apart(|| {
        nice(bounds.nice)?;
        command.spawn()
    })??;
    if let Err(error) = bound(Pid::from_child(&child), bounds) {
        // One that has ended is left alone.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait()?;
        return Err(error);
    }
    Ok(child)
}

fn bound(child: Pid, bounds: Bounds) -> io::Result<()> {
    for (resource, most) in
        [(Resource::Data, bounds.memory_bytes), (Resource::Nofile, bounds.files), (Resource::Core, 0)]
    {
        // It inherits the relay's: more is not to be had.
        let most = getrlimit(resource).maximum.map_or(most, |inherited| inherited.min(most));
        prlimit(Some(child), resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
