//! Orders by way of XDP: the kernel makes as many frames of a packet as there are targets, a program
//! writes the headers of each, and the device sends them (BPF_PROG_TEST_RUN with "live frames",
//! Documentation/bpf/bpf_prog_run.rst). No socket buffer is ever made.

use core::ops::Range;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};

use super::checksum::Sum;
use super::layout::HEADER_BYTES;

/// Payload of a packet that surely fits a frame: a page less headroom and what the kernel keeps at
/// both ends.
const PAYLOAD_MAX: usize = 3_000;

/// Frames that are given to the device at once. Rings of virtual devices have 256 places.
const BATCH: u32 = 64;

const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// `struct xdp_md` (include/uapi/linux/bpf.h): where the frames pretend to come from.
#[repr(C)]
#[derive(Default)]
struct Metadata {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}

/// The part `test` of `union bpf_attr` (include/uapi/linux/bpf.h).
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// Runs the XDP program.
#[derive(Debug)]
pub(super) struct Frames {
    program: OwnedFd,
    anchor: u32,
    /// The packet, behind room for its headers.
    frame: Vec<u8>,
}

impl Frames {
    pub(super) fn new(program: OwnedFd, anchor: u32) -> Self {
        Frames { program, anchor, frame: Vec::with_capacity(HEADER_BYTES + PAYLOAD_MAX) }
    }

    /// Takes over the packet that [`Frames::send`] sends. Returns its length and its sum.
    pub(super) fn fill(&mut self, payload: &[IoSlice<'_>]) -> io::Result<(u16, u16)> {
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if bytes > PAYLOAD_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a packet larger than an XDP frame"));
        }
        self.frame.clear();
        self.frame.resize(HEADER_BYTES, 0);
        payload.iter().for_each(|piece| self.frame.extend_from_slice(piece));
        Ok((bytes as u16, Sum::default().add(&self.frame[HEADER_BYTES..]).folded()))
    }

    /// Sends the packet to `targets`, which the control array names.
    ///
    /// # Errors
    /// What the kernel refuses; `Interrupted` when a signal came and some of the targets had their
    /// turn.
    pub(super) fn send(&self, targets: &Range<u32>) -> io::Result<()> {
        let bytes = self.frame.len() as u32;
        let metadata = Metadata { data_end: bytes, ingress_ifindex: self.anchor, ..Metadata::default() };
        let mut run = TestRun {
            prog_fd: self.program.as_raw_fd().cast_unsigned(),
            data_size_in: bytes,
            data_in: self.frame.as_ptr().addr() as u64,
            repeat: targets.end - targets.start,
            ctx_size_in: size_of::<Metadata>() as u32,
            ctx_in: (&raw const metadata).addr() as u64,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: BATCH,
            ..TestRun::default()
        };
        // SAFETY: `run` is laid out as the kernel has it; it names `frame` and `metadata` with their
        // lengths, which the kernel only reads and which outlive the call. It writes to `run` alone.
        let result =
            unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut run, size_of::<TestRun>()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends one frame of nothing, which the program drops as there is no order: whether the kernel
    /// can do that at all.
    pub(super) fn probe(&mut self) -> io::Result<()> {
        self.fill(&[])?;
        self.send(&(0..1))
    }
}
