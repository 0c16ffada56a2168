//! What goes over an interface, as packets of IGMP.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::libc::{ETH_P_ALL, IPPROTO_IGMP, IPPROTO_UDP};
use nix::sys::socket::{LinkAddr, recvfrom, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};

use crate::net::Namespace;
use crate::relay::PATIENCE;

pub(crate) const QUERY: u8 = 0x11;
pub(crate) const REPORT_V2: u8 = 0x16;
pub(crate) const LEAVE: u8 = 0x17;
pub(crate) const REPORT_V3: u8 = 0x22;

/// A packet of IGMP.
#[derive(Debug, Clone)]
pub(crate) struct Igmp {
    pub(crate) code: u8,
    pub(crate) source: Ipv4Addr,
    /// Of a report of version 3 this means nothing.
    pub(crate) group: Ipv4Addr,
    /// All of it, from the IP header on.
    pub(crate) bytes: Vec<u8>,
}

impl Igmp {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let address = |bytes: &[u8]| bytes.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
        let head = bytes.first_chunk::<20>().filter(|head| i32::from(head[9]) == IPPROTO_IGMP)?;
        let message = bytes.get(usize::from(head[0] & 0xf) * 4..)?;
        let (code, source, group) = (*message.first()?, address(&head[12..])?, address(message.get(4..)?)?);
        Some(Igmp { code, source, group, bytes: bytes.to_vec() })
    }

    /// The message behind the IP header.
    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes[usize::from(self.bytes[0] & 0xf) * 4..]
    }
}

/// A socket that hears what goes over an interface, both ways.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    index: u32,
}

impl Wire {
    /// Listens from now on.
    pub(crate) fn listen(namespace: &Namespace, device: &str) -> Self {
        // What goes out is shown to sockets of all protocols only.
        let all = i32::from((ETH_P_ALL as u16).to_be());
        namespace.run(|| {
            let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(all)));
            let socket = socket.expect("a packet socket");
            socket.set_read_timeout(Some(Duration::from_millis(100))).expect("an option");
            setsockopt(&socket, sockopt::RcvBufForce, &(32 << 20)).expect("an option");
            let index = nix::net::if_::if_nametoindex(device).expect("an interface");
            Wire { socket, index }
        })
    }

    /// Waits for a packet, leaving out others.
    pub(crate) fn wait(&self, what: &str, is_it: impl Fn(&Igmp) -> bool) -> Igmp {
        let (end, mut others) = (Instant::now() + PATIENCE, Vec::new());
        while Instant::now() < end {
            match self.next() {
                Some(packet) if is_it(&packet) => return packet,
                other => others.extend(other),
            }
        }
        panic!("{what}: did not come, but {others:?}");
    }

    /// How many datagrams to a group have gone over each interface of the namespace, by its index.
    pub(crate) fn datagrams(&self, group: Ipv4Addr) -> BTreeMap<u32, usize> {
        let mut found = BTreeMap::new();
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut bytes) {
            let packet = &bytes[..length];
            let is_it =
                length >= 20 && i32::from(packet[9]) == IPPROTO_UDP && packet[16..20] == group.octets();
            let index = from.and_then(|from| u32::try_from(from.ifindex()).ok());
            if let Some(index) = index.filter(|_| is_it) {
                *found.entry(index).or_default() += 1;
            }
        }
        found
    }

    /// All packets that have gone over it, from their IP header on.
    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.read()).flatten().collect()
    }

    /// The next packet, if one comes soon.
    pub(crate) fn next(&self) -> Option<Igmp> {
        Igmp::parse(&self.read()??)
    }

    /// A packet, if one comes soon, and if it is of this interface.
    fn read(&self) -> Option<Option<Vec<u8>>> {
        let mut bytes = [0; 2048];
        let (length, from) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut bytes).ok()?;
        let is_here = from.is_some_and(|from| from.ifindex() == self.index as usize);
        Some(is_here.then(|| bytes[..length].to_vec()))
    }
}
