//! What crosses the links of the tree: every packet of media that comes in at a relay from above.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout};
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
};
use nix::sys::time::TimeVal;
use outflow_labs::net::Namespace;

use crate::scene::UP;
use crate::source::Stamp;

/// Room for what comes while the machine does something else.
const BUFFER: usize = 16 << 20;
/// How often it checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A packet that came over a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossed {
    pub(crate) stamp: Stamp,
    pub(crate) at: Instant,
}

/// Looks at a link, until dropped.
#[derive(Debug)]
pub(crate) struct Wire {
    seen: Arc<Mutex<Vec<Crossed>>>,
    bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    /// Looks at the link above a relay from now on.
    pub(crate) fn watch(namespace: &Namespace) -> Result<Self> {
        let (index, socket) = namespace.run(|| -> Result<_> {
            let all_ip = SockProtocol::EthIp;
            let socket = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::empty(), all_ip)?;
            Ok((if_nametoindex(UP)? as usize, socket))
        })?;
        setsockopt(&socket, RcvBufForce, &BUFFER).context("cannot set the size of a buffer")?;
        setsockopt(&socket, ReceiveTimeout, &TimeVal::new(0, LOOK_EVERY.subsec_micros().into()))?;
        let (seen, bytes) = (Arc::<Mutex<Vec<Crossed>>>::default(), Arc::<AtomicU64>::default());
        let stop = Arc::<AtomicBool>::default();
        let (theirs, count, ends) = (Arc::clone(&seen), Arc::clone(&bytes), Arc::clone(&stop));
        let look = move || {
            let mut buffer = vec![0; 1 << 16];
            while !ends.load(Ordering::Relaxed) {
                let Ok((length, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) else {
                    continue;
                };
                if from.is_none_or(|from| from.ifindex() != index) {
                    continue;
                }
                let at = Instant::now();
                count.fetch_add(length as u64, Ordering::Relaxed);
                let stamps = Stamp::all_in(&buffer[..length]);
                let mut seen = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                seen.extend(stamps.into_iter().map(|stamp| Crossed { stamp, at }));
            }
        };
        Ok(Self { seen, bytes, stop, thread: Some(std::thread::spawn(look)) })
    }

    /// All that came so far.
    pub(crate) fn seen(&self) -> Vec<Crossed> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Bytes of IP that came so far, whatever they are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
