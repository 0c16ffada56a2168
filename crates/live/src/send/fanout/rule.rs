//! Which way pays. The figures behind the limits are those of `labs/fanout`, see
//! `docs/performance.md`.

use outflow_config::UdpPath;

use crate::limits::{GATHERED_BY_TC, KERNEL_SINKS_MIN, XDP_SINKS_MIN};

/// How packets get to many sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the relay's own system calls.
    User,
    /// Cloned by the kernel at the anchor.
    Tc,
    /// As frames given to the device.
    Xdp,
}

impl Way {
    /// Its name in the configuration and in the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Way::User => "user",
            Way::Tc => "tc",
            Way::Xdp => "xdp",
        }
    }
}

/// What the kernel can do for these sinks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Able {
    /// Runs of packets go as one.
    pub(super) segment: bool,
    /// All their devices take frames.
    pub(super) xdp: bool,
}

/// From how many sinks on the kernel is asked at all.
pub(super) fn sinks_min(wish: UdpPath) -> usize {
    match wish {
        UdpPath::Auto => KERNEL_SINKS_MIN,
        UdpPath::User => usize::MAX,
        UdpPath::Tc | UdpPath::Xdp => 1,
    }
}

/// The way for `packets` of equal size to so many sinks that the kernel can reach.
pub(super) fn choose(wish: UdpPath, sinks: usize, packets: usize, able: Able) -> Way {
    match wish {
        UdpPath::User => Way::User,
        UdpPath::Tc => Way::Tc,
        UdpPath::Xdp if able.xdp => Way::Xdp,
        UdpPath::Xdp => Way::Tc,
        UdpPath::Auto if sinks < KERNEL_SINKS_MIN => Way::User,
        // Frames cost the same each; a run through the classifier costs about as much as one packet.
        UdpPath::Auto if able.segment && packets >= GATHERED_BY_TC => Way::Tc,
        UdpPath::Auto if able.xdp && sinks >= XDP_SINKS_MIN => Way::Xdp,
        UdpPath::Auto => Way::Tc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_pays_from_some_sinks_on() {
        let able = Able { segment: true, xdp: true };
        assert_eq!(choose(UdpPath::Auto, KERNEL_SINKS_MIN - 1, 1, able), Way::User);
        assert_eq!(choose(UdpPath::Auto, KERNEL_SINKS_MIN, 1, able), Way::Tc);
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, 1, able), Way::Xdp);
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, GATHERED_BY_TC, able), Way::Tc);
        let alone = Able { segment: false, xdp: true };
        assert_eq!(choose(UdpPath::Auto, XDP_SINKS_MIN, GATHERED_BY_TC, alone), Way::Xdp);
    }

    #[test]
    fn a_wish_is_followed_as_far_as_it_can_be() {
        let able = Able { segment: true, xdp: false };
        assert_eq!(choose(UdpPath::User, 1000, 1, able), Way::User);
        assert_eq!(choose(UdpPath::Tc, 1, 1, able), Way::Tc);
        assert_eq!(choose(UdpPath::Xdp, 1000, 1, able), Way::Tc);
        assert_eq!(choose(UdpPath::Xdp, 1, 9, Able { xdp: true, ..able }), Way::Xdp);
    }
}
