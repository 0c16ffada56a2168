//! Which way pays. The figures behind the limits are those of `labs/fanout`, see
//! `docs/performance.md`.

use outflow_config::UdpPath;

use crate::limits::{GATHERED_BY_TC, KERNEL_SINKS_MIN, XDP_SINKS_MIN};

/// How packets get to many sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FanoutPath {
    /// By the relay's own system calls.
    User,
    /// Cloned by the kernel at the anchor.
    Tc,
    /// As frames given to the device.
    Xdp,
}

impl FanoutPath {
    /// Its name in the configuration and in the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FanoutPath::User => "user",
            FanoutPath::Tc => "tc",
            FanoutPath::Xdp => "xdp",
        }
    }
}

/// From how many sinks on the kernel is asked at all.
pub(super) fn sinks_min(wish: UdpPath) -> usize {
    match wish {
        UdpPath::Auto => KERNEL_SINKS_MIN,
        UdpPath::User => usize::MAX,
        UdpPath::Tc | UdpPath::Xdp => 1,
    }
}

/// The way for `packets` of equal size to `sinks` that the kernel can reach. `frames`: all their
/// devices take XDP frames.
pub(super) fn choose(wish: UdpPath, sinks: usize, packets: usize, frames: bool) -> FanoutPath {
    match wish {
        UdpPath::User => FanoutPath::User,
        UdpPath::Tc => FanoutPath::Tc,
        UdpPath::Xdp if frames => FanoutPath::Xdp,
        UdpPath::Xdp => FanoutPath::Tc,
        UdpPath::Auto if sinks < KERNEL_SINKS_MIN => FanoutPath::User,
        // Frames cost the same each; a run through the classifier costs about as much as one packet.
        UdpPath::Auto if packets >= GATHERED_BY_TC => FanoutPath::Tc,
        UdpPath::Auto if frames && sinks >= XDP_SINKS_MIN => FanoutPath::Xdp,
        UdpPath::Auto => FanoutPath::Tc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_pays_from_some_sinks_on() {
        assert_eq!(choose(UdpPath::Auto, KERNEL_SINKS_MIN - 1, 1, true), FanoutPath::User);
        assert_eq!(choose(UdpPath::Auto, KERNEL_SINKS_MIN, 1, true), FanoutPath::Tc);
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, 1, true), FanoutPath::Xdp);
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, 1, false), FanoutPath::Tc);
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, GATHERED_BY_TC, true), FanoutPath::Tc);
    }

    #[test]
    fn a_wish_is_followed_as_far_as_it_can_be() {
        assert_eq!(choose(UdpPath::User, 1000, 1, false), FanoutPath::User);
        assert_eq!(choose(UdpPath::Tc, 1, 1, false), FanoutPath::Tc);
        assert_eq!(choose(UdpPath::Xdp, 1000, 1, false), FanoutPath::Tc);
        assert_eq!(choose(UdpPath::Xdp, 1, 9, true), FanoutPath::Xdp);
    }
}
