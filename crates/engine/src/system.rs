//! What the process uses of the machine.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

pub use outflow_privilege::{Part, give_up_privileges, keep_privileges};

use crate::limits::WORKER_TURN;

/// The source address that the system chooses for packets that go there. Nothing is sent.
pub fn source_address(to: SocketAddr) -> io::Result<IpAddr> {
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

/// Resident memory in bytes; 0 where the system does not say.
pub fn rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Lets the process have as many descriptors as the system allows it: every receiver needs one.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files stays as it is; see ulimit -n");
    }
}

/// Gives memory back that was freed and that the allocator keeps. It may take some milliseconds, and threads that
/// allocate meanwhile wait.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How often this thread has lost its core to others.
pub fn preemptions() -> i64 {
    // SAFETY: zeros are a valid rusage, which the call writes.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nivcsw
}

/// Asks for short turns on the processor: a thread that does so comes before threads that have not asked,
/// at once when it wakes up (Linux 6.12). Where the kernel does not know that, nothing changes.
pub fn take_short_turns() {
    // SAFETY: zeros are a valid sched_attr: an ordinary thread.
    let mut attributes: libc::sched_attr = unsafe { core::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    // Whatever else is set for the process stays.
    attributes.sched_flags = libc::SCHED_FLAG_KEEP_POLICY as u64;
    attributes.sched_nice = rustix::process::nice(0).unwrap_or(0);
    attributes.sched_runtime = WORKER_TURN.as_nanos() as u64;
    let this = 0;
    // SAFETY: the attributes outlive the call, which only reads them.
    unsafe { libc::syscall(libc::SYS_sched_setattr, this, &raw const attributes, 0) };
}

/// A number that cannot be guessed from outside, for an SSRC (RFC 3550, section 8.1).
pub fn random_u32() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    // The standard library seeds its hash maps from the system's randomness.
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Bytes that cannot be guessed: from the system's own generator.
pub fn random_bytes() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the call writes no more than `bytes.len()` bytes, which are there.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(written) {
        // As few as these come all at once, or not at all (getrandom(2)).
        Ok(written) if written == bytes.len() => Ok(bytes),
        _ => Err(std::io::Error::last_os_error()),
    }
}
