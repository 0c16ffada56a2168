//! The system call `bpf`, as far as it is needed here (include/uapi/linux/bpf.h, `union bpf_attr`).
//!
//! Libraries for it read the description of all the kernel's types when they load a program, which
//! takes 20 MB and 100 ms; our programs ask nothing about the kernel's types.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{from_ref, null, null_mut};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use aya_obj::generated::{
    BPF_F_MMAPABLE, BPF_F_TEST_XDP_LIVE_FRAMES, XDP_FLAGS_SKB_MODE, bpf_attach_type, bpf_cmd, bpf_insn,
    bpf_map_type, bpf_prog_type,
};

use super::shared::Plain;

/// What the verifier says of a program that it refuses, bytes.
const LOG_BYTES: usize = 64 << 10;

/// How often a program is loaded before the kernel's EAGAIN is an error; libbpf's `PROG_LOAD_ATTEMPTS`.
const LOADS: usize = 5;

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
}

#[repr(C)]
#[derive(Default)]
struct RawTracepointOpen {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: u64,
    /// Or the key that follows.
    value: u64,
    flags: u64,
}

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

/// A map that is to be made: its name, and bytes of its keys and values.
pub(super) struct MapShape {
    pub(super) kind: bpf_map_type,
    pub(super) name: &'static str,
    pub(super) key_bytes: usize,
    pub(super) value_bytes: usize,
    pub(super) entries: u32,
    pub(super) flags: u32,
}

impl MapShape {
    /// An array that can be mapped into memory.
    pub(super) fn array(name: &'static str, value_bytes: usize, entries: u32) -> Self {
        let (kind, key_bytes) = (bpf_map_type::BPF_MAP_TYPE_ARRAY, size_of::<u32>());
        MapShape { kind, name, key_bytes, value_bytes, entries, flags: BPF_F_MMAPABLE }
    }

    pub(super) fn make(&self) -> io::Result<OwnedFd> {
        let mut attributes = MapCreate {
            map_type: self.kind as u32,
            key_size: self.key_bytes as u32,
            value_size: self.value_bytes as u32,
            max_entries: self.entries,
            map_flags: self.flags,
            map_name: short(self.name),
            ..MapCreate::default()
        };
        // SAFETY: the attributes of this command; they name no memory.
        let fd = unsafe { bpf(bpf_cmd::BPF_MAP_CREATE, &mut attributes)? };
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// The entries of a map by keys, which programs may write at any time.
#[derive(Debug)]
pub(super) struct Entries<K: Plain, V: Plain> {
    map: OwnedFd,
    holds: PhantomData<fn(K) -> V>,
}

impl<K: Plain, V: Plain> Entries<K, V> {
    /// Those of a map with keys and values of these sizes.
    pub(super) fn new(map: OwnedFd) -> Self {
        Entries { map, holds: PhantomData }
    }

    pub(super) fn set(&self, key: &K, value: &V) -> io::Result<()> {
        self.ask(bpf_cmd::BPF_MAP_UPDATE_ELEM, from_ref(key).cast(), from_ref(value).cast::<u8>().cast_mut())
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        let mut value = MaybeUninit::<V>::uninit();
        self.ask(bpf_cmd::BPF_MAP_LOOKUP_ELEM, from_ref(key).cast(), value.as_mut_ptr().cast()).ok()?;
        // SAFETY: the kernel has written all of it, and any bytes are a value.
        Some(unsafe { value.assume_init() })
    }

    /// It may not be there.
    pub(super) fn remove(&self, key: &K) {
        let _not_there = self.ask(bpf_cmd::BPF_MAP_DELETE_ELEM, from_ref(key).cast(), null_mut());
    }

    /// All keys that there are, as far as none comes or goes meanwhile.
    pub(super) fn keys(&self, entries: u32) -> Vec<K> {
        let mut keys: Vec<K> = Vec::new();
        for _ in 0..entries {
            let (mut next, before) = (MaybeUninit::<K>::uninit(), keys.last().map_or(null(), from_ref));
            let asked = self.ask(bpf_cmd::BPF_MAP_GET_NEXT_KEY, before.cast(), next.as_mut_ptr().cast());
            if asked.is_err() {
                break;
            }
            // SAFETY: the kernel has written all of it, and any bytes are a key.
            keys.push(unsafe { next.assume_init() });
        }
        keys
    }

    fn ask(&self, command: bpf_cmd, key: *const u8, value: *mut u8) -> io::Result<()> {
        let (key, value) = (key.addr() as u64, value.addr() as u64);
        let mut attributes = Element { map_fd: number(&self.map), key, value, ..Element::default() };
        // SAFETY: the attributes of this command; they name a key and a value of the sizes that the map has, or none
        // where the command takes none. Both outlive the call.
        unsafe { bpf(command, &mut attributes) }.map(drop)
    }
}

/// Loads a program.
///
/// # Errors
/// What the kernel answers, with the verifier's last words if it refuses the program.
pub(super) fn load(
    kind: bpf_prog_type,
    name: &str,
    instructions: &[bpf_insn],
    license: &CStr,
) -> io::Result<OwnedFd> {
    let mut log = Vec::new();
    let try_load = |log: &mut Vec<u8>| {
        let mut attributes = ProgLoad {
            prog_type: kind as u32,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr().addr() as u64,
            license: license.as_ptr().addr() as u64,
            log_level: (!log.is_empty()).into(),
            log_size: log.len() as u32,
            log_buf: if log.is_empty() { 0 } else { log.as_mut_ptr().addr() as u64 },
            prog_name: short(name),
            ..ProgLoad::default()
        };
        // SAFETY: the attributes of this command; they name `instructions` and `license`, which are
        // read, and all of `log`, which is written. All outlive the call.
        let fd = uninterrupted(|| unsafe { bpf(bpf_cmd::BPF_PROG_LOAD, &mut attributes) })?;
        // SAFETY: the descriptor is new, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    };
    let error: io::Error = match try_load(&mut log) {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    if !matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL | libc::E2BIG)) {
        return Err(error);
    }
    // Once more, to hear why.
    log.resize(LOG_BYTES, 0);
    if let Ok(fd) = try_load(&mut log) {
        return Ok(fd);
    }
    let text = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    Err(io::Error::new(error.kind(), format!("{error} (verifier: {last})")))
}

/// The verifier gives up with EAGAIN where a signal is there for the thread (`kernel/bpf/verifier.c`, `do_check`), also
/// one that the kernel raises to have it do some work of its own; it is asked again, a few times.
fn uninterrupted(mut load: impl FnMut() -> io::Result<i32>) -> io::Result<i32> {
    for _ in 1..LOADS {
        match load() {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            answer => return answer,
        }
    }
    load()
}

/// Has `program` run at the tracepoint `name` while the returned descriptor is open.
pub(super) fn attach_tracepoint(program: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let mut attributes =
        RawTracepointOpen { name: name.as_ptr().addr() as u64, prog_fd: number(program), padding: 0 };
    // SAFETY: the attributes of this command; they name `name`, which is read and outlives the call.
    let fd = unsafe { bpf(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attributes)? };
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has the XDP program run for what comes in at a device, whatever its driver, while the returned
/// descriptor is open.
pub(super) fn attach_xdp(program: &OwnedFd, ifindex: u32) -> io::Result<OwnedFd> {
    link(&mut LinkCreate {
        prog_fd: number(program),
        target_ifindex: ifindex,
        attach_type: bpf_attach_type::BPF_XDP as u32,
        flags: XDP_FLAGS_SKB_MODE,
    })
}

fn link(attributes: &mut LinkCreate) -> io::Result<OwnedFd> {
    // SAFETY: the attributes of this command; they name no memory.
    let fd = unsafe { bpf(bpf_cmd::BPF_LINK_CREATE, attributes)? };
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has the classifier run for what comes in at a device, before the system's own, while the returned descriptor is open
/// (6.6 and newer).
pub(super) fn attach_ingress(program: &OwnedFd, ifindex: u32) -> io::Result<OwnedFd> {
    let attach_type = bpf_attach_type::BPF_TCX_INGRESS as u32;
    link(&mut LinkCreate { prog_fd: number(program), target_ifindex: ifindex, attach_type, flags: 0 })
}

/// Runs the XDP program on `repeat` copies of `frame`, `batch` at a time, and sends each where it
/// says (Documentation/bpf/bpf_prog_run.rst).
///
/// # Errors
/// What the kernel answers; `Interrupted` when a signal came and some of the copies had their turn.
pub(super) fn run_on_live_frames(program: &OwnedFd, frame: &[u8], repeat: u32, batch: u32) -> io::Result<()> {
    let mut attributes = TestRun {
        prog_fd: number(program),
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr().addr() as u64,
        repeat,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the attributes of this command; they name `frame`, which is read and outlives the call.
    unsafe { bpf(bpf_cmd::BPF_PROG_TEST_RUN, &mut attributes) }.map(drop)
}

/// # Safety
/// `attributes` are those of `command`, laid out as the kernel has them, and all memory that they
/// name is valid.
unsafe fn bpf<T>(command: bpf_cmd, attributes: &mut T) -> io::Result<i32> {
    let (command, size) = (command as libc::c_long, size_of::<T>());
    // SAFETY: the kernel reads and writes `size` bytes at `attributes`, and what they name, as the
    // caller promises.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn number(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().cast_unsigned()
}

/// A name as the kernel keeps it, for lists of programs and maps: 15 bytes.
fn short(name: &str) -> [u8; 16] {
    let mut short = [0; 16];
    for (to, from) in short[..15].iter_mut().zip(name.as_bytes()) {
        *to = *from;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_load_is_done_again_a_few_times() {
        let load = |interruptions: usize, error: i32| {
            let mut calls = 0;
            let answer = uninterrupted(|| {
                calls += 1;
                if calls > interruptions { Ok(7) } else { Err(io::Error::from_raw_os_error(error)) }
            });
            (answer.map_err(|error| error.raw_os_error()), calls)
        };
        assert_eq!(load(0, libc::EAGAIN), (Ok(7), 1));
        assert_eq!(load(LOADS - 1, libc::EAGAIN), (Ok(7), LOADS));
        assert_eq!(load(LOADS, libc::EAGAIN), (Err(Some(libc::EAGAIN)), LOADS));
        assert_eq!(load(1, libc::EACCES), (Err(Some(libc::EACCES)), 1));
    }
}
