//! Sends the synthetic stream at its rate from a thread.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Shape, Synthetic, wall_nanos};
use crate::net::Namespace;

/// The synthetic stream on its way to an address, until dropped.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    sent: AtomicU32,
}

impl Sender {
    /// Begins to send raw transport stream datagrams from the namespace.
    pub fn start(namespace: &Namespace, to: SocketAddr, shape: Shape) -> Result<Self> {
        Self::start_from(namespace, (Ipv4Addr::UNSPECIFIED, 0).into(), to, shape)
    }

    /// The same from a chosen address.
    pub fn start_from(namespace: &Namespace, from: SocketAddr, to: SocketAddr, shape: Shape) -> Result<Self> {
        let socket = namespace.run(|| UdpSocket::bind(from))?;
        socket.connect(to)?;
        // No listener (ECONNREFUSED) is no reason to stop: the relay may come later.
        Ok(Self::spawn(shape, move |datagram| {
            let _nobody_listens = socket.send(datagram);
        }))
    }

    /// Publishes the same stream by HTTP PUT, with this for a user's name and password.
    pub fn put(namespace: &Namespace, to: SocketAddr, path: &str, user: &str, shape: Shape) -> Result<Self> {
        let mut socket = namespace.run(|| TcpStream::connect(to))?;
        socket.set_nodelay(true)?;
        // A body that never ends, for servers that take none in chunks.
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Basic {user}\r\n\
             Content-Type: video/mp2t\r\nContent-Length: {}\r\n\r\n",
            u64::MAX / 4
        );
        socket.write_all(head.as_bytes())?;
        Ok(Self::spawn(shape, move |datagram| {
            let _seen_by_what_is_lost = socket.write_all(datagram);
        }))
    }

    fn spawn(shape: Shape, out: impl FnMut(&[u8]) + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || send(out, shape, &theirs));
        Self { shared, thread: Some(thread) }
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u32 {
        self.shared.sent.load(Ordering::Acquire)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// One datagram at a time, each when it is due. Late ones follow at once: the rate is kept.
fn send(mut out: impl FnMut(&[u8]), shape: Shape, shared: &Shared) {
    let mut stream = Synthetic::new(shape);
    let began = Instant::now();
    let interval = Duration::from_secs_f64(1.0 / shape.datagrams_per_second());
    for number in 1u32.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let due = began + interval * (number - 1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        out(stream.next_datagram(wall_nanos()));
        shared.sent.store(number, Ordering::Release);
    }
}
