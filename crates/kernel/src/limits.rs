//! Limits of the kernel's fan-out.

/// Clones of a packet that the kernel path sends at once. Beyond, it lets this core work on what it
/// has sent before it sends more: rings of virtual devices have 256 places, the backlog of a core
/// 1000. As BURST in `bpf/layout.h`.
pub const KERNEL_BURST: u32 = 128;
