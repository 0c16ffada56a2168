//! Network namespaces of a test, joined by pairs of devices; gone when their owner is.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};
use outflow_multicast::{Filter, Version, open_filter};
use outflow_skip::skipped;

/// Whether the test is to be left out, which is then said where it is seen.
pub(crate) fn is_skipped(test: &str) -> bool {
    let why = if !nix::unistd::Uid::effective().is_root() {
        "network namespaces need root".to_owned()
    } else if let Err(error) = ip(&["netns", "list"]) {
        format!("`ip netns` does not work: {error}")
    } else if !std::path::Path::new("/proc/net/ip_mr_vif").exists() {
        "the kernel has no multicast routing".to_owned()
    } else {
        return false;
    };
    skipped(test, &why);
    true
}

/// Whether a test of the kernel's filter is to be left out, as this kernel cannot have one: 6.6 is the first. User space
/// does there what it would do.
pub(crate) fn lacks_filter(test: &str) -> bool {
    /// The loopback device, in every namespace.
    const LOOPBACK: u32 = 1;
    if is_skipped(test) {
        return true;
    }
    let sits = |filter: Arc<Filter>| {
        filter.attach(Version::V4, LOOPBACK).map(drop).map_err(|error| error.to_string())
    };
    let why = open_filter().and_then(sits).err();
    why.iter().for_each(|why| skipped(test, why));
    why.is_some()
}

/// Whether a program can be run.
fn has_program(name: &str) -> bool {
    outflow_skip::program(name).is_some() || PathBuf::from(crate::frr::DAEMONS).join(name).exists()
}

/// Whether a test that needs a program of others is to be left out.
pub(crate) fn lacks(test: &str, program: &str, package: &str) -> bool {
    let lacks = !has_program(program);
    if lacks {
        skipped(test, format!("{program} is missing: apt-get install {package}"));
    }
    lacks || is_skipped(test)
}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
}

impl Namespace {
    pub(crate) fn new(role: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outflow-{}-mc{number}-{role}", std::process::id());
        ip(&["netns", "add", &name]).expect("a namespace");
        let namespace = Namespace { name };
        namespace.ip(&["link", "set", "lo", "up"]);
        for scope in ["all", "default"] {
            namespace.sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0");
        }
        namespace
    }

    /// Runs `ip` on it.
    pub(crate) fn ip(&self, arguments: &[&str]) -> String {
        ip(&[&["-n", self.name.as_str()], arguments].concat()).expect("an `ip` command")
    }

    /// Sets a kernel parameter.
    pub(crate) fn sysctl(&self, key: &str, value: &str) {
        let path = PathBuf::from("/proc/sys").join(key.replace('.', "/"));
        self.run(|| std::fs::write(&path, value)).expect("a parameter of the kernel");
    }

    /// Runs `work` on a thread in it.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = PathBuf::from("/run/netns").join(&self.name);
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                setns(File::open(path).expect("its name"), CloneFlags::CLONE_NEWNET).expect("root may");
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A program in it, which is ended with the answer.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Program {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.name, name])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Program(child.expect("a program"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _left = ip(&["netns", "delete", &self.name]);
    }
}

/// A program that is ended when this is dropped. `ip netns exec` becomes it, so it is the child itself.
#[derive(Debug)]
pub(crate) struct Program(std::process::Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _its_end = self.0.wait();
    }
}

/// Joins two namespaces by a pair of devices with addresses of a /24.
pub(crate) fn link(a: &Namespace, at_a: (&str, &str), b: &Namespace, at_b: (&str, &str)) {
    a.ip(&["link", "add", at_a.0, "type", "veth", "peer", "name", at_b.0, "netns", &b.name]);
    for (namespace, (device, address)) in [(a, at_a), (b, at_b)] {
        namespace.ip(&["address", "add", &format!("{address}/24"), "dev", device]);
        namespace.ip(&["link", "set", device, "up"]);
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run `ip`: {error}"))?;
    if !output.status.success() {
        return Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
