//! Packets that devices did not take, and why.

/// Packets of a target that its device did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// How many.
    pub packets: u64,
    /// Why it refused the newest of them.
    pub reason: Reason,
}

/// Why a device does not take a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its queue or ring is full.
    Full,
    /// It is switched off, or not connected to anything.
    Down,
    /// It is no longer there.
    Gone,
    /// It does not take frames in this way (XDP only).
    Unsupported,
    /// The packet is larger than its MTU (XDP only).
    TooLarge,
    /// Another answer of the kernel: an error number.
    Other(i32),
}

impl Reason {
    /// What the kernel's functions return: NET_XMIT_… (include/linux/netdevice.h), or a negative
    /// error number. A device without a carrier has a queue that is congested at once (`noop_enqueue`
    /// in net/sched/sch_generic.c), and may take no frames; `is_running` tells whether it is one.
    pub(super) fn new(code: i32, mut is_running: impl FnMut() -> bool) -> Self {
        const NET_XMIT_DROP: i32 = 1;
        const NET_XMIT_CN: i32 = 2;
        match code {
            NET_XMIT_DROP => return Reason::Full,
            NET_XMIT_CN if !is_running() => return Reason::Down,
            NET_XMIT_CN => return Reason::Full,
            _ => {}
        }
        match -code {
            libc::ENOBUFS | libc::ENOSPC => Reason::Full,
            libc::ENETDOWN => Reason::Down,
            libc::EINVAL | libc::ENODEV => Reason::Gone,
            libc::EOPNOTSUPP | libc::ENXIO if !is_running() => Reason::Down,
            libc::EOPNOTSUPP | libc::ENXIO => Reason::Unsupported,
            libc::EMSGSIZE => Reason::TooLarge,
            errno => Reason::Other(errno),
        }
    }
}
