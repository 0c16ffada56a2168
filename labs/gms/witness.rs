//! What comes over each link.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::socket::{LinkAddr, recvfrom, setsockopt, sockopt};
use outflow_routing::membership::Family;
use outflow_rtp::RtpHeader;
use socket2::{Domain, Protocol, Socket, Type};

use super::source::{STREAMS, groups, identity};
use super::tree::{LINKS, Tree};

const UDP_HEADER: usize = 8;

/// The protocol of a link that carries a family.
const fn ethertype(family: Family) -> u16 {
    match family {
        Family::V4 => 0x0800,
        Family::V6 => 0x86dd,
    }
}

/// The group that a packet without options goes to, and what is behind its headers.
fn read(family: Family, packet: &[u8]) -> Option<(IpAddr, &[u8])> {
    let (group, header) = match family {
        Family::V4 => (IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?), 20),
        Family::V6 => (IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?), 40),
    };
    Some((group, packet.get(header + UDP_HEADER..)?))
}

/// A packet that came over a link.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) stream: usize,
    pub(crate) identity: u64,
    /// The RTP packet.
    pub(crate) packet: Vec<u8>,
}

impl Seen {
    /// Whether a picture ends with it.
    pub(crate) fn ends(&self) -> bool {
        RtpHeader::new_checked(&self.packet).is_ok_and(|read| read.marker())
    }
}

/// Looks at all links.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Seen>>>,
}

impl Witness {
    pub(crate) fn start(tree: &Tree) -> Result<Self> {
        let (stop, family) = (Arc::new(AtomicBool::new(false)), tree.family);
        let threads = (0..LINKS).map(|link| {
            let (namespace, _) = tree.end(link);
            let socket = namespace.run(|| {
                let protocol = Protocol::from(i32::from(ethertype(family).to_be()));
                let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
                socket.set_read_timeout(Some(Duration::from_millis(100)))?;
                setsockopt(&socket, sockopt::RcvBufForce, &(32 << 20))?;
                anyhow::Ok(socket)
            })?;
            let stop = Arc::clone(&stop);
            // Routers send from here, too: only what comes in by the link counts.
            let index = namespace.run(|| nix::net::if_::if_nametoindex(tree.end(link).1))?;
            anyhow::Ok(std::thread::spawn(move || watch((&socket, family), index as usize, &stop)))
        });
        let threads = threads.collect::<Result<Vec<_>>>()?;
        Ok(Witness { stop, threads })
    }

    /// What came over each link.
    pub(crate) fn stop(self) -> Result<Vec<Vec<Seen>>> {
        self.stop.store(true, Ordering::Relaxed);
        let join = |thread: JoinHandle<_>| thread.join().map_err(|_| anyhow::anyhow!("a witness panicked"));
        self.threads.into_iter().map(join).collect()
    }
}

fn watch((socket, family): (&Socket, Family), index: usize, stop: &AtomicBool) -> Vec<Seen> {
    let groups: [IpAddr; STREAMS] = groups(family);
    let (mut seen, mut buffer) = (Vec::new(), [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) else { continue };
        let at = Instant::now();
        if from.is_none_or(|from| from.ifindex() != index) {
            continue;
        }
        let Some((group, packet)) = read(family, &buffer[..length]) else { continue };
        let Some(stream) = groups.iter().position(|known| *known == group) else { continue };
        if let Ok(identity) = identity(packet) {
            seen.push(Seen { at, stream, identity, packet: packet.to_vec() });
        }
    }
    seen
}
