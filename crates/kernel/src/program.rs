//! The programs: loaded, attached to the anchor, and gone when dropped.

use std::os::fd::OwnedFd;

use aya_obj::generated::bpf_prog_type;

use super::anchor::Anchor;
use super::bpf::MapShape;
use super::error::KernelError;
use super::layout::{Control, Entry, LAYERS, WAITING};
use super::object::{Aligned, Code};
use super::shared::Shared;
use super::{bpf, classifier};

/// Compiled by `build.rs`.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/fanout.o")));

/// The programs' code, which works on arrays.
pub(super) struct Programs(Code);

/// What the programs share with this process.
pub(super) struct Arrays {
    pub(super) control: Shared<Control>,
    pub(super) sequence_offset: Shared<u16>,
    pub(super) targets: Shared<Entry>,
}

/// A program that is attached to something as long as this value is there.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) program: OwnedFd,
    _attachments: Vec<OwnedFd>,
}

impl Programs {
    /// Makes the arrays, with room for `targets_max` targets.
    pub(super) fn new(targets_max: u32) -> Result<(Self, Arrays), KernelError> {
        let code = Code::new(
            OBJECT,
            &[
                MapShape::array("control", size_of::<Control>(), 1),
                MapShape::array("sequence_offset", size_of::<[u16; LAYERS]>(), 1),
                MapShape::array("targets", size_of::<Entry>(), targets_max),
                MapShape::array("waiting", size_of::<u32>(), WAITING),
            ],
        )?;
        let failed = |e| KernelError::new("mapping the BPF arrays", e);
        let arrays = Arrays {
            control: Shared::new(code.map("control"), 1).map_err(failed)?,
            sequence_offset: Shared::new(code.map("sequence_offset"), LAYERS as u32).map_err(failed)?,
            targets: Shared::new(code.map("targets"), targets_max).map_err(failed)?,
        };
        Ok((Programs(code), arrays))
    }

    /// Puts the classifier on the anchor.
    pub(super) fn attach_classifier(&self, anchor: &Anchor) -> Result<(), KernelError> {
        let program = self.0.load(bpf_prog_type::BPF_PROG_TYPE_SCHED_CLS, "clone_to_targets")?;
        classifier::attach(&program, anchor.ifindex)
            .map_err(|e| KernelError::new("attaching the classifier", e))
    }

    /// Makes the XDP program ready, and those that see what becomes of its frames.
    pub(super) fn attach_xdp(&self, anchor: &Anchor) -> Result<Attached, KernelError> {
        let mut attachments = Vec::new();
        for (name, tracepoint) in
            [("count_untaken", c"xdp_devmap_xmit"), ("count_refused", c"xdp_redirect_err")]
        {
            let program = self.0.load(bpf_prog_type::BPF_PROG_TYPE_RAW_TRACEPOINT, name)?;
            let attachment = bpf::attach_tracepoint(&program, tracepoint);
            attachments.push(attachment.map_err(|e| KernelError::new("attaching to XDP's tracepoints", e))?);
        }
        let program = self.0.load(bpf_prog_type::BPF_PROG_TYPE_XDP, "write_to_target")?;
        // Nothing comes in there. But before and after each use of a program that is attached nowhere
        // the kernel waits for all its processors (`bpf_prog_change_xdp`).
        let attachment = bpf::attach_xdp(&program, anchor.ifindex);
        attachments.push(attachment.map_err(|e| KernelError::new("attaching the XDP program", e))?);
        Ok(Attached { program, _attachments: attachments })
    }
}
