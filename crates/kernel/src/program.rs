//! The programs: loaded, attached to the anchor, and gone when dropped.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use aya_obj::Object;
use aya_obj::generated::{bpf_insn, bpf_prog_type};

use super::anchor::Anchor;
use super::error::KernelError;
use super::layout::{Control, Entry, LAYERS, WAITING};
use super::shared::Shared;
use super::{bpf, classifier};

/// As the ELF reader wants it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

/// Compiled by `build.rs`.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/fanout.o")));

/// The programs' code, which works on two arrays.
pub(super) struct Programs {
    object: Object,
    /// The programs keep their arrays alive; until they are loaded, these do.
    _arrays: Vec<OwnedFd>,
}

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
        let failed = |e| KernelError::new("making the BPF arrays", e);
        let sizes = [
            ("control", size_of::<Control>(), 1),
            ("sequence_offset", size_of::<[u16; LAYERS]>(), 1),
            ("targets", size_of::<Entry>(), targets_max),
            ("waiting", size_of::<u32>(), WAITING),
        ];
        let mut made = BTreeMap::new();
        for (name, size, count) in sizes {
            made.insert(name, bpf::create_array(name, size, count).map_err(failed)?);
        }
        let arrays = Arrays {
            control: Shared::new(&made["control"], 1).map_err(failed)?,
            sequence_offset: Shared::new(&made["sequence_offset"], LAYERS as u32).map_err(failed)?,
            targets: Shared::new(&made["targets"], targets_max).map_err(failed)?,
        };

        let mut object = Object::parse(&OBJECT.0).expect("embedded, and tested");
        let maps = core::mem::take(&mut object.maps);
        let fd = |name: &str| made[name].as_raw_fd();
        let maps = maps.iter().map(|(name, map)| (name.as_str(), fd(name), map));
        // No function is called by another one: all are inlined.
        object.relocate_maps(maps, &Default::default()).expect("embedded, and tested");
        Ok((Programs { object, _arrays: made.into_values().collect() }, arrays))
    }

    /// Puts the classifier on the anchor.
    pub(super) fn attach_classifier(&self, anchor: &Anchor) -> Result<(), KernelError> {
        let program = self.load(bpf_prog_type::BPF_PROG_TYPE_SCHED_CLS, "clone_to_targets")?;
        classifier::attach(&program, anchor.ifindex)
            .map_err(|e| KernelError::new("attaching the classifier", e))
    }

    /// Makes the XDP program ready, and those that see what becomes of its frames.
    pub(super) fn attach_xdp(&self, anchor: &Anchor) -> Result<Attached, KernelError> {
        let mut attachments = Vec::new();
        for (name, tracepoint) in
            [("count_untaken", c"xdp_devmap_xmit"), ("count_refused", c"xdp_redirect_err")]
        {
            let program = self.load(bpf_prog_type::BPF_PROG_TYPE_RAW_TRACEPOINT, name)?;
            let attachment = bpf::attach_tracepoint(&program, tracepoint);
            attachments.push(attachment.map_err(|e| KernelError::new("attaching to XDP's tracepoints", e))?);
        }
        let program = self.load(bpf_prog_type::BPF_PROG_TYPE_XDP, "write_to_target")?;
        // Nothing comes in there. But before and after each use of a program that is attached nowhere
        // the kernel waits for all its processors (`bpf_prog_change_xdp`).
        let attachment = bpf::attach_xdp(&program, anchor.ifindex);
        attachments.push(attachment.map_err(|e| KernelError::new("attaching the XDP program", e))?);
        Ok(Attached { program, _attachments: attachments })
    }

    fn load(&self, kind: bpf_prog_type, name: &'static str) -> Result<OwnedFd, KernelError> {
        let (instructions, license) = self.code(name);
        bpf::load(kind, name, instructions, license).map_err(|e| KernelError::new("loading a BPF program", e))
    }

    fn code(&self, name: &str) -> (&[bpf_insn], &CStr) {
        let program = self.object.programs.get(name).expect("embedded, and tested");
        let function = self.object.functions.get(&program.function_key());
        (&function.expect("embedded, and tested").instructions, &program.license)
    }
}
