//! Joins an endpoint of the core to a socket and a clock: one task for all of its connections. Sockets share the
//! endpoint with it under a lock, which each holds for as long as it gives or takes some units.
#![allow(clippy::disallowed_types, reason = "whoever sends and whoever drives are different tasks")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
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
use crate::own::OwnAddresses;
use crate::udp::{Batch, Segments, Udp};

/// How long an end that nobody uses any more goes on to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Who sends something so long after what was sent before sends it at once; else there may be more, which goes by
/// one system call.
const ALONE: Duration = Duration::from_micros(100);

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
    /// What the socket did not take yet.
    outbox: Outbox,
    /// When something was sent last.
    flushed_at: Time,
    /// When the task looks again by itself.
    sleeps_until: Time,
}

/// What the task and all sockets of an end share.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    start: Instant,
    /// Something is to be sent.
    wake: Notify,
    pub(crate) asked: Notify,
    pub(crate) udp: Udp,
    /// Whether answers go from the address that was asked. A client that moves gets another one.
    answers_alike: bool,
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
                // Who was told that there is no room is woken when there is, and not before.
                let connection = self.endpoint.connection(handle);
                if connection.is_none_or(|connection| connection.is_closed() || !connection.is_blocked()) {
                    waits.writable.notify_one();
                }
            }
        }
    }
}

/// Begins an end: its task runs until the last [`User`] is gone.
pub(crate) fn begin(
    udp: Udp,
    make: impl FnOnce(Secret) -> Endpoint,
    (datagram_bytes_max, is_server): (usize, bool),
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
        outbox: Outbox::default(),
        flushed_at: Time::ZERO,
        sleeps_until: Time::ZERO,
    };
    let shared = Arc::new(Shared {
        inner: Mutex::new(inner),
        start: Instant::now(),
        wake: Notify::new(),
        asked: Notify::new(),
        answers_alike: is_server && udp.local_addr().ip().is_unspecified(),
        udp,
    });
    tokio::spawn(drive(Arc::clone(&shared), datagram_bytes_max));
    Ok(Arc::new(User(shared)))
}

async fn drive(shared: Arc<Shared>, datagram_bytes_max: usize) {
    let mut batch = Batch::new(datagram_bytes_max);
    let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        // What has come is read before it is said that it did not come in time: this task may have been kept.
        for _ in 0..BATCHES_A_TURN {
            match shared.udp.try_recv(&mut batch) {
                Ok(_) => shared.take(&mut batch),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return shared.give_up(&error),
            }
        }
        let (until, is_full) = match shared.turn() {
            Ok(Turn::Over) => return,
            // Others have their turn, and what has come is read.
            Ok(Turn::More) => {
                tokio::task::yield_now().await;
                continue;
            }
            Ok(Turn::Wait { until, is_full }) => (until, is_full),
            Err(error) => return shared.give_up(&error),
        };
        let due = tokio::time::Instant::from_std(shared.start + until);
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        tokio::select! {
            ready = shared.udp.readable() => if let Err(error) = ready {
                return shared.give_up(&error);
            },
            ready = shared.udp.writable(), if is_full => if let Err(error) = ready {
                return shared.give_up(&error);
            },
            () = shared.wake.notified() => (),
            () = sleep.as_mut() => (),
        }
    }
}

enum Turn {
    /// There is more to send.
    More,
    /// Until then, since the start; or, if the socket was full, until it is not.
    Wait {
        until: Duration,
        is_full: bool,
    },
    Over,
}

/// What is left to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// As much as goes in a turn has gone.
    Some,
    /// The socket takes no more.
    Full,
}

impl Shared {
    /// Does what is due, and sends what may go.
    fn turn(&self) -> io::Result<Turn> {
        let mut inner = self.lock();
        let now = self.now();
        inner.endpoint.handle_timeout(now);
        let left = self.flush(&mut inner, now)?;
        inner.follow(&self.asked);
        let is_over = |since: Instant| inner.endpoint.is_empty() || since.elapsed() >= GOODBYE;
        if inner.ended.is_some_and(is_over) && left == Left::Nothing {
            return Ok(Turn::Over);
        }
        if left == Left::Some {
            return Ok(Turn::More);
        }
        let soon = inner.ended.map_or(Duration::from_secs(1), |_| Duration::from_millis(10));
        let until = inner.endpoint.next_timeout().map_or(now + soon, |at| at.min(now + soon));
        inner.sleeps_until = until;
        // A millisecond was added to the clock.
        Ok(Turn::Wait { until: until.since(Time::from_millis(1)), is_full: left == Left::Full })
    }

    /// Sends what may go now: what the socket did not take before, and as much as goes in a turn.
    fn flush(&self, inner: &mut Inner, now: Time) -> io::Result<Left> {
        inner.flushed_at = now;
        let Inner { endpoint, outbox, .. } = inner;
        if !outbox.is_empty() && !outbox.send(&self.udp)? {
            return Ok(Left::Full);
        }
        outbox.fill(|out| endpoint.poll_transmit(now, out));
        match outbox.send(&self.udp)? {
            false => Ok(Left::Full),
            true if outbox.datagrams < DATAGRAMS_A_TURN => Ok(Left::Nothing),
            true => Ok(Left::Some),
        }
    }

    /// Whoever has changed something sends what may go because of it, unless much goes: that goes together. The
    /// task is woken for what it does not know of.
    pub(crate) fn act(&self, mut inner: MutexGuard<'_, Inner>) {
        let now = self.now();
        let is_lone = now.since(inner.flushed_at) >= ALONE && inner.outbox.is_empty();
        // What is wrong with the socket, the task will notice, too.
        let is_sent = is_lone && self.flush(&mut inner, now).is_ok_and(|left| left == Left::Nothing);
        inner.follow(&self.asked);
        let is_sooner = inner.endpoint.next_timeout().is_some_and(|at| at < inner.sleeps_until);
        drop(inner);
        if !is_sent || is_sooner {
            self.wake.notify_one();
        }
    }

    fn take(&self, batch: &mut Batch) {
        let mut inner = self.lock();
        let now = self.now();
        for received in batch.iter() {
            if let Some(own) = received.to.filter(|_| self.answers_alike) {
                inner.outbox.own.note(received.from, own);
            }
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
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Pieces that have gone, and bytes of the one behind them.
    sent: (usize, usize),
    datagrams: usize,
    datagram: Vec<u8>,
    own: OwnAddresses,
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
        self.sent.0 >= self.pieces.len()
    }

    fn fill(&mut self, mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) {
        self.bytes.clear();
        self.pieces.clear();
        (self.sent, self.datagrams) = ((0, 0), 0);
        while self.datagrams < DATAGRAMS_A_TURN {
            let Some(transmit) = poll(&mut self.datagram) else { break };
            self.add(transmit);
            self.datagrams += 1;
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

    /// Whether all have gone; if not, the rest goes on when the socket takes more.
    fn send(&mut self, udp: &Udp) -> io::Result<bool> {
        while let Some(piece) = self.pieces.get(self.sent.0) {
            let Piece { to, mark, segment_bytes, from, end, .. } = *piece;
            let bytes = &self.bytes[from + self.sent.1..end];
            match udp.try_send(&Segments { to, from: self.own.of(to), mark, segment_bytes, bytes }) {
                Ok(count) => self.sent.1 += count * segment_bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if from + self.sent.1 >= end {
                self.sent = (self.sent.0 + 1, 0);
            }
        }
        Ok(true)
    }
}
