//! Files that the configuration or the API name: read whole, up to a bound, and never waited for.
//!
//! Opening a named pipe waits until somebody writes to it, which may be never, and reading a device may not end. So
//! only regular files are read ([`read`], [`read_text`]); what is meant to come through a pipe comes within a time
//! ([`read_stream`]).

#![allow(clippy::disallowed_methods, reason = "a driver owns clock and files")]

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Why a file is not read. What to do about it says its reader: it knows what the file is for.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
    /// It is something else, of this kind.
    #[error("it is {0}, and not a regular file")]
    Kind(&'static str),
    /// It has more bytes than such a file may have.
    #[error("it has more than {0} bytes")]
    Bytes(u64),
    /// It is not UTF-8.
    #[error("it is no text: it is not UTF-8")]
    Text,
    /// Its end did not come.
    #[error("it does not end within {0:?}")]
    Late(Duration),
}

/// Opens a regular file; what else stands there is not waited for.
///
/// # Errors
/// The system refuses, or it is no regular file.
pub fn open(path: &Path) -> Result<File, Unreadable> {
    let file = open_any(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(Unreadable::Kind(name_of(kind))) }
}

/// The bytes of a regular file, which has at most this many.
///
/// # Errors
/// It cannot be opened or read, or is too long.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(Unreadable::Bytes(bytes_max)) } else { Ok(bytes) }
}

/// The text of a regular file, which has at most this many bytes.
///
/// # Errors
/// As for [`read`]; or it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, Unreadable> {
    text(read(path, bytes_max)?)
}

/// The text that comes out of anything that can be opened, a pipe for example, to its end.
///
/// # Errors
/// As for [`read_text`]; or its end does not come within this time.
pub fn read_stream(path: &Path, bytes_max: u64, within: Duration) -> Result<String, Unreadable> {
    let mut file = open_any(path)?;
    let until = Instant::now() + within;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let is_ready = poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&wait));
        if left.is_zero() || is_ready == Ok(0) {
            return Err(Unreadable::Late(within));
        }
        match file.read(&mut chunk) {
            Ok(0) => return text(bytes),
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        if bytes.len() as u64 > bytes_max {
            return Err(Unreadable::Bytes(bytes_max));
        }
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|_| Unreadable::Text)
}

/// Neither a pipe without a writer nor a line without a carrier holds this up, and no terminal becomes this process's.
fn open_any(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device"
    }
}

/// What shows that a file was written or exchanged: its number, its length, and when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    number: u64,
    bytes: u64,
    written: (i64, i64),
}

impl Stamp {
    /// That of a file.
    pub fn of(file: &Metadata) -> Self {
        Stamp { number: file.ino(), bytes: file.size(), written: (file.mtime(), file.mtime_nsec()) }
    }

    /// That of the file which is there, if one is.
    pub fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Stamp::of)
    }
}
