//! Making a ring, and finding out what the kernel's io_uring can do.

use std::io;
use std::sync::Once;

use io_uring::{IoUring, Probe, opcode};

use crate::limits::ANSWERS;

/// What this kernel's io_uring can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Support {
    /// Sends without a copy, and notices when the bytes are free again.
    pub(super) zero_copy: bool,
    /// Only failures are answered, if wished (IOSQE_CQE_SKIP_SUCCESS, Linux 5.17).
    pub(super) skip_success: bool,
}

/// A ring for the calling thread, whose submission queue holds this many sends.
///
/// # Errors
/// The kernel has no io_uring, or not for us, or one that cannot send.
pub(super) fn open(sends: u32) -> io::Result<(IoUring, Support)> {
    let io = build(sends)?;
    let mut probe = Probe::new();
    io.submitter().register_probe(&mut probe)?;
    if !probe.is_supported(opcode::Send::CODE) || !io.params().is_feature_nodrop() {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    let zero_copy = probe.is_supported(opcode::SendZc::CODE) && frees_one_by_one();
    let skip_success = io.params().is_feature_skip_cqe_on_success();
    Ok((io, Support { zero_copy, skip_success }))
}

/// The best ring that the kernel knows: one thread, which runs the kernel's leftover work when it
/// enters the kernel anyway (Linux 6.1); the same without a promise of one thread (5.19); plain.
fn build(sends: u32) -> io::Result<IoUring> {
    let best = IoUring::builder()
        .setup_cqsize(ANSWERS)
        .setup_submit_all()
        .setup_taskrun_flag()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(sends);
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let cooperative = |error: io::Error| match unknown(&error) {
        true => IoUring::builder()
            .setup_cqsize(ANSWERS)
            .setup_submit_all()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .build(sends),
        false => Err(error),
    };
    let plain = |error: io::Error| match unknown(&error) {
        true => IoUring::builder().setup_cqsize(ANSWERS).build(sends),
        false => Err(error),
    };
    best.or_else(cooperative).or_else(plain)
}

/// Whether the ring lets go of a descriptor although bytes sent without a copy are still under
/// way to another receiver. Before Linux 6.13 it frees what was registered in the order in which it
/// was given back, so that one receiver that acknowledges nothing would keep every closed
/// connection open.
fn frees_one_by_one() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release) >= (6, 13)
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Says, once a process, why there is no io_uring.
pub(super) fn complain(error: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let advice = advice(error);
        tracing::warn!(%error, advice, "no io_uring here: packets are sent without it, which costs more");
    });
}

/// What to do about it.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "a kernel with io_uring (Linux 5.19 or newer), or a sandbox that allows it",
        Some(libc::EPERM | libc::EACCES) => {
            "set sysctl kernel.io_uring_disabled=0, or let the container's seccomp profile allow io_uring"
        }
        Some(libc::ENOMEM) => "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)",
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n, LimitNOFILE=)",
        _ => "Linux 5.19 or newer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(version("6.1.0-32-amd64\n"), (6, 1));
        assert_eq!(version("6.18.44-fc"), (6, 18));
        assert_eq!(version("5.4"), (5, 4));
        assert_eq!(version("nonsense"), (0, 0));
    }

    #[test]
    fn one_that_cannot_have_io_uring_is_told_what_to_do() {
        let advice = |errno| advice(&io::Error::from_raw_os_error(errno));
        assert!(advice(libc::EPERM).contains("kernel.io_uring_disabled"));
        assert!(advice(libc::ENOMEM).contains("ulimit -l"));
        assert!(advice(libc::ENOSYS).contains("kernel"));
    }
}
