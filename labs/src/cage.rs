//! A control group of our own: what the programs in it use of the machine's memory, the kernel's
//! included (sockets, their buffers, BPF maps), which no figure of a process tells.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

/// Where version 1 has the memory controller, and where version 2 has all of them.
const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";
/// Names start with this and the id of the process that owns them.
const PREFIX: &str = "outflow-";

/// A memory control group. It is removed when dropped; programs in it must have ended then.
#[derive(Debug)]
pub struct Cage {
    folder: PathBuf,
    usage: &'static str,
}

impl Cage {
    /// Makes one.
    pub fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (root, usage) = if Path::new(V1).join("memory.usage_in_bytes").exists() {
            (V1, "memory.usage_in_bytes")
        } else if std::fs::read_to_string(Path::new(V2).join("cgroup.controllers"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "memory"))
        {
            // Groups below the root have the controllers that the root hands down.
            std::fs::write(Path::new(V2).join("cgroup.subtree_control"), "+memory")?;
            (V2, "memory.current")
        } else {
            bail!("there is no memory control group here");
        };
        remove_orphans(Path::new(root));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(root).join(format!("{PREFIX}{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { folder, usage })
    }

    /// Bytes charged to the group now.
    pub fn memory(&self) -> Result<u64> {
        let text = std::fs::read_to_string(self.folder.join(self.usage))?;
        text.trim().parse().with_context(|| format!("{} is no number: {text}", self.usage))
    }

    /// The file to which a process that moves in writes itself.
    pub(crate) fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        let _left_for_the_next_run = std::fs::remove_dir(&self.folder);
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
