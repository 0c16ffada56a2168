//! Sends the synthetic stream at its rate from a thread.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::{Shape, Synthetic, wall_nanos};
use crate::net::Namespace;

/// How long what it publishes to may take to take a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The synthetic stream on its way to an address, until dropped.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Shared>,
    /// By which it publishes, if it does so by a connection.
    connection: Option<TcpStream>,
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
        Ok(Self::spawn(shape, Synthetic::new(shape), None, move |datagram| {
            let _nobody_listens = socket.send(datagram);
        }))
    }

    /// Publishes the same stream by HTTP PUT, with this for a user's name and password.
    pub fn put(namespace: &Namespace, to: SocketAddr, path: &str, user: &str, shape: Shape) -> Result<Self> {
        Self::put_from_group(namespace, to, path, user, shape, 0)
    }

    /// The same from this group of pictures on.
    pub fn put_from_group(
        namespace: &Namespace,
        to: SocketAddr,
        path: &str,
        user: &str,
        shape: Shape,
        group: u32,
    ) -> Result<Self> {
        let mut socket = namespace.run(|| TcpStream::connect_timeout(&to, CONNECT_WITHIN))?;
        socket.set_nodelay(true)?;
        // A body that never ends, for servers that take none in chunks.
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Basic {user}\r\n\
             Content-Type: video/mp2t\r\nContent-Length: {}\r\n\r\n",
            u64::MAX / 4
        );
        socket.write_all(head.as_bytes())?;
        let (stream, connection) = (Synthetic::from_group(shape, group), socket.try_clone()?);
        Ok(Self::spawn(shape, stream, Some(connection), move |datagram| {
            let _seen_by_what_is_lost = socket.write_all(datagram);
        }))
    }

    pub(super) fn spawn(
        shape: Shape,
        stream: Synthetic,
        connection: Option<TcpStream>,
        out: impl FnMut(&[u8]) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), sent: AtomicU32::new(stream.number()) });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || send(out, shape, stream, &theirs));
        Self { shared, connection, thread: Some(thread) }
    }

    /// Datagrams sent so far, with those before the first group of pictures that was sent.
    pub fn sent(&self) -> u32 {
        self.shared.sent.load(Ordering::Acquire)
    }

    /// Its end of the connection by which it publishes.
    pub fn address(&self) -> Option<SocketAddr> {
        self.connection.as_ref()?.local_addr().ok()
    }

    /// Whether what it publishes to has answered: it does so when it takes no more.
    pub fn is_refused(&self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let waits = |socket: &TcpStream| recv(socket.as_raw_fd(), &mut [0], flags) == Err(Errno::EAGAIN);
        self.connection.as_ref().is_some_and(|socket| !waits(socket))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // It may be about to write to one that takes no more.
        if let Some(connection) = &self.connection {
            let _gone_already = connection.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// One datagram at a time, each when it is due. Late ones follow at once: the rate is kept.
fn send(mut out: impl FnMut(&[u8]), shape: Shape, mut stream: Synthetic, shared: &Shared) {
    let began = Instant::now();
    let interval = Duration::from_secs_f64(1.0 / shape.datagrams_per_second());
    for number in 0u32.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let due = began + interval * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        out(stream.next_datagram(wall_nanos()));
        shared.sent.store(stream.number(), Ordering::Release);
    }
}
