//! Values that are too long for a packet: a file in memory that its maker cannot change any more.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;

use crate::error::LineError;

/// What a reader insists on: neither its length nor its bytes change while they are read.
const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::SEAL);

/// A file that holds this, and nothing else ever.
pub(crate) fn sealed(value: &[u8]) -> io::Result<OwnedFd> {
    let mut file = file()?;
    file.write_all(value)?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

/// An empty file in memory.
pub(crate) fn file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Some systems insist that it is no program; those before Linux 6.3 do not know that.
    let made = match memfd_create(c"outflow-handover", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"outflow-handover", flags),
        other => other,
    };
    Ok(made?.into())
}

/// What such a file holds, which is said to be so long.
pub(crate) fn read(file: OwnedFd, length: usize) -> Result<Vec<u8>, LineError> {
    if !fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS)) {
        return Err(LineError::Malformed("a value that could change while it is read"));
    }
    let mut file = File::from(file);
    if file.metadata()?.len() != length as u64 {
        return Err(LineError::Malformed("a value of another length than is said"));
    }
    let mut value = Vec::new();
    value.try_reserve_exact(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    file.rewind()?;
    file.read_to_end(&mut value)?;
    Ok(value)
}
