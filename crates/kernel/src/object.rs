//! A compiled object: programs that work on maps of ours.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::Object;
use aya_obj::generated::{bpf_insn, bpf_prog_type};

use super::bpf;
use super::bpf::MapShape;
use super::error::KernelError;

/// As the ELF reader wants it.
#[repr(align(8))]
pub(super) struct Aligned<T: ?Sized>(pub(super) T);

/// The programs of an object that `build.rs` compiled, and their maps.
pub(super) struct Code {
    object: Object,
    /// Programs keep their maps alive; until they are loaded, these do.
    maps: BTreeMap<&'static str, OwnedFd>,
}

impl Code {
    /// Makes the maps, which are all that the programs use.
    pub(super) fn new(bytes: &'static Aligned<[u8]>, shapes: &[MapShape]) -> Result<Self, KernelError> {
        let mut made = BTreeMap::new();
        for shape in shapes {
            let map = shape.make().map_err(|e| KernelError::new("making the BPF maps", e))?;
            made.insert(shape.name, map);
        }
        let mut object = Object::parse(&bytes.0).expect("embedded, and tested");
        let maps = core::mem::take(&mut object.maps);
        let fd = |name: &str| made[name].as_raw_fd();
        let maps = maps.iter().map(|(name, map)| (name.as_str(), fd(name), map));
        // No function is called by another one: all are inlined.
        object.relocate_maps(maps, &Default::default()).expect("embedded, and tested");
        Ok(Code { object, maps: made })
    }

    /// One of the maps.
    pub(super) fn map(&self, name: &str) -> BorrowedFd<'_> {
        self.maps[name].as_fd()
    }

    /// Loads one of the programs.
    pub(super) fn load(&self, kind: bpf_prog_type, name: &'static str) -> Result<OwnedFd, KernelError> {
        let (instructions, license) = self.program(name);
        bpf::load(kind, name, instructions, license).map_err(|e| KernelError::new("loading a BPF program", e))
    }

    fn program(&self, name: &str) -> (&[bpf_insn], &CStr) {
        let program = self.object.programs.get(name).expect("embedded, and tested");
        let function = self.object.functions.get(&program.function_key());
        (&function.expect("embedded, and tested").instructions, &program.license)
    }
}
