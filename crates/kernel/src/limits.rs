//! Limits of the kernel's fan-out, and of the filter between routers.

/// Clones of a packet that the kernel path sends at once. Beyond, it lets this core work on what it
/// has sent before it sends more: rings of virtual devices have 256 places, the backlog of a core
/// 1000. As BURST in `bpf/layout.h`.
pub const KERNEL_BURST: u32 = 128;

/// Interfaces that packets of a flow go to by the filter. A flow with more is not set. As WAYS in `bpf/thin.h`.
pub const WAYS_MAX: usize = 32;
