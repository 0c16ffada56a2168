//! Joins an endpoint of the core to a socket and a clock: one task for all of its connections. Sockets share the
//! endpoint with it under a lock, which each holds for as long as it gives or takes some units.
#![allow(clippy::disallowed_types, reason = "whoever sends and whoever drives are different tasks")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outflow_media::Time;
use outflow_poc::connection::Transmit;
use outflow_poc::endpoint::{ConnectError, Endpoint, Handle, Notice};
use outflow_poc::packet::Mark;
use outflow_poc::secret::Secret;
use outflow_poc::service::{Request, Service};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Notify;

use crate::limits::{BATCHES_A_TURN, DATAGRAMS_A_TURN, PENDING_MAX};
use crate::udp::{Batch, Segments, Udp};

/// How long an end that nobody uses any more goes on to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a task that waits for a connection is woken by.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) readable: Notify,
    pub(crate) writable: Notify,
}

pub(crate) struct Inner {
    pub(crate) endpoint: Endpoint,
    pub(crate) waits: BTreeMap<Handle, Arc<Waits>>,
    /// Of those that are being connected, what came of it.
    pub(crate) connected: BTreeMap<Handle, Result<Service, ConnectError>>,
    pub(crate) asking: VecDeque<(Handle, SocketAddr, Request)>,
    /// Whether nobody uses it any more, since when.
    ended: Option<Instant>,
    /// What is wrong with the socket, if it had to be given up.
    error: Option<String>,
}

/// What the task and all sockets of an end share.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    start: Instant,
    /// Something is to be sent.
    wake: Notify,
    pub(crate) asked: Notify,
    pub(crate) udp: Udp,
}

/// Whoever uses the end; the task ends after the last one.
pub(crate) struct User(pub(crate) Arc<Shared>);

impl Drop for User {
    fn drop(&mut self) {
        self.0.lock().ended = Some(Instant::now());
        self.0.wake.notify_one();
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Time {
        // Not zero, which means "never" to some.
        Time::from_millis(1) + self.start.elapsed()
    }

    /// Something was changed that may have to be sent.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

impl Inner {
    /// Why nothing can come any more.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.error.as_ref().map(|error| io::Error::other(error.clone()))
    }

    fn follow(&mut self, asked: &Notify) {
        while let Some((handle, notice)) = self.endpoint.poll() {
            match notice {
                Notice::Asked { from, request } => {
                    if self.asking.len() == PENDING_MAX {
                        let code = outflow_poc::packet::Code::BUSY;
                        self.endpoint.refuse(handle, code, "too many ask at once; try again later");
                        continue;
                    }
                    self.asking.push_back((handle, from, request));
                    asked.notify_one();
                }
                Notice::Connected { service } => _ = self.connected.insert(handle, Ok(service)),
                Notice::Failed(error) => _ = self.connected.insert(handle, Err(error)),
                Notice::Ready => (),
            }
            if let Some(waits) = self.waits.get(&handle) {
                waits.readable.notify_one();
                waits.writable.notify_one();
            }
        }
    }
}

/// Begins an end: its task runs until the last [`User`] is gone.
pub(crate) fn begin(
    udp: Udp,
    make: impl FnOnce(Secret) -> Endpoint,
    datagram_bytes_max: usize,
) -> io::Result<Arc<User>> {
    let mut key = [0; 16];
    SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let inner = Inner {
        endpoint: make(Secret::new(key)),
        waits: BTreeMap::new(),
        connected: BTreeMap::new(),
        asking: VecDeque::new(),
        ended: None,
        error: None,
    };
    let shared = Arc::new(Shared {
        inner: Mutex::new(inner),
        start: Instant::now(),
        wake: Notify::new(),
        asked: Notify::new(),
        udp,
    });
    tokio::spawn(drive(Arc::clone(&shared), datagram_bytes_max));
    Ok(Arc::new(User(shared)))
}

async fn drive(shared: Arc<Shared>, datagram_bytes_max: usize) {
    let mut outbox = Outbox::default();
    let mut batch = Batch::new(datagram_bytes_max);
    loop {
        // What has come is read before it is said that it did not come in time: this task may have been kept.
        for _ in 0..BATCHES_A_TURN {
            match shared.udp.try_recv(&mut batch) {
                Ok(_) => shared.take(&mut batch),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return shared.give_up(&error),
            }
        }
        let turn = shared.turn(&mut outbox);
        if let Err(error) = outbox.send(&shared.udp).await {
            return shared.give_up(&error);
        }
        let until = match turn {
            Turn::Over => return,
            // Others have their turn, and what has come is read.
            Turn::More => shared.start.elapsed(),
            Turn::Wait(until) => until,
        };
        let due = tokio::time::Instant::from_std(shared.start + until);
        tokio::select! {
            ready = shared.udp.readable() => if let Err(error) = ready {
                return shared.give_up(&error);
            },
            () = shared.wake.notified() => (),
            () = tokio::time::sleep_until(due) => (),
        }
    }
}

enum Turn {
    /// There is more to send.
    More,
    /// Until then, since the start.
    Wait(Duration),
    Over,
}

impl Shared {
    /// Does what is due, and takes out what is to be sent.
    fn turn(&self, outbox: &mut Outbox) -> Turn {
        let mut inner = self.lock();
        let now = self.now();
        inner.endpoint.handle_timeout(now);
        outbox.fill(|out| inner.endpoint.poll_transmit(now, out));
        inner.follow(&self.asked);
        let is_over = |since: Instant| inner.endpoint.is_empty() || since.elapsed() >= GOODBYE;
        if inner.ended.is_some_and(is_over) && outbox.is_empty() {
            return Turn::Over;
        }
        if !outbox.is_empty() {
            return Turn::More;
        }
        let soon = inner.ended.map_or(Duration::from_secs(1), |_| Duration::from_millis(10));
        let next = inner.endpoint.next_timeout();
        // A millisecond was added to the clock.
        let at = next.map(|next| next.since(Time::from_millis(1)));
        let most = self.start.elapsed() + soon;
        Turn::Wait(at.map_or(most, |at| at.min(most)))
    }

    fn take(&self, batch: &mut Batch) {
        let mut inner = self.lock();
        let now = self.now();
        for received in batch.iter() {
            inner.endpoint.handle_datagram(now, received.from, received.mark, received.bytes);
        }
        inner.follow(&self.asked);
    }

    fn give_up(&self, error: &io::Error) {
        let mut inner = self.lock();
        inner.error = Some(format!("the socket failed: {error}"));
        for waits in inner.waits.values() {
            waits.readable.notify_one();
            waits.writable.notify_one();
        }
        drop(inner);
        self.asked.notify_one();
    }
}

/// Datagrams in the order in which they are sent; equal ones to one receiver in one piece.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    datagram: Vec<u8>,
}

struct Piece {
    to: SocketAddr,
    mark: Mark,
    segment_bytes: usize,
    from: usize,
    end: usize,
    /// Whether the last one is shorter, so that none can be behind it.
    is_closed: bool,
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn fill(&mut self, mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) {
        self.bytes.clear();
        self.pieces.clear();
        for _ in 0..DATAGRAMS_A_TURN {
            let Some(transmit) = poll(&mut self.datagram) else { break };
            self.add(transmit);
        }
    }

    fn add(&mut self, transmit: Transmit) {
        let (from, length) = (self.bytes.len(), self.datagram.len());
        self.bytes.extend_from_slice(&self.datagram);
        let end = self.bytes.len();
        let joins = |piece: &Piece| {
            let is_alike = piece.to == transmit.to && piece.mark == transmit.mark;
            is_alike && !piece.is_closed && length <= piece.segment_bytes
        };
        match self.pieces.last_mut().filter(|piece| joins(piece)) {
            Some(piece) => {
                piece.end = end;
                piece.is_closed = length < piece.segment_bytes;
            }
            None => {
                let Transmit { to, mark } = transmit;
                self.pieces.push(Piece { to, mark, segment_bytes: length, from, end, is_closed: false });
            }
        }
    }

    async fn send(&self, udp: &Udp) -> io::Result<()> {
        for piece in &self.pieces {
            let Piece { to, mark, segment_bytes, from, end, .. } = *piece;
            let bytes = &self.bytes[from..end];
            udp.send(&Segments { to, from: None, mark, segment_bytes, bytes }).await?;
        }
        Ok(())
    }
}
