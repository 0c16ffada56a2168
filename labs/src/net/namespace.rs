//! One network namespace, gone when its owner is.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, Once};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

/// Names start with this and the id of the process that owns them, as in `outflow-4711-3-relay`,
/// so that a later run can tell what a killed one left behind.
const PREFIX: &str = "outflow-";
/// Where `ip netns` keeps its names.
const NAMES: &str = "/run/netns";

/// The namespaces of this process that are to be removed should it be interrupted.
static OURS: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

/// Why namespaces cannot be made here, if they cannot.
pub fn cannot_make_namespaces() -> Option<String> {
    if !Uid::effective().is_root() {
        return Some("network namespaces need root".into());
    }
    match ip(&["netns", "list"]) {
        Ok(_) => None,
        Err(error) => Some(format!("`ip netns` does not work: {error:#}")),
    }
}

/// A network namespace. Dropping it ends the programs in it and removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a namespace with its loopback up; `role` is part of its name.
    pub fn new(role: &str) -> Result<Self> {
        prepare();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{role}", std::process::id());
        ip(&["netns", "add", &name])?;
        lock().insert(name.clone());
        let namespace = Self { name };
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name, for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` on this namespace.
    pub fn ip(&self, arguments: &[&str]) -> Result<String> {
        ip(&[&["-n", self.name.as_str()], arguments].concat())
    }

    /// Sets a kernel parameter in this namespace, as in `net.ipv4.ip_forward`.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = PathBuf::from("/proc/sys").join(key.replace('.', "/"));
        self.run(|| std::fs::write(&path, value)).with_context(|| format!("cannot set {key} to {value}"))
    }

    /// Starts a thread in this namespace.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let name = self.name.clone();
        std::thread::spawn(move || {
            enter(&name);
            work()
        })
    }

    /// Runs `work` on a thread in this namespace: sockets made there belong to it, wherever they
    /// are used later. Do not start child processes there: they would end with the thread.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&self.name);
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Moves this thread into the namespace.
fn enter(name: &str) {
    let file = File::open(Path::new(NAMES).join(name)).expect("the namespace has a name");
    setns(file, CloneFlags::CLONE_NEWNET).expect("root may enter its namespaces");
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
        lock().remove(&self.name);
    }
}

/// Runs `ip` and returns what it printed.
fn ip(arguments: &[&str]) -> Result<String> {
    let output =
        Command::new("ip").args(arguments).stdin(Stdio::null()).output().context("cannot run `ip`")?;
    if !output.status.success() {
        bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn lock() -> std::sync::MutexGuard<'static, BTreeSet<String>> {
    OURS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Ends what runs in the namespace, and removes it. What fails here is left for the next run.
fn remove(name: &str) {
    for pid in ip(&["netns", "pids", name]).unwrap_or_default().lines() {
        if let Ok(pid) = pid.trim().parse()
            && pid != std::process::id().cast_signed()
        {
            let _gone_already = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    let _left_for_the_next_run = ip(&["netns", "delete", name]);
}

/// Once a process: removes what dead processes left, and has ours removed on SIGINT and SIGTERM.
fn prepare() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for entry in std::fs::read_dir(NAMES).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str()
                && let Some(owner) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next())
                && !Path::new("/proc").join(owner).exists()
            {
                remove(name);
            }
        }
        let signals = signal_hook::iterator::Signals::new([
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ]);
        if let Ok(mut signals) = signals {
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    lock().iter().for_each(|name| remove(name));
                    std::process::exit(128 + signal);
                }
            });
        }
    });
}
