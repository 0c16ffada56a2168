//! The programs: loaded, attached to the anchor, and gone when dropped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::Map;
use aya::programs::tc::{self, NlOptions, TcAttachOptions};
use aya::programs::{BtfTracePoint, ProgramError, SchedClassifier, TcAttachType, Xdp, XdpMode};
use aya::{Btf, Ebpf, EbpfLoader};

use super::anchor::Anchor;
use super::error::KernelError;
use super::layout::{Control, Entry};
use super::shared::Shared;

/// Compiled by `build.rs`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/fanout.o"));

/// Owns the programs and their attachments.
#[derive(Debug)]
pub(super) struct Programs(Ebpf);

/// The kernel's own types, which the tracing programs need; `None` where it does not tell them.
pub(super) fn kernel_types() -> Option<Btf> {
    Btf::from_sys_fs().ok()
}

impl Programs {
    /// Makes the arrays, with room for `targets_max` targets, and what the programs need to be loaded.
    pub(super) fn new(
        types: Option<&Btf>,
        targets_max: u32,
    ) -> Result<(Self, Shared<Control>, Shared<Entry>), KernelError> {
        let mut ebpf = EbpfLoader::new()
            .btf(types)
            .map_max_entries("targets", targets_max)
            .load(OBJECT)
            .map_err(|e| KernelError::new("making the BPF arrays", e))?;
        let control = share(&mut ebpf, "control", 1)?;
        let table = share(&mut ebpf, "targets", targets_max)?;
        Ok((Programs(ebpf), control, table))
    }

    /// Puts the classifier on the anchor, by netlink: kernels before 6.6 know no other way.
    pub(super) fn attach_classifier(&mut self, anchor: &Anchor) -> Result<(), KernelError> {
        let failed = |e| KernelError::new("attaching the classifier", e);
        let classifier: &mut SchedClassifier = self.program("clone_to_targets").map_err(failed)?;
        classifier.load().map_err(|e| KernelError::new("loading the classifier", e))?;
        tc::qdisc_add_clsact(&anchor.name).map_err(|e| failed(e.into()))?;
        let options = TcAttachOptions::Netlink(NlOptions::default());
        classifier.attach_with_options(&anchor.name, TcAttachType::Egress, options).map_err(failed)?;
        Ok(())
    }

    /// Makes the XDP program ready, and those that see what becomes of its frames. Returns its
    /// descriptor.
    pub(super) fn attach_xdp(
        &mut self,
        types: Option<&Btf>,
        anchor: &Anchor,
    ) -> Result<OwnedFd, KernelError> {
        let untold =
            || io::Error::new(io::ErrorKind::Unsupported, "the kernel does not tell its types (BTF)");
        for (name, tracepoint) in
            [("count_untaken", "xdp_devmap_xmit"), ("count_refused", "xdp_redirect_err")]
        {
            types
                .ok_or_else(|| untold().into())
                .and_then(|types| self.trace(name, tracepoint, types))
                .map_err(|e| KernelError::new("attaching to the tracepoints of XDP", e))?;
        }
        let failed = |e| KernelError::new("loading the XDP program", e);
        let program: &mut Xdp = self.program("write_to_target").map_err(failed)?;
        program.load().map_err(failed)?;
        // Nothing comes in there. But before and after each use of a program that is attached nowhere
        // the kernel waits for all its cores (`bpf_prog_change_xdp`).
        program.attach(&anchor.name, XdpMode::Skb).map_err(failed)?;
        let fd = program.fd().map_err(failed)?.as_fd().try_clone_to_owned();
        fd.map_err(|e| failed(e.into()))
    }

    fn trace(&mut self, name: &str, tracepoint: &str, types: &Btf) -> Result<(), ProgramError> {
        let program: &mut BtfTracePoint = self.program(name)?;
        program.load(tracepoint, types)?;
        program.attach().map(drop)
    }

    fn program<'a, P>(&'a mut self, name: &str) -> Result<&'a mut P, ProgramError>
    where
        &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
    {
        self.0.program_mut(name).expect("it is in the embedded object").try_into()
    }
}

/// Maps the array `name`. The mapping keeps it alive.
fn share<T: aya::Pod>(ebpf: &mut Ebpf, name: &str, length: u32) -> Result<Shared<T>, KernelError> {
    match ebpf.take_map(name) {
        Some(Map::Array(data)) => {
            Shared::new(data.fd(), length).map_err(|e| KernelError::new("mapping the BPF arrays", e))
        }
        _ => unreachable!("it is in the embedded object"),
    }
}
