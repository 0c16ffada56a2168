//! Why there is no kernel path, and what to do about it.

use std::error::Error;
use std::io;

/// Why the kernel path, or a part of it, is not available. The relay goes on without.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The process may not.
    #[error(
        "{step}: {source}; the kernel path needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON: \
         run as root, or `setcap cap_net_admin,cap_bpf,cap_perfmon+ep` the program \
         (in a container, grant them and /dev/net/tun to it)"
    )]
    NotPermitted {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The kernel has no TAP devices.
    #[error("{step}: {source}; load the kernel module `tun`, or give the container /dev/net/tun")]
    NoTap {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A filter of the system's ends what goes to the anchor.
    #[error(
        "{step}: {source}; a filter lets nothing out through the devices outflow*: allow it, as by \
         `nft insert rule inet filter output oifname \"outflow*\" accept`, or take away the IPAddressDeny= \
         of the service"
    )]
    Filtered {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else that the kernel refuses.
    #[error(
        "{step}: {source}{}; the kernel path needs Linux 6.1 or newer with TUN, clsact and BPF",
        causes(.source.as_ref())
    )]
    Refused {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl KernelError {
    /// `step` failed with `error`.
    pub(super) fn new(step: &'static str, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = error.into();
        match errno(source.as_ref()) {
            Some(libc::EPERM) => KernelError::NotPermitted { step, source },
            _ => KernelError::Refused { step, source },
        }
    }

    /// Making the anchor failed with `error`.
    pub(super) fn of_tap(error: io::Error) -> Self {
        let step = "making a TAP device";
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => KernelError::NoTap { step, source: error },
            // The file may be there but not for us, or the device not ours to configure.
            Some(libc::EACCES) => KernelError::NotPermitted { step, source: error.into() },
            _ => KernelError::new(step, error),
        }
    }

    /// Sending to the anchor failed with `error`.
    pub(super) fn of_injection(error: io::Error) -> Self {
        let step = "sending to the TAP device";
        match error.raw_os_error() {
            // Capabilities are asked for before anything is sent, by SO_MARK.
            Some(libc::EPERM) => KernelError::Filtered { step, source: error },
            _ => KernelError::new(step, error),
        }
    }
}

/// The system's answer that `error` comes from.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && let Some(errno) = error.raw_os_error()
        {
            return Some(errno);
        }
        next = error.source();
    }
    None
}

/// What is behind `error`, as far as it does not say so itself.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let (mut said, mut next) = (error.to_string(), error.source());
    while let Some(error) = next {
        let cause = error.to_string();
        if !said.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        (said, next) = (cause, error.source());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn what_is_not_permitted_says_what_to_do() {
        let error = KernelError::new("trying", Wrapped(io::Error::from_raw_os_error(libc::EPERM)));
        let text = error.to_string();
        assert!(text.starts_with("trying: outside"), "{text}");
        assert!(text.contains("run as root, or `setcap cap_net_admin,"), "{text}");
    }

    #[test]
    fn what_is_refused_says_all_causes_once() {
        let error = KernelError::new("trying", Wrapped(io::Error::from_raw_os_error(libc::E2BIG)));
        let text = error.to_string();
        assert_eq!(text.matches("Argument list too long").count(), 1, "{text}");
        assert!(text.contains("Linux 6.1 or newer"), "{text}");
    }

    #[test]
    fn a_missing_device_file_is_told_from_a_forbidden_one() {
        let text = KernelError::of_tap(io::Error::from_raw_os_error(libc::ENOENT)).to_string();
        assert!(text.contains("load the kernel module `tun`"), "{text}");
        let text = KernelError::of_tap(io::Error::from_raw_os_error(libc::EACCES)).to_string();
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
    }
}
