//! Programs run in namespaces, ended with their owner, their output kept for when it is needed.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill, killpg};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use crate::cage::Cage;
use crate::net::Namespace;
use crate::successor::runs;

/// How much of a program's output an error shows.
const SHOWN: usize = 4_000;
/// The nice value of what is measured and what measures.
const PREFERRED: &str = "-15";
/// That of what stands back.
const BACKGROUND: &str = "10";
/// How often a program that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Keeps this process (its threads to come) on one processor, if there are two or more, so that it
/// does not disturb what is measured on the others.
pub fn keep_to_cpu(cpu: usize) -> Result<()> {
    if std::thread::available_parallelism()?.get() > cpu {
        let mut set = CpuSet::new();
        set.set(cpu)?;
        sched_setaffinity(Pid::from_raw(0), &set)?;
    }
    Ok(())
}

/// Has this thread and those it starts go before other programs. Where that is not allowed, it is
/// done without.
pub fn be_preferred() {
    let us = nix::unistd::gettid().to_string();
    let _not_allowed = Command::new("renice").args(["-n", PREFERRED, "-p", &us]).output();
    // Where the kernel schedules sessions as groups (sched(7), "The autogroup feature"), that counts
    // only within ours, which has a nice value of its own. It ends with the session.
    let _no_groups = std::fs::write("/proc/self/autogroup", PREFERRED);
}

/// Has this thread stand back behind others, as the relay's own for plug-ins do.
pub fn be_background() {
    let us = nix::unistd::gettid().to_string();
    let _always_allowed = Command::new("renice").args(["-n", BACKGROUND, "-p", &us]).output();
}

/// How many there are, whichever this thread may use.
pub fn processors() -> usize {
    let online = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN);
    online.ok().flatten().and_then(|count| usize::try_from(count).ok()).unwrap_or(1).max(1)
}

/// A program about to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    line: Vec<String>,
    namespace: Option<String>,
    /// As taskset(1) wants them.
    cpus: Option<String>,
    cages: Vec<PathBuf>,
    preferred: bool,
    environment: Vec<(String, String)>,
    stderr: Option<PathBuf>,
    until: Option<(&'static str, usize)>,
}

impl Program {
    /// A program by name or path.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            line: vec![name.into()],
            namespace: None,
            cpus: None,
            cages: Vec::new(),
            preferred: false,
            environment: Vec::new(),
            stderr: None,
            until: None,
        }
    }

    /// A program and its arguments, split at white space (no argument of ours has any within).
    pub fn words(line: &str) -> Self {
        let mut words = line.split_whitespace();
        Self::new(words.next().unwrap_or_default()).args(words)
    }

    /// The same, run from this file.
    pub fn at(mut self, file: &Path) -> Self {
        self.line[0] = file.display().to_string();
        self
    }

    /// The file or name that it is run by.
    pub(crate) fn name(&self) -> &str {
        &self.line[0]
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.line.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.line.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// Runs it in a namespace.
    pub fn within(mut self, namespace: &Namespace) -> Self {
        self.namespace = Some(namespace.name().to_owned());
        self
    }

    /// Keeps it on one processor, if there are two or more.
    pub fn on_cpu(mut self, cpu: usize) -> Self {
        self.cpus = (processors() > cpu).then(|| cpu.to_string());
        self
    }

    /// Lets it run on every processor, also where the program that starts it is kept on one.
    pub fn on_any_cpu(mut self) -> Self {
        self.cpus = Some(format!("0-{}", processors() - 1));
        self
    }

    /// Runs it in a control group, from its first byte of memory on.
    pub fn caged(mut self, cage: &Cage) -> Self {
        self.cages = cage.doors();
        self
    }

    /// Has it go before other programs (by its nice value), so that what else runs on this machine
    /// disturbs what is measured less.
    pub fn preferred(mut self) -> Self {
        self.preferred = true;
        self
    }

    /// Has it write its standard error to the end of this file, which may be a FIFO.
    pub fn stderr_to(mut self, file: PathBuf) -> Self {
        self.stderr = Some(file);
        self
    }

    /// It never ends by itself; it has done well when it has printed `text` `times` times.
    pub fn until(mut self, text: &'static str, times: usize) -> Self {
        self.until = Some((text, times));
        self
    }

    /// Its command line as one would type it.
    pub fn shown(&self) -> String {
        self.line.join(" ")
    }

    /// Starts it. It ends with the thread that calls this, whatever way that ends.
    pub fn start(&self) -> Result<Running> {
        let stdout = tempfile::tempfile()?;
        self.started(Stdio::null(), stdout.try_clone()?.into(), stdout)
    }

    /// Starts it with pipes to its standard input and from its standard output, of which nothing is kept then.
    pub fn start_piped(&self) -> Result<(Running, ChildStdin, ChildStdout)> {
        let mut running = self.started(Stdio::piped(), Stdio::piped(), tempfile::tempfile()?)?;
        let input = running.child.stdin.take().context("it was asked for")?;
        let output = running.child.stdout.take().context("it was asked for")?;
        Ok((running, input, output))
    }

    fn started(&self, input: Stdio, output: Stdio, stdout: File) -> Result<Running> {
        let mut line: Vec<String> = ["setpriv", "--pdeathsig", "KILL"].map(String::from).into();
        // First: another network namespace has another /sys, without control groups.
        for door in &self.cages {
            let move_in = "echo $$ > \"$0\" && exec \"$@\"";
            line.extend(["sh".into(), "-c".into(), move_in.into(), door.display().to_string()]);
        }
        if self.preferred {
            line.extend(["nice".into(), "-n".into(), PREFERRED.into()]);
        }
        if let Some(name) = &self.namespace {
            line.extend(["ip", "netns", "exec", name].map(String::from));
        }
        if let Some(cpus) = &self.cpus {
            line.extend(["taskset".into(), "--cpu-list".into(), cpus.clone()]);
        }
        line.extend_from_slice(&self.line);
        let stderr = match &self.stderr {
            // For reading, too: so a FIFO opens at once, and never breaks.
            Some(file) => File::options().read(true).append(true).create(true).open(file)?,
            None => tempfile::tempfile()?,
        };
        let child = Command::new(&line[0])
            .args(&line[1..])
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdin(input)
            .stdout(output)
            .stderr(stderr.try_clone()?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.shown()))?;
        Ok(Running { child, successor: None, stdout, stderr, shown: self.shown(), until: self.until })
    }

    /// Starts it and waits until it has ended well.
    pub fn finish(&self, within: Duration) -> Result<Finished> {
        self.start()?.succeed(within)
    }
}

/// A program that was started. Dropping it kills it and all that it started, and the process that goes on for it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The process that goes on with what it did, if another one does.
    successor: Option<Pid>,
    stdout: File,
    stderr: File,
    shown: String,
    until: Option<(&'static str, usize)>,
}

/// What a program that ended well has printed.
#[derive(Debug)]
pub struct Finished {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.successor.map_or(self.child.id(), |successor| successor.as_raw().cast_unsigned())
    }

    /// Another process goes on with what this one did, for the same program: from now on all this is about that one.
    pub fn follow(&mut self, successor: u32) {
        self.successor = Some(Pid::from_raw(successor.cast_signed()));
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        content(&self.stdout)
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        content(&self.stderr)
    }

    /// How long its threads, all together, have been ready and had to wait for a processor
    /// (`/proc/PID/task/*/schedstat`).
    pub fn waited(&self) -> Result<Duration> {
        let mut nanos = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            // A thread that has just ended waits no more.
            let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            nanos += text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// The names of its threads, and the processors that each may use.
    pub fn threads(&self) -> Result<Vec<(String, BTreeSet<usize>)>> {
        let mut threads = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let task = task?;
            let number = task.file_name().to_string_lossy().parse()?;
            // One that has just ended runs nowhere.
            let Ok(set) = sched_getaffinity(Pid::from_raw(number)) else { continue };
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let processors = (0..CpuSet::count()).filter(|at| set.is_set(*at).unwrap_or(false));
            threads.push((name.trim().to_owned(), processors.collect()));
        }
        Ok(threads)
    }

    /// One of its threads, whose name begins so.
    pub fn thread(&self, name: &str) -> Result<Option<Pid>> {
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let task = task?;
            let its_name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            if its_name.starts_with(name) {
                return Ok(Some(Pid::from_raw(task.file_name().to_string_lossy().parse()?)));
            }
        }
        Ok(None)
    }

    /// Processor time that it has taken so far, user's and system's, all its threads together.
    pub fn processor_time(&self) -> Result<Duration> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.pid().cast_signed()))?;
        Ok(Duration::from(clock.now()?))
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        match self.successor {
            Some(_) => runs(self.pid()),
            None => matches!(self.child.try_wait(), Ok(None)),
        }
    }

    /// A program that it has started whose command line contains this.
    pub fn child(&self, words: &str) -> Result<Option<Pid>> {
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            // Threads end, and so do programs.
            let children = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
            for pid in children.split_whitespace() {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                if String::from_utf8_lossy(&line).replace('\0', " ").contains(words) {
                    return Ok(Some(Pid::from_raw(pid.parse()?)));
                }
            }
        }
        Ok(None)
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.pid()))?.count())
    }

    /// Sends a signal to it and to what it started; to one that goes on for another, alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let sent = self.successor.map_or_else(|| killpg(self.group(), signal), |pid| kill(pid, signal));
        sent.with_context(|| format!("cannot signal `{}`", self.shown))
    }

    /// Waits for the end of the process that was started; beyond `within` it is killed and an error says so.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= until {
                let _gone_already = killpg(self.group(), Signal::SIGKILL);
                bail!("still running after {within:?}: {}", self.account());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits for the end of the process that is the program by now. How it has ended is known of the one that was started
    /// alone.
    pub(crate) fn ended(&mut self, within: Duration) -> Result<Option<ExitStatus>> {
        let until = Instant::now() + within;
        while self.successor.is_some() && self.alive() {
            ensure!(Instant::now() < until, "still running after {within:?}: {}", self.account());
            std::thread::sleep(LOOK_EVERY);
        }
        if self.successor.is_some() { Ok(None) } else { self.wait(within).map(Some) }
    }

    /// Waits for its end and expects that it ends well, or that it has printed enough.
    pub fn succeed(mut self, within: Duration) -> Result<Finished> {
        let until = Instant::now() + within;
        while let Some((text, times)) = self.until
            && self.alive()
        {
            if self.stdout().matches(text).count() >= times {
                return Ok(Finished { stdout: self.stdout(), stderr: self.stderr() });
            }
            if Instant::now() >= until {
                bail!("`{text}` printed less than {times} times in {within:?}: {}", self.account());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let status = self.wait(within)?;
        if !status.success() || self.until.is_some() {
            bail!("{status}: {}", self.account());
        }
        Ok(Finished { stdout: self.stdout(), stderr: self.stderr() })
    }

    /// Its command line and the end of what it printed, for an error.
    pub fn account(&self) -> String {
        let tail = |text: String| {
            let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
            text[from..].trim_end().to_owned()
        };
        format!("`{}`\n{}\n{}", self.shown, tail(self.stdout()), tail(self.stderr()))
    }

    fn group(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone_already = killpg(self.group(), Signal::SIGKILL);
        let _gone_already = self.successor.map(|pid| kill(pid, Signal::SIGKILL));
        let _waited_for = self.child.wait();
    }
}

/// All that has been written to the file so far. The child shares our descriptor's position, so it
/// is read without moving that.
fn content(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().map_or(0, |m| usize::try_from(m.len()).unwrap_or(0))];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_are_kept() {
        let done = Program::new("sh").args(["-c", "echo out; echo err >&2"]).finish(Duration::from_secs(20));
        let done = done.expect("it ends well");
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("out\n", "err\n"));

        let failed = Program::new("sh").args(["-c", "echo why >&2; exit 3"]).finish(Duration::from_secs(20));
        let error = format!("{:#}", failed.expect_err("it fails"));
        assert!(error.contains("why") && error.contains('3'), "{error}");
    }

    #[test]
    fn standard_error_goes_where_it_is_told_and_children_are_found() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("log");
        std::fs::write(&file, "before\n").expect("there is room");
        let program = Program::new("sh").args(["-c", "echo log >&2; sleep 301 & wait"]);
        let program = program.stderr_to(file.clone()).start().expect("it starts");
        let until = Instant::now() + Duration::from_secs(20);
        while program.child("sleep 301").expect("it runs").is_none() {
            assert!(Instant::now() < until, "it has started no other");
        }
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "before\nlog\n");
        assert!(program.child("sleep 302").expect("it runs").is_none());
        assert!(program.descriptors().is_ok_and(|count| count >= 3));
        let thread = program.thread("s").expect("it runs");
        assert_eq!(thread, Some(Pid::from_raw(program.pid().cast_signed())), "the one that there is");
        assert_eq!(program.thread("worker-").expect("it runs"), None);
    }

    #[test]
    fn a_process_that_goes_on_for_a_program_is_alive_without_it_and_gone_with_it() {
        let line = "setsid sh -c 'echo $$; exec sleep 303' & exit 0";
        let mut program = Program::new("sh").args(["-c", line]).start().expect("it starts");
        let until = Instant::now() + Duration::from_secs(20);
        while program.alive() || !program.stdout().ends_with('\n') {
            assert!(Instant::now() < until, "it has started no other");
        }
        let successor = program.stdout().trim().parse().expect("a process");
        program.follow(successor);
        assert!(program.alive() && program.pid() == successor);
        program.signal(Signal::SIGCONT).expect("it is there");
        drop(program);
        while runs(successor) {
            assert!(Instant::now() < until, "it still runs");
        }
    }

    #[test]
    fn a_dropped_program_is_gone_with_its_children() {
        let program =
            Program::new("sh").args(["-c", "sleep 300 & echo $!; wait"]).start().expect("it starts");
        let mut child = String::new();
        while !child.ends_with('\n') {
            child = program.stdout();
        }
        let child = format!("/proc/{}/stat", child.trim());
        assert!(std::path::Path::new(&child).exists());
        drop(program);
        // It is reaped by another process in its own time, but it runs no more.
        let runs = || {
            let state = std::fs::read_to_string(&child).unwrap_or_default();
            !(state.is_empty() || state.contains(") Z") || state.contains(") X"))
        };
        let until = Instant::now() + Duration::from_secs(20);
        while runs() {
            assert!(Instant::now() < until, "the child still runs");
        }
    }
}
