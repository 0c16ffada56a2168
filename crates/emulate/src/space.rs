//! Ends: network namespaces with a device each.
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
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};

use nix::sched::{CloneFlags, setns, unshare};
use outflow_routes::Setup;
use outflow_socket::Tun;

use crate::limits::DEVICE_QUEUE;

/// What devices are called.
const DEVICES: &str = "emulate%d";

/// The loopback device is the first one of each namespace.
const LOOPBACK: u32 = 1;

/// An end: the namespace that the process was in when it began, or one of its own.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) tun: Tun,
    /// If it has one of its own.
    namespace: Option<File>,
}

impl Space {
    /// Makes a device where this thread is.
    pub(crate) fn here() -> io::Result<Self> {
        Ok(Space { tun: Tun::open(DEVICES)?, namespace: None })
    }

    /// Makes a namespace with a device.
    pub(crate) fn apart() -> io::Result<Self> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let namespace = File::open("/proc/thread-self/ns/net")?;
            Setup::open()?.switch_on(LOOPBACK, None)?;
            Ok(Space { tun: Tun::open(DEVICES)?, namespace: Some(namespace) })
        };
        in_a_thread(make)
    }

    /// Gives the device its addresses, and switches it on. In a namespace of its own it leads everywhere.
    pub(crate) fn set_up(&self, pairs: &[(IpAddr, IpAddr)]) -> io::Result<()> {
        let ifindex = self.tun.ifindex;
        self.within(|| {
            let mut setup = Setup::open()?;
            setup.switch_on(ifindex, Some(DEVICE_QUEUE))?;
            for pair in pairs {
                // A machine may be without IPv6.
                match setup.add_address(ifindex, *pair) {
                    Err(_) if pair.0.is_ipv6() => continue,
                    added => added?,
                }
                if self.namespace.is_some() {
                    setup.lead_everywhere(ifindex, pair.0)?;
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

/// The addresses of an end: `10.213.NETWORK.END`, and `fd6f:7574:666c:NETWORK::END`.
pub(crate) fn addresses(network: u8, end: u8) -> [IpAddr; 2] {
    let six = [0xfd6f, 0x7574, 0x666c, u16::from(network), 0, 0, 0, u16::from(end)];
    [Ipv4Addr::new(10, 213, network, end).into(), Ipv6Addr::from(six).into()]
}
