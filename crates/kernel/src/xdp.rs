//! Orders by way of XDP: the kernel makes as many frames of a packet as there are targets, a program
//! writes the headers of each, and the device sends them. No socket buffer is ever made.

use std::io::{self, IoSlice};

use super::bpf;
use super::checksum::Sum;
use super::layout::HEADER_BYTES;
use super::program::Attached;

/// Payload of a packet that surely fits a frame: a page less headroom and what the kernel keeps at
/// both ends.
const PAYLOAD_MAX: usize = 3_000;

/// Frames that are given to the device at once. Rings of virtual devices have 256 places.
const BATCH: u32 = 64;

/// Runs the XDP program.
#[derive(Debug)]
pub(super) struct Frames {
    attached: Attached,
    /// The packet, behind room for its headers.
    frame: Vec<u8>,
}

impl Frames {
    /// # Errors
    /// What the kernel answers to a try: before Linux 5.18 it knows no live frames.
    pub(super) fn new(attached: Attached) -> io::Result<Self> {
        let frames = Frames { attached, frame: vec![0; HEADER_BYTES + PAYLOAD_MAX] };
        // The program drops it, as there is no order.
        frames.send(1)?;
        Ok(frames)
    }

    /// Takes over the packet that [`Frames::send`] sends. Returns its length and its sum.
    pub(super) fn fill(&mut self, payload: &[IoSlice<'_>]) -> io::Result<(u16, u16)> {
        let bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if bytes > PAYLOAD_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a packet larger than an XDP frame"));
        }
        self.frame.truncate(HEADER_BYTES);
        payload.iter().for_each(|piece| self.frame.extend_from_slice(piece));
        Ok((bytes as u16, Sum::default().add(&self.frame[HEADER_BYTES..]).folded()))
    }

    /// Sends the packet to `count` of the targets that the control array names: the next that take it.
    ///
    /// # Errors
    /// What the kernel answers; `Interrupted` when a signal came and some of the targets had their
    /// turn.
    pub(super) fn send(&self, count: u32) -> io::Result<()> {
        bpf::run_on_live_frames(&self.attached.program, &self.frame, count, BATCH)
    }
}
