//! Ends: network namespaces with devices.
//!
//! A namespace has no name: it lasts as long as this value and the programs in it, so nothing is left behind, however
//! the process ends.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a driver owns devices, namespaces, processes and threads"
)]

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::process::{Child, Command};

use nix::sched::{CloneFlags, setns, unshare};
use outflow_routes::Setup;
use outflow_socket::Tap;

use crate::limits::DEVICE_QUEUE;

/// What devices are called.
const DEVICES: &str = "emulate%d";

/// Bits that the addresses on a segment have in common, of IPv4 and of IPv6.
const NETWORK_BITS: [u8; 2] = [24, 64];

/// The loopback device is the first one of each namespace.
const LOOPBACK: u32 = 1;

/// Where an end is: the namespace that the process was in when it began, or one of its own.
#[derive(Debug)]
pub(crate) struct Space {
    /// If it has one of its own.
    namespace: Option<File>,
}

/// What a device leads to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behind {
    /// An end, by its addresses; or all there is, by the device's own.
    Addresses([IpAddr; 2]),
    /// A network that the device's addresses are of: 24 bits of IPv4, 64 of IPv6.
    Network,
}

impl Space {
    /// That of this thread.
    pub(crate) const fn here() -> Self {
        Space { namespace: None }
    }

    /// Makes a namespace.
    pub(crate) fn apart() -> io::Result<Self> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let namespace = File::open("/proc/thread-self/ns/net")?;
            Setup::open()?.switch_on(LOOPBACK, None)?;
            Ok(Space { namespace: Some(namespace) })
        };
        in_a_thread(make)
    }

    /// Makes a device there.
    pub(crate) fn device(&self) -> io::Result<Tap> {
        self.within(|| Tap::open(DEVICES))
    }

    /// Gives a device its addresses, and switches it on. The first one of a namespace of its own leads everywhere.
    pub(crate) fn set_up(
        &self,
        device: &Tap,
        addresses: [IpAddr; 2],
        behind: Behind,
        is_first: bool,
    ) -> io::Result<()> {
        self.within(|| {
            let mut setup = Setup::open()?;
            setup.switch_on(device.ifindex, Some(DEVICE_QUEUE))?;
            for (at, address) in addresses.into_iter().enumerate() {
                let added = match behind {
                    Behind::Addresses(others) => setup.add_address(device.ifindex, (address, others[at])),
                    Behind::Network => setup.add_network(device.ifindex, address, NETWORK_BITS[at]),
                };
                match added {
                    // A machine may be without IPv6.
                    Err(_) if address.is_ipv6() => continue,
                    added => added?,
                }
                if self.namespace.is_some() && is_first {
                    setup.lead_everywhere(device.ifindex, address)?;
                }
            }
            Ok(())
        })
    }

    /// Starts a program there.
    pub(crate) fn start(&self, program: &mut Command) -> io::Result<Child> {
        self.within(|| program.spawn())
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Some(namespace) = &self.namespace else { return work() };
        in_a_thread(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }
}

/// A thread that goes to another namespace ends there.
fn in_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
