//! Orders carried out in the kernel: one system call a packet, or a run of them, instead of one a
//! receiver.
//!
//! User space decides what goes to which receiver, as ever, and writes each receiver's addresses into a table
//! that BPF programs read. [`Kernel::send_tc`] sends one packet to a device of our own, the *anchor*,
//! where a classifier clones it to all of a group's targets: any device can send those, through its
//! own queues. [`Kernel::send_xdp`] skips the queues and socket buffers, where the device takes XDP
//! frames. Nothing is attached to the operator's devices.
//!
//! Plain UDP, over IPv4 and IPv6. The caller keeps to the MTU of the way: nothing is fragmented.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns clock, sockets and files"
)]

mod anchor;
mod bpf;
mod checksum;
mod classifier;
mod device;
mod error;
mod failure;
mod layout;
pub mod limits;
mod object;
mod program;
mod shared;
mod table;
mod tc;
pub mod thin;
mod xdp;

use core::ops::Range;
use std::io;
use std::io::IoSlice;

use anchor::Anchor;
use device::Devices;
pub use error::KernelError;
pub use failure::{Failure, Reason};
use layout::Control;
pub use layout::{Ends, Part, Target};
use outflow_packet::MaxLayer;
use outflow_rtp::HEADER;
use program::{Arrays, Programs};
use shared::Shared;
use table::Table;
pub use table::{Group, TableFull};
use tc::Injector;
use xdp::Frames;

/// What became of an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that devices did not take, of all targets together. Whose they are tells
    /// [`Kernel::take_failures`].
    pub failed: u64,
}

/// An RTP packet of which each target may get something else: it is left out where it is of a layer above
/// the target's maximum layer, its sequence number is lower by as many as were left out before, and its marker is set
/// where what is behind it in its picture is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layered {
    layer: u8,
    /// One more than the highest maximum layer that it ends its picture for; 0 if none is known.
    ends: u8,
    /// The first half of the RTP header's first word, and its sequence number, as they came.
    head: u16,
    sequence: u16,
}

impl Layered {
    /// A packet of this layer with this RTP header, which ends its picture for targets that take layers up to
    /// `ends`.
    pub fn new(layer: u8, ends: Option<u8>, header: &[u8; HEADER]) -> Self {
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let ends = ends.map_or(0, |ends| ends.saturating_add(1));
        Layered { layer, ends, head: half(0), sequence: half(2) }
    }
}

/// The kernel path of one worker. Dropping it takes all of it out of the kernel.
#[derive(Debug)]
pub struct Kernel {
    control: Shared<Control>,
    sequence_offset: Shared<u16>,
    table: Table,
    injector: Injector,
    xdp: Result<Frames, KernelError>,
    /// The classifier goes with it.
    _anchor: Anchor,
}

impl Kernel {
    /// Makes the anchor in the network namespace of this thread, and loads and attaches the programs.
    /// There is room for `targets_max` targets, of 88 bytes each.
    ///
    /// # Errors
    /// What is missing, with what to do about it.
    pub fn open(targets_max: u32) -> Result<Self, KernelError> {
        let anchor = Anchor::open().map_err(KernelError::of_tap)?;
        let (programs, Arrays { control, sequence_offset, targets }) = Programs::new(targets_max)?;
        programs.attach_classifier(&anchor)?;
        let injector = Injector::open(&anchor).map_err(KernelError::of_injection)?;
        let xdp = programs.attach_xdp(&anchor).and_then(|attached| {
            Frames::new(attached).map_err(|e| KernelError::new("sending XDP frames", e))
        });
        let devices = Devices::new().map_err(|e| KernelError::new("asking about network devices", e))?;
        let table = Table::new(targets, devices, targets_max);
        Ok(Kernel { control, sequence_offset, table, injector, xdp, _anchor: anchor })
    }

    /// Why [`Kernel::send_xdp`] does not work here, if it does not.
    pub fn xdp_refused(&self) -> Option<&KernelError> {
        self.xdp.as_ref().err()
    }

    /// Makes a group with `places` places, all blank.
    ///
    /// # Errors
    /// The table has no room.
    pub fn add_group(&mut self, places: usize) -> Result<Group, TableFull> {
        self.table.add(places)
    }

    /// Gives a group more or fewer places; new ones are blank. When that fails, it keeps those it has.
    ///
    /// # Errors
    /// The table has no room.
    pub fn resize_group(&mut self, group: &mut Group, places: usize) -> Result<(), TableFull> {
        self.table.resize(group, places)
    }

    /// Gives a place to a target, or leaves it blank: nothing is sent there. Orders go faster if
    /// neighbours have the same device.
    pub fn set_target(&mut self, group: &mut Group, place: usize, target: Option<&Target>) {
        self.table.set(group, place, target);
    }

    /// By how much the sequence numbers of the next layered packets are lower for targets that take layers up
    /// to `max_layer`.
    pub fn set_sequence_offset(&mut self, max_layer: MaxLayer, sequence_offset: u16) {
        self.sequence_offset.set(max_layer.layer().into(), sequence_offset);
    }

    /// Gives back the group's room in the table.
    pub fn remove_group(&mut self, group: Group) {
        self.table.remove(group);
    }

    /// Devices may be others now, or segment otherwise: each is asked again when that is next of interest. Otherwise it
    /// is asked once, as the answer waits for all else that changes devices of the machine.
    pub fn forget_devices(&mut self) {
        self.table.forget_devices();
    }

    /// Hands over which targets of `group`, by their place, lost packets since the last call.
    pub fn take_failures(&mut self, group: &Group, each: impl FnMut(usize, Failure)) {
        self.table.take_failures(group, each);
    }

    /// Sends packets to the targets at `places` of `group` by way of the classifier. `payload` are the
    /// packets one after the other, each of `segment` bytes; the last may be shorter.
    ///
    /// # Errors
    /// When nothing went to any target. What went to some is no error; the others' packets have failed.
    pub fn send_tc(
        &mut self,
        group: &mut Group,
        places: Range<usize>,
        payload: &[IoSlice<'_>],
        segment: usize,
        layered: Option<Layered>,
    ) -> io::Result<Sent> {
        let mut sent = Sent::default();
        let mut went = false;
        let mut rest = tc::Rest::new(payload, segment)?;
        let whole = self.table.segments(group);
        while let Some(injection) = rest.next()? {
            let mut entries = group.at(&places);
            while !entries.is_empty() {
                let end = entries.end.min(entries.start + self.injector.burst(&injection, whole));
                let burst = entries.start..end;
                entries.start = end;
                let order = Self::order(&burst, (injection.packets, injection.bytes as u16), layered);
                self.control.set(0, order);
                let result = self.injector.send(&injection);
                sent.failed += self.finish(burst, result, &mut went)?;
            }
        }
        Ok(sent)
    }

    /// Sends one packet to the targets at `places` of `group` as XDP frames. It must fit a page.
    ///
    /// # Errors
    /// When nothing went to any target. What went to some is no error; the others' packets have failed.
    pub fn send_xdp(
        &mut self,
        group: &mut Group,
        places: Range<usize>,
        payload: &[IoSlice<'_>],
        layered: Option<Layered>,
    ) -> io::Result<Sent> {
        let mut sent = Sent::default();
        let mut went = false;
        let refused = |error: &mut KernelError| io::Error::new(io::ErrorKind::Unsupported, error.to_string());
        let (length, payload_sum) = self.xdp.as_mut().map_err(refused)?.fill(payload)?;
        for run in self.table.runs(group, &places) {
            let order = Control { payload_sum, ..Self::order(&run, (1, length), layered) };
            self.control.set(0, order);
            let Ok(frames) = &self.xdp else { break };
            let result = loop {
                let left = self.control.get(0).first..run.end;
                let (taking, takers) = match layered {
                    Some(Layered { layer, .. }) => self.table.taking(left, layer),
                    None => (left.clone(), left.end - left.start),
                };
                if takers == 0 {
                    // No target behind the last one takes it.
                    self.control.set(0, Control { first: run.end, ..self.control.get(0) });
                    break Ok(());
                }
                let Range { start: first, end } = taking;
                self.control.set(0, Control { first, end, ..self.control.get(0) });
                match frames.send(takers) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // There may have been more between them than a run passes over.
                    Ok(()) if self.control.get(0).first > first => {}
                    result => break result,
                }
            };
            sent.failed += self.finish(run, result, &mut went)?;
        }
        Ok(sent)
    }

    fn order(targets: &Range<u32>, (packets, length): (u32, u16), layered: Option<Layered>) -> Control {
        let (first, end, numbered) = (targets.start, targets.end, u8::from(layered.is_some()));
        let Layered { layer, ends, head, sequence } = layered.unwrap_or_default();
        let order = Control { first, end, packets, length, mark: tc::MARK, ..Control::default() };
        Control { layer, ends, head, numbered, sequence, ..order }
    }

    /// What became of the order for `targets`. Returns how many packets failed; an error as long as
    /// none has gone to any target.
    fn finish(&mut self, targets: Range<u32>, result: io::Result<()>, went: &mut bool) -> io::Result<u64> {
        let order = self.control.get(0);
        // No order is left behind: whatever should come along finds nothing to do.
        self.control.set(0, Control::default());
        let missed = order.first.clamp(targets.start, targets.end)..targets.end;
        if missed.len() < targets.len() {
            *went = true;
        }
        if missed.is_empty() {
            return Ok(order.failed);
        }
        let error = match result {
            Err(error) => error,
            Ok(()) => io::Error::other("the program at the anchor is gone: someone removed it"),
        };
        if !*went {
            return Err(error);
        }
        let code = -error.raw_os_error().unwrap_or(libc::EIO);
        Ok(order.failed + self.table.fail(missed, order.packets, code))
    }
}

#[cfg(test)]
mod tests;
