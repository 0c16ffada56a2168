//! A control group of our own: what the programs in it use of the machine's memory, the kernel's
//! included (sockets, their buffers, BPF maps), which no figure of a process tells; and, where wanted,
//! how much of a core and of memory they may use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Where version 1 has each of the controllers, and where version 2 has all of them.
const V1_MEMORY: &str = "/sys/fs/cgroup/memory";
const V1_CPU: &str = "/sys/fs/cgroup/cpu";
const V2: &str = "/sys/fs/cgroup";
/// Names start with this and the id of the process that owns them.
const PREFIX: &str = "outflow-";
/// Version 1 counts the bytes in TCP sockets apart from all other memory. Of a limit they get one
/// part in this many there, so that both together cannot exceed it.
const V1_TCP_PART: u64 = 16;

/// What the programs in a cage may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So much time of a core ...
    pub core: Duration,
    /// ... in each period of this length.
    pub period: Duration,
    /// Bytes of memory, kernel and socket buffers included. A program that needs more is killed.
    pub memory: u64,
}

/// A control group. It is removed when dropped; programs in it must have ended then.
#[derive(Debug)]
pub struct Cage {
    /// Of the memory controller, then those of others.
    folders: Vec<PathBuf>,
    usage: &'static [&'static str],
    limits: Option<Limits>,
}

impl Cage {
    /// Makes one that only knows its memory.
    pub fn new() -> Result<Self> {
        Self::with(None)
    }

    /// Makes one with limits, or one that only knows its memory.
    pub fn with(limits: Option<Limits>) -> Result<Self> {
        let cage = if Path::new(V1_MEMORY).join("memory.usage_in_bytes").exists() {
            Self::v1(limits)
        } else if std::fs::read_to_string(Path::new(V2).join("cgroup.controllers"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "memory"))
        {
            Self::v2(limits)
        } else {
            bail!("there is no memory control group here");
        };
        cage.map(|mut cage| {
            cage.limits = limits;
            cage
        })
    }

    /// What it holds its programs to.
    pub fn limits(&self) -> Option<Limits> {
        self.limits
    }

    fn v1(limits: Option<Limits>) -> Result<Self> {
        const USAGE: [&str; 2] = ["memory.usage_in_bytes", "memory.kmem.tcp.usage_in_bytes"];
        let Some(Limits { core, period, memory }) = limits else {
            return Self::make(&[V1_MEMORY], &USAGE[..1], &[]);
        };
        let tcp = memory / V1_TCP_PART;
        let settings = [
            ("memory.limit_in_bytes", (memory - tcp).to_string()),
            ("memory.kmem.tcp.limit_in_bytes", tcp.to_string()),
            ("cpu.cfs_period_us", period.as_micros().to_string()),
            ("cpu.cfs_quota_us", core.as_micros().to_string()),
            // Within its limit it goes before whatever else runs on the machine.
            ("cpu.shares", "262144".into()),
        ];
        Self::make(&[V1_MEMORY, V1_CPU], &USAGE, &settings)
    }

    fn v2(limits: Option<Limits>) -> Result<Self> {
        const USAGE: [&str; 1] = ["memory.current"];
        // Groups below the root have the controllers that the root hands down.
        let hand_down =
            |controllers| std::fs::write(Path::new(V2).join("cgroup.subtree_control"), controllers);
        let Some(Limits { core, period, memory }) = limits else {
            hand_down("+memory")?;
            return Self::make(&[V2], &USAGE, &[]);
        };
        hand_down("+memory +cpu")?;
        let settings = [
            ("memory.max", memory.to_string()),
            ("cpu.max", format!("{} {}", core.as_micros(), period.as_micros())),
            ("cpu.weight", "10000".into()),
        ];
        Self::make(&[V2], &USAGE, &settings)
    }

    /// Makes a group at each root, and writes each setting where there is a file for it.
    fn make(roots: &[&str], usage: &'static [&'static str], settings: &[(&str, String)]) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let mut cage = Self { folders: Vec::new(), usage, limits: None };
        for root in roots.iter().map(Path::new) {
            remove_orphans(root);
            let folder = root.join(&name);
            std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            cage.folders.push(folder);
        }
        for (file, value) in settings {
            let place = cage.folders.iter().map(|folder| folder.join(file)).find(|path| path.exists());
            let place = place.with_context(|| format!("control groups here have no {file}"))?;
            std::fs::write(&place, value).with_context(|| format!("cannot write {value} to {file}"))?;
        }
        Ok(cage)
    }

    /// Bytes charged to the group now.
    pub fn memory(&self) -> Result<u64> {
        let of = |file: &&str| -> Result<u64> {
            let text = std::fs::read_to_string(self.folders[0].join(file))?;
            text.trim().parse().with_context(|| format!("{file} is no number: {text}"))
        };
        self.usage.iter().map(of).sum()
    }

    /// The files to which a process that moves in writes itself.
    pub(crate) fn doors(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _left_for_the_next_run = std::fs::remove_dir(folder);
        }
    }
}

/// Removes what processes that are gone have left.
fn remove_orphans(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _somebody_is_in_it = std::fs::remove_dir(entry.path());
        }
    }
}
