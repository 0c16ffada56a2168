//! One exchange: what is said to a router through a raw socket, and when what was on the wire.

use std::io::{ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::libc::{ETH_P_ALL, IPPROTO_IGMP, IPPROTO_RAW};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use outflow_routing::membership::Version;
use outflow_routing::membership::packet::{QueryHead, emit_leave, emit_old_report, emit_query};
use socket2::{Domain, Protocol, Socket, Type};

const QUERY: u8 = 0x11;
const LEAVE: u8 = 0x17;
/// How long an answer may take. Routers ask a second time after a second.
const PATIENCE: Duration = Duration::from_millis(900);
/// How long a router has to note that a host has joined.
const SETTLED: Duration = Duration::from_millis(2);
/// A router with a higher address than the one that is measured.
const LOSER: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 250);

/// What is said to a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A host leaves.
    Leave,
    /// A router asks that loses the election, and a host leaves.
    Election,
}

/// The far end of a router's link, with as many hosts as there are names for.
#[derive(Debug)]
pub(crate) struct FarEnd {
    raw: Socket,
    wire: Socket,
    packet: Vec<u8>,
}

/// A packet of IGMP that was on the wire.
struct Seen {
    code: u8,
    source: Ipv4Addr,
    group: Ipv4Addr,
    at_ns: u64,
}

impl FarEnd {
    /// Opens the sockets, in the namespace that this is called in. `address` is its interface's.
    pub(crate) fn open(address: Ipv4Addr) -> Result<Self> {
        // With the header included; nothing comes by it.
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(IPPROTO_RAW)))?;
        raw.set_multicast_if_v4(&address)?;
        raw.set_multicast_loop_v4(false)?;
        // What goes out is shown to sockets of all protocols only.
        let all = i32::from((ETH_P_ALL as u16).to_be());
        let wire = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(all)))?;
        wire.set_read_timeout(Some(PATIENCE))?;
        setsockopt(&wire, sockopt::ReceiveTimestampns, &true)?;
        Ok(FarEnd { raw, wire, packet: Vec::new() })
    }

    /// A host joins a group, and leaves it: the time until the router's question whether there are others. None
    /// if it did not come.
    pub(crate) fn exchange(
        &mut self,
        kind: Kind,
        host: Ipv4Addr,
        group: Ipv4Addr,
    ) -> Result<Option<Duration>> {
        emit_old_report(Version::V2, host.into(), group.into(), &mut self.packet);
        self.send(group)?;
        std::thread::sleep(SETTLED);
        self.wire.set_nonblocking(true)?;
        while self.next()?.is_some() {}
        self.wire.set_nonblocking(false)?;
        if kind == Kind::Election {
            let to = emit_query(&losing_query(), LOSER.into(), [], &mut self.packet);
            self.send(v4(to)?)?;
        }
        emit_leave(host.into(), group.into(), &mut self.packet);
        self.send(Ipv4Addr::new(224, 0, 0, 2))?;
        self.answer(kind, host, group)
    }

    /// From what was said to the answer.
    fn answer(&mut self, kind: Kind, host: Ipv4Addr, group: Ipv4Addr) -> Result<Option<Duration>> {
        let (until, mut began) = (Instant::now() + PATIENCE, None);
        while Instant::now() < until {
            let Some(seen) = self.next()? else { break };
            let is_first = match kind {
                Kind::Leave => seen.code == LEAVE && seen.source == host && seen.group == group,
                Kind::Election => seen.code == QUERY && seen.source == LOSER,
            };
            if is_first {
                began = Some(seen.at_ns);
            } else if seen.code == QUERY && seen.group == group {
                let began = began.context("the kernel did not show what was sent")?;
                return Ok(Some(Duration::from_nanos(seen.at_ns.saturating_sub(began))));
            }
        }
        Ok(None)
    }

    fn send(&self, to: Ipv4Addr) -> Result<()> {
        self.raw.send_to(&self.packet, &SocketAddr::from((to, 0)).into()).context("the raw socket")?;
        Ok(())
    }

    /// The next packet of IGMP; none if none came in time.
    fn next(&self) -> Result<Option<Seen>> {
        let mut bytes = [0; 256];
        loop {
            let mut control = nix::cmsg_space!(nix::libc::timespec);
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let fd = self.wire.as_raw_fd();
            let message = match recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty()) {
                Ok(message) => message,
                Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).context("the packet socket"),
            };
            let at_ns = message.cmsgs()?.find_map(|part| match part {
                ControlMessageOwned::ScmTimestampns(at) => {
                    Some((at.tv_sec() * 1_000_000_000 + at.tv_nsec()) as u64)
                }
                _ => None,
            });
            let length = message.bytes;
            if let Some(seen) = read(&bytes[..length], at_ns.context("the kernel said no time")?) {
                return Ok(Some(seen));
            }
        }
    }
}

fn read(packet: &[u8], at_ns: u64) -> Option<Seen> {
    let address = |bytes: &[u8]| bytes.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
    let head = packet.first_chunk::<20>().filter(|head| i32::from(head[9]) == IPPROTO_IGMP)?;
    let message = packet.get(usize::from(head[0] & 0xf) * 4..)?;
    Some(Seen {
        code: *message.first()?,
        source: address(&head[12..])?,
        group: address(message.get(4..)?)?,
        at_ns,
    })
}

/// What another router asks that is as configured as the RFC recommends.
const fn losing_query() -> QueryHead {
    QueryHead {
        version: Version::V3,
        group: None,
        max_response: Duration::from_secs(10),
        suppress: false,
        robustness: 2,
        interval: Duration::from_secs(125),
    }
}

fn v4(address: IpAddr) -> Result<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => anyhow::bail!("queries of IPv4 go to IPv4"),
    }
}
