//! The compiler of plug-ins, which is a program of its own: run as a child, and its machine code loaded.
//!
//! This is the only place with `unsafe` in this crate: machine code can do all that this process can, so
//! only what the child has just written, for just these bytes, is loaded.

#![allow(unsafe_code, reason = "Wasmtime loads machine code by an unsafe function only")]

use std::io;
use std::io::{Read, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::ScopedJoinHandle;

use outflow_graph::Unfit;
use outflow_privilege::{Bounds, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::limits::{
    CODE_BYTES_MAX, COMPILE_MEMORY_BYTES_MAX, COMPILE_TIME_MAX, COMPILER_FILES, COMPILER_WORDS_BYTES_MAX,
};

/// The name of the program.
const NAME: &str = "outflow-plugin-compiler";
/// How to get the one that fits.
const BUILD: &str =
    "build it from the sources of this relay (`make plugins`), and have it in the same folder";

/// The component of a plug-in's bytes.
///
/// # Errors
/// There is no compiler, or it does not fit, or it refuses the plug-in; and what to do.
pub(super) fn component(engine: &Engine, plugin: &[u8]) -> Result<Component, Unfit> {
    let code = run(&program()?, plugin)?;
    // SAFETY: the code came through a pipe from the compiler of plug-ins, which was started above, from the folder of
    // this program, and had the pipe alone. That program writes what Wasmtime's compiler made and nothing else. It
    // ended with success, so the code is whole; it never was in a file, so nothing could change it. Wasmtime
    // refuses code of another of its versions, of other settings, and for another processor.
    let component = unsafe { Component::deserialize(engine, code) };
    component.map_err(|error| Unfit::new(format!("{NAME} is not that of this relay: {error:#}"), BUILD))
}

/// The program beside this one.
fn program() -> Result<PathBuf, Unfit> {
    let ours = std::env::current_exe().map_err(|error| {
        Unfit::new(format!("the folder of this program is not known: {error}"), "mount /proc")
    })?;
    // Cargo has programs of tests a folder deeper.
    let folder = ours.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).unwrap_or(&ours);
    let program = folder.join(NAME);
    if program.is_file() {
        return Ok(program);
    }
    let what = format!("the compiler of plug-ins is missing: there is no {}", program.display());
    Err(Unfit::new(what, BUILD))
}

/// What the compiler makes of a plug-in.
fn run(program: &Path, plugin: &[u8]) -> Result<Vec<u8>, Unfit> {
    let failed = |error: io::Error| {
        Unfit::new(format!("{} cannot be run: {error}", program.display()), "see its permissions, and limits")
    };
    // It may stand in a folder that only this thread may look into: it is opened here, and run from where it is open.
    let file = open(program, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|e| failed(e.into()))?;
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command.arg0(program).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It bounds itself further, once it runs.
    let bounds = Bounds { nice: 0, memory_bytes: COMPILE_MEMORY_BYTES_MAX, files: COMPILER_FILES };
    let mut running = Running(spawn(&mut command, bounds).map_err(failed)?);
    let Child { stdin, stdout, stderr, .. } = &mut running.0;
    let (stdin, stdout, stderr) = (stdin.take(), stdout.take(), stderr.take());
    let (status, code, words) = std::thread::scope(|scope| {
        // If it does not read all, it says why.
        scope.spawn(move || stdin.is_some_and(|mut pipe| pipe.write_all(plugin).is_ok()));
        let code = scope.spawn(move || read(stdout, CODE_BYTES_MAX + 1));
        let words = scope.spawn(move || read(stderr, COMPILER_WORDS_BYTES_MAX));
        (running.end(), joined(code), joined(words))
    });
    let (status, code, words) = (status.map_err(failed)?, code.map_err(failed)?, words.map_err(failed)?);
    if code.len() as u64 > CODE_BYTES_MAX {
        let what = format!("it has more than {CODE_BYTES_MAX} bytes of machine code");
        return Err(Unfit::new(what, "strip it of what it does not need"));
    }
    match status {
        Some(status) if status.success() => Ok(code),
        Some(status) => Err(refusal(status, &String::from_utf8_lossy(&words))),
        None => {
            let what = format!("it took longer than {} s to compile", COMPILE_TIME_MAX.as_secs());
            Err(Unfit::new(what, "strip it of what it does not need"))
        }
    }
}

/// Why the compiler refuses: its last line says what to do, what stands before it what is wrong.
fn refusal(status: ExitStatus, words: &str) -> Unfit {
    match words.trim_end().rsplit_once('\n') {
        Some((what, help)) if status.code() == Some(1) => Unfit::new(what, help),
        _ => {
            let what = format!("{NAME} ended without a result ({status}): {}", words.trim_end());
            Unfit::new(what, "make the plug-in smaller, or report this with the plug-in")
        }
    }
}

fn read(pipe: Option<impl Read>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.ok_or(io::ErrorKind::BrokenPipe)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn joined(reader: ScopedJoinHandle<'_, io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    reader.join().unwrap_or_else(|_| Err(io::Error::other("its output was not read")))
}

/// A child that does not outlive this.
struct Running(Child);

impl Running {
    /// How it ended; `None` if it took too long, and was stopped.
    fn end(&mut self) -> io::Result<Option<ExitStatus>> {
        let is_ended = self.is_ended_in_time();
        if !matches!(is_ended, Ok(true)) {
            self.0.kill()?;
        }
        let status = self.0.wait()?;
        is_ended.map(|is_ended| is_ended.then_some(status))
    }

    fn is_ended_in_time(&self) -> io::Result<bool> {
        let child = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty())?;
        let limit = Timespec { tv_sec: COMPILE_TIME_MAX.as_secs().cast_signed(), tv_nsec: 0 };
        let mut polled = [PollFd::new(&child, PollFlags::IN)];
        Ok(rustix::io::retry_on_intr(|| poll(&mut polled, Some(&limit)))? > 0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended is left alone by both.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn what_the_program_writes_comes_back_whole() {
        let bytes = vec![7; 3 << 20];
        assert!(run(Path::new("/bin/cat"), &bytes).is_ok_and(|echo| echo == bytes));
    }

    #[test]
    fn a_program_that_says_nothing_or_cannot_be_run_is_named() {
        for (program, words) in [("/bin/false", "without a result"), ("/nonexistent", "cannot be run")] {
            let unfit = run(Path::new(program), b"plug-in").expect_err("it makes nothing");
            assert!(unfit.what.contains(words), "{unfit}");
        }
    }

    #[test]
    fn the_last_line_of_a_refusal_says_what_to_do() {
        let refused = refusal(ExitStatus::from_raw(1 << 8), "it is\nno plug-in\nbuild one\n");
        assert_eq!(refused, Unfit::new("it is\nno plug-in", "build one"));
        let killed = refusal(ExitStatus::from_raw(9), "out of\nmemory\n");
        assert!(killed.what.contains("signal: 9") && killed.what.contains("out of\nmemory"), "{killed}");
    }
}
