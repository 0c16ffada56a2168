//! The starter, which starts the next version of a relay that runs: this same program by another name.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use outflow_handover::Line;
use outflow_privilege::{serve_starter, start_starter};

use crate::failure::fail;

/// The name.
pub(crate) const NAME: &str = "outflow-starter";

/// What the relay is told that it has to start.
const TAKE_OVER: &str = "--take-over";

/// Whose watchdog systemd asks for.
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// Starts it. The file of this program is named now: one that is put in its place later is what it starts.
pub(crate) fn start() -> io::Result<()> {
    if std::process::id() == 1 {
        // With the first process of a container all others end: none could take its place.
        return Ok(());
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0(NAME).arg(env::current_exe()?).args(arguments(env::args_os().skip(1)));
    let own = std::process::id().to_string();
    if env::var_os(WATCHDOG_PID).is_some_and(|pid| pid == *own) {
        // What it starts takes this process's place.
        command.env_remove(WATCHDOG_PID);
    }
    start_starter(&mut command)
}

/// The arguments of a relay that takes over from one that has these.
fn arguments(own: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = own.filter(|argument| argument != TAKE_OVER).collect();
    // Behind the subcommand: at the end it might be a name.
    arguments.insert(1.min(arguments.len()), TAKE_OVER.into());
    arguments
}

/// Is it: serves the relay that is at the other end of standard input, until that ends.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Only how tools show it.
    let _ = rustix::thread::set_name(c"outflow-starter");
    let Some(path) = arguments.next() else { return fail("the starter is started by a relay alone") };
    let mut program = Command::new(&path);
    program.args(arguments);
    let served = serve_starter(io::stdin().as_fd(), &mut program, |error| cannot_start(&path, &error));
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cannot_start(path: &OsStr, error: &io::Error) {
    // It goes on.
    let _ = fail(format!("{} cannot be started to take over: {error}", path.display()));
}

/// Of a relay that is to take over: the line to the one that runs, which is its standard input. From now on that is
/// empty, so that no program that it starts has the line.
pub fn line() -> Result<Line, String> {
    let of_no_relay =
        |error| format!("standard input leads to no relay ({error}): leave {TAKE_OVER} to `outflow upgrade`");
    let line = io::stdin().as_fd().try_clone_to_owned().and_then(Line::taken).map_err(of_no_relay)?;
    let emptied = std::fs::File::open("/dev/null").and_then(|null| Ok(nix::unistd::dup2_stdin(null)?));
    emptied.map_err(|error| format!("standard input cannot be closed: {error}"))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(own: &[&str]) -> Vec<OsString> {
        arguments(own.iter().map(OsString::from))
    }

    #[test]
    fn it_starts_the_same_relay_that_is_told_once_to_take_over() {
        assert_eq!(of(&["run", "a.toml", "--status"]), ["run", "--take-over", "a.toml", "--status"]);
        assert_eq!(of(&["run", "--take-over", "a.toml"]), ["run", "--take-over", "a.toml"]);
        assert_eq!(of(&["run", "--", "-a"]), ["run", "--take-over", "--", "-a"]);
    }
}
