//! Where the relay's log goes, and how that fails: a disk that becomes full, a pipe that is no longer read.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use nix::libc::O_NONBLOCK;
use tempfile::TempDir;

use crate::process::Program;
use crate::relay::PATIENCE;

/// More than a relay logs in any of the other faults.
const DISK: &str = "64m";
/// Between two looks at the pipe.
const NAP: Duration = Duration::from_millis(5);

/// Where a relay logs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogTo {
    Disk,
    Pipe,
}

/// What it logs to.
pub(crate) enum Log {
    Disk(Disk),
    Pipe(Pipe),
}

impl Log {
    pub(crate) fn new(to: LogTo) -> Result<Self> {
        Ok(match to {
            LogTo::Disk => Log::Disk(Disk::new()?),
            LogTo::Pipe => Log::Pipe(Pipe::new()?),
        })
    }

    pub(crate) fn is_to(&self, to: LogTo) -> bool {
        matches!((self, to), (Log::Disk(_), LogTo::Disk) | (Log::Pipe(_), LogTo::Pipe))
    }

    /// What the relay is to write to.
    pub(crate) fn file(&self) -> PathBuf {
        match self {
            Log::Disk(disk) => disk.folder.path().join("log"),
            Log::Pipe(pipe) => pipe.path(),
        }
    }

    /// From now on nothing can be written, or it can again.
    pub(crate) fn jam(&mut self, is_jammed: bool) -> Result<()> {
        match self {
            Log::Disk(disk) => disk.jam(is_jammed),
            Log::Pipe(pipe) => pipe.jam(is_jammed),
        }
    }
}

/// A small disk.
pub(crate) struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mount = format!("mount -t tmpfs -o size={DISK} none {}", folder.path().display());
        Program::words(&mount).finish(PATIENCE)?;
        Ok(Self { folder })
    }

    fn jam(&mut self, is_jammed: bool) -> Result<()> {
        let filler = self.folder.path().join("filler");
        if !is_jammed {
            return Ok(std::fs::remove_file(filler)?);
        }
        // In smaller and smaller pieces, to the last byte.
        let mut file = File::create(filler)?;
        for size in [1 << 20, 4096, 1] {
            let piece = vec![0; size];
            while file.write(&piece).is_ok_and(|written| written == size) {}
        }
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let umount = Program::words(&format!("umount --lazy {}", self.folder.path().display()));
        let _left_behind = umount.finish(PATIENCE);
    }
}

/// A pipe, and the thread that reads it.
pub(crate) struct Pipe {
    folder: TempDir,
    end: File,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    is_jammed: AtomicBool,
}

impl Pipe {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pipe");
        Program::new("mkfifo").arg(path.display().to_string()).finish(PATIENCE)?;
        let end = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(path)?;
        let (mut reader, shared) = (end.try_clone()?, Arc::new(Shared::default()));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while !theirs.is_over.load(Ordering::Relaxed) {
                let is_jammed = || theirs.is_jammed.load(Ordering::Relaxed);
                while !is_jammed() && reader.read(&mut buffer).is_ok_and(|read| read > 0) {}
                std::thread::sleep(NAP);
            }
        });
        Ok(Self { folder, end, shared, thread: Some(thread) })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }

    fn jam(&mut self, is_jammed: bool) -> Result<()> {
        self.shared.is_jammed.store(is_jammed, Ordering::Relaxed);
        if is_jammed {
            std::thread::sleep(2 * NAP);
            // Else the relay would have to fill it first.
            while self.end.write(&[b'.'; 512]).is_ok() {}
            while self.end.write(b".").is_ok() {}
        }
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
