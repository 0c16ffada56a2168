//! What comes over each link.

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::socket::{LinkAddr, recvfrom, setsockopt, sockopt};
use outflow_rtp::RtpHeader;
use socket2::{Domain, Protocol, Socket, Type};

use super::source::{GROUPS, identity};
use super::tree::{LINKS, Tree};

/// IPv4 without options, and UDP.
const HEADERS: usize = 28;
const ETH_P_IP: u16 = 0x0800;

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
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..LINKS).map(|link| {
            let (namespace, _) = tree.end(link);
            let socket = namespace.run(|| {
                let protocol = Protocol::from(i32::from(ETH_P_IP.to_be()));
                let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
                socket.set_read_timeout(Some(Duration::from_millis(100)))?;
                setsockopt(&socket, sockopt::RcvBufForce, &(32 << 20))?;
                anyhow::Ok(socket)
            })?;
            let stop = Arc::clone(&stop);
            // Routers send from here, too: only what comes in by the link counts.
            let index = namespace.run(|| nix::net::if_::if_nametoindex(tree.end(link).1))?;
            anyhow::Ok(std::thread::spawn(move || watch(&socket, index as usize, &stop)))
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

fn watch(socket: &Socket, index: usize, stop: &AtomicBool) -> Vec<Seen> {
    let (mut seen, mut buffer) = (Vec::new(), [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) else { continue };
        let at = Instant::now();
        if length < HEADERS || from.is_none_or(|from| from.ifindex() != index) {
            continue;
        }
        let group = Ipv4Addr::new(buffer[16], buffer[17], buffer[18], buffer[19]);
        let Some(stream) = GROUPS.iter().position(|known| *known == group) else { continue };
        let packet = buffer[HEADERS..length].to_vec();
        if let Ok(identity) = identity(&packet) {
            seen.push(Seen { at, stream, identity, packet });
        }
    }
    seen
}
