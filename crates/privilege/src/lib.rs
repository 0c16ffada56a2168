//! What the relay and the programs that it runs may do. Each thread keeps what it needs, and no more.
//!
//! Capabilities belong to threads, and a thread begins with those of the one that starts it. So the process gives up
//! first what no part of it needs ([`confine`]), then each thread what it does not need any more ([`keep`],
//! [`give_up`]). Programs are started from a thread that has nothing ([`spawn`]); what a thread has given up, none that
//! it starts can get back, and no program either. What is needed again and again, a helper does ([`start_helper`]);
//! what is to begin with all that the relay began with, a starter starts ([`start_starter`]).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a driver owns threads")]

mod child;
mod helper;
mod message;
mod starter;

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_bounding_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

pub use child::{Bounds, environment, spawn};
pub use helper::{Buffer, Deed, Neighbour, choose_table, confirm, enlarge, has_helper, serve, start_helper};
pub use starter::{ask, serve_starter, start_starter};

/// What a thread needs after the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A worker: what the helper does, where there is none (`CAP_NET_ADMIN`).
    Worker,
    /// The control plane. A reload may open sockets, at ports below 1024 (`CAP_NET_BIND_SERVICE`) and of interfaces
    /// (`CAP_NET_RAW`), and read files, as [`Part::Reader`] does. It does what the helper does, where there is none.
    Control,
    /// What reads files that the configuration names: run by root, those of others, too (`CAP_DAC_READ_SEARCH`, or
    /// `CAP_DAC_OVERRIDE` where there is only that).
    Reader,
}

impl Part {
    /// What it needs of what its thread has.
    fn needs(self, has: CapabilitySet) -> CapabilitySet {
        let of_helper = if has_helper() { CapabilitySet::empty() } else { CapabilitySet::NET_ADMIN };
        match self {
            Part::Worker => of_helper,
            Part::Control => of_helper | control(has),
            Part::Reader => reader(has),
        }
    }
}

/// What control needs after the start, besides what the helper does.
fn control(has: CapabilitySet) -> CapabilitySet {
    CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE | reader(has)
}

/// Root of a container may have the greater of the two alone.
fn reader(has: CapabilitySet) -> CapabilitySet {
    let reads = CapabilitySet::DAC_READ_SEARCH;
    if has.contains(reads) { reads } else { CapabilitySet::DAC_OVERRIDE }
}

/// What the relay needs to start: besides what control does, BPF programs for the kernel's fan-out, and memory of rings
/// that the kernel holds in place.
fn start(has: CapabilitySet) -> CapabilitySet {
    let fanout = CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::PERFMON;
    control(has) | fanout | CapabilitySet::IPC_LOCK
}

/// Root without capabilities, and no way back: programs that root runs have none either.
const NO_WAY_BACK: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT
    .union(CapabilitiesSecureBits::NO_ROOT_LOCKED)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// Gives up what no part of the relay needs, for this thread and all that it starts from now on. To be called before
/// other threads run.
///
/// # Errors
/// The system refuses, as a filter of system calls may; it says what to allow.
pub fn confine() -> io::Result<()> {
    reduce(start(permitted()?)).map_err(explained)
}

/// Leaves this thread, and those that it starts from now on, what this part needs; of that, what it has.
///
/// # Errors
/// As for [`confine`].
pub fn keep(part: Part) -> io::Result<()> {
    leave(part.needs(permitted()?)).map_err(explained)
}

/// Leaves this thread nothing, and neither what it starts from now on.
///
/// # Errors
/// As for [`confine`].
pub fn give_up() -> io::Result<()> {
    reduce(CapabilitySet::empty()).map_err(explained)
}

/// Leaves this thread and what it starts no privileges: all that are given to it from now on are open already.
pub fn give_up_privileges(thread: &str) {
    if let Err(error) = give_up() {
        tracing::warn!(thread, %error, "a thread keeps privileges that it does not need");
    }
}

/// Leaves this thread and what it starts the privileges of a part.
pub fn keep_privileges(thread: &str, part: Part) {
    if let Err(error) = keep(part) {
        tracing::warn!(thread, %error, "a thread keeps privileges that it does not need");
    }
}

/// Does something in a thread of its own, which has nothing, and neither have threads that it starts.
///
/// # Errors
/// As for [`confine`]; or the system gives no thread.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("apart".to_owned());
        let thread = thread.spawn_scoped(scope, || give_up().map(|()| work()))?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("what was done apart panicked")))
    })
}

/// Leaves no more than this, and no way to get it again: not as root, and not by a program with more rights.
fn reduce(rest: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    // Without this one there is nothing to bound: no program gets more than the thread that starts it has.
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        set_capabilities_secure_bits(capabilities_secure_bits()? | NO_WAY_BACK)?;
        for capability in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
            // Of those that this kernel does not know, there is nothing to remove.
            if capability_is_in_bounding_set(capability) == Ok(true) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    leave(rest)
}

/// Leaves no more than this of what this thread has, and lets no program inherit it.
fn leave(rest: CapabilitySet) -> io::Result<()> {
    let permitted = permitted()? & rest;
    // What is not to be inherited is not ambient either.
    let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

fn permitted() -> io::Result<CapabilitySet> {
    Ok(capabilities(None)?.permitted)
}

fn explained(error: io::Error) -> io::Error {
    let what = "privileges cannot be given up; let the filter of system calls allow capset and prctl";
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
