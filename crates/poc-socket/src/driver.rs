//! Joins an endpoint of the core to a socket and a clock: one task for all of its connections. Sockets share the
//! endpoint with it under a lock, which each holds for as long as it gives or takes some units.
#![allow(clippy::disallowed_types, reason = "what sends and what drives are different tasks")]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use outflow_media::Time;
use outflow_petri::service::{Request, Service};
use outflow_poc::connection::Connection;
use outflow_poc::endpoint::{ConnectError, Endpoint, Handle, Notice};
use outflow_poc::secret::Secret;
use outflow_udp::limits::DATAGRAMS_A_TURN;
use outflow_udp::{Batch, HandedOver, Outbox, Outgoing, OwnAddresses, Udp};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Notify;

use crate::detached::Routes;
use crate::limits::{BATCHES_A_TURN, PENDING_MAX, PENDING_OF_ADDRESS_MAX};

/// How long an end without users goes on to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// A user that sends this long after the last send sends at once; else there may be more, which goes by
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
    /// Since when it has no user any more, if so.
    ended: Option<Instant>,
    /// What is wrong with the socket, if it had to be given up.
    error: Option<String>,
    /// What the socket did not take yet.
    pub(crate) outbox: Outbox,
    /// By which own addresses peers were reached.
    pub(crate) owns: OwnAddresses,
    datagram: Vec<u8>,
    /// To connections that are driven elsewhere.
    pub(crate) routes: Routes,
    /// When something was sent last.
    flushed_at: Time,
    /// When the task looks again by itself.
    sleeps_until: Time,
    stage: Stage,
}

/// Whether an end does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Runs,
    /// It is to stand still as soon as all has gone that may go now.
    Halts,
    /// It reads and sends nothing, and no time passes for it.
    Stands,
    /// Another process goes on with it.
    Gone,
}

/// What the task and all sockets of an end share.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    start: Instant,
    /// Something is to be sent.
    wake: Notify,
    /// It stands still.
    stood: Notify,
    pub(crate) asked: Notify,
    pub(crate) udp: Arc<Udp>,
    /// Connections that come back from elsewhere: each once, so that no more wait than there are connections.
    returns: mpsc::Sender<(Handle, Box<Connection>)>,
    /// Whether answers go from the address that was asked. A client that moves gets another one.
    answers_alike: bool,
}

/// A user of the end; the task ends after the last one.
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

    /// What is to be added to a time that counts from `epoch`, in nanoseconds.
    pub(crate) fn ahead_of(&self, epoch: Instant) -> i64 {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let later = nanos(epoch.saturating_duration_since(self.start));
        let sooner = nanos(self.start.saturating_duration_since(epoch));
        later - sooner + 1_000_000
    }

    /// Stands still, until it is to go on or another process does. Answers whether it does: it does not if the socket
    /// has failed.
    pub(crate) async fn stand(&self) -> bool {
        {
            let mut inner = self.lock();
            if inner.stage == Stage::Runs {
                inner.stage = Stage::Halts;
            }
        }
        self.wake.notify_one();
        loop {
            {
                let inner = self.lock();
                if inner.error.is_some() || inner.stage == Stage::Stands {
                    return inner.error.is_none();
                }
            }
            self.stood.notified().await;
        }
    }

    /// Goes on after it has stood still.
    pub(crate) fn go_on(&self) {
        let mut inner = self.lock();
        inner.stage = Stage::Runs;
        inner.wake_all();
        drop(inner);
        self.wake.notify_one();
    }

    /// Another process goes on: nothing is sent here any more, and those that wait for something are told.
    pub(crate) fn vanish(&self) {
        self.lock().stage = Stage::Gone;
        self.end_with("another process goes on with the connections".to_owned());
        self.wake.notify_one();
    }

    /// Waits until it may go on. Answers whether it does.
    async fn rest(&self) -> bool {
        loop {
            let stage = self.lock().stage;
            match stage {
                Stage::Runs => return true,
                Stage::Gone => return false,
                Stage::Halts | Stage::Stands => self.wake.notified().await,
            }
        }
    }

    /// A connection that was elsewhere is not needed any more: it is ended here.
    pub(crate) fn put_back(&self, handle: Handle, connection: Box<Connection>) {
        // If the task has ended, the socket has, too.
        let _ = self.returns.send((handle, connection));
        self.wake.notify_one();
    }
}

impl Inner {
    /// Why nothing can come any more.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.error.as_ref().map(|error| io::Error::other(error.clone()))
    }

    /// Whether nothing is read or sent.
    pub(crate) fn is_still(&self) -> bool {
        matches!(self.stage, Stage::Stands | Stage::Gone)
    }

    /// Whether it stands still, and may go on.
    pub(crate) fn stands(&self) -> bool {
        self.stage == Stage::Stands
    }

    /// All that wait for a connection look again.
    fn wake_all(&self) {
        for waits in self.waits.values() {
            waits.readable.notify_one();
            waits.writable.notify_one();
        }
    }

    fn follow(&mut self, asked: &Notify) {
        while let Some((handle, notice)) = self.endpoint.poll() {
            match notice {
                Notice::Asked { from, request } => {
                    if !has_room(self.asking.iter().map(|(_, from, _)| from.ip()), from.ip()) {
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
                // A sender told that there is no room is woken when there is, and not before.
                let connection = self.endpoint.connection(handle);
                if connection.is_none_or(|connection| connection.is_closed() || !connection.is_blocked()) {
                    waits.writable.notify_one();
                }
            }
        }
    }
}

/// Whether one more client from there may wait to be looked at beside these.
fn has_room(waiting: impl ExactSizeIterator<Item = IpAddr>, from: IpAddr) -> bool {
    let has_place = waiting.len() < PENDING_MAX;
    has_place && waiting.filter(|other| host(*other) == host(from)).count() < PENDING_OF_ADDRESS_MAX
}

/// What counts as one host: of IPv6, the network of 64 bits that it may have all of.
fn host(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
    }
}

/// Begins an end: its task runs until the last [`User`] is gone.
pub(crate) fn begin(
    udp: Udp,
    make: impl FnOnce(Secret) -> Endpoint,
    how: (usize, bool),
) -> io::Result<Arc<User>> {
    let mut key = [0; 16];
    SystemRandom::new().fill(&mut key).map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(End::new(udp, make(Secret::new(key)), Instant::now(), how).begin())
}

/// An end that nothing drives yet.
pub(crate) struct End {
    pub(crate) user: Arc<User>,
    returned: mpsc::Receiver<(Handle, Box<Connection>)>,
    datagram_bytes_max: usize,
}

impl End {
    /// Its time counts from `start` on.
    pub(crate) fn new(
        udp: Udp,
        endpoint: Endpoint,
        start: Instant,
        (datagram_bytes_max, is_server): (usize, bool),
    ) -> Self {
        let inner = Inner {
            endpoint,
            waits: BTreeMap::new(),
            connected: BTreeMap::new(),
            asking: VecDeque::new(),
            ended: None,
            error: None,
            outbox: Outbox::default(),
            owns: OwnAddresses::default(),
            datagram: Vec::new(),
            routes: Routes::default(),
            flushed_at: Time::ZERO,
            sleeps_until: Time::ZERO,
            stage: Stage::Runs,
        };
        // bounded: a connection stands there once, and their number is bounded.
        let (returns, returned) = mpsc::channel();
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            start,
            wake: Notify::new(),
            stood: Notify::new(),
            asked: Notify::new(),
            returns,
            answers_alike: is_server && udp.local_addr().ip().is_unspecified(),
            udp: Arc::new(udp),
        });
        End { user: Arc::new(User(shared)), returned, datagram_bytes_max }
    }

    /// Begins to drive it.
    pub(crate) fn begin(self) -> Arc<User> {
        tokio::spawn(drive(Arc::clone(&self.user.0), self.returned, self.datagram_bytes_max));
        self.user
    }
}

async fn drive(
    shared: Arc<Shared>,
    returned: mpsc::Receiver<(Handle, Box<Connection>)>,
    datagram_bytes_max: usize,
) {
    let mut batch = Batch::new(datagram_bytes_max);
    let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
    loop {
        // What has come is read before it is declared late: this task may have been kept.
        for _ in 0..BATCHES_A_TURN {
            match shared.udp.try_recv(&mut batch) {
                Ok(_) => shared.take(&mut batch),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return shared.give_up(&error),
            }
        }
        let (until, is_full) = match shared.turn(&returned) {
            Ok(Turn::Over) => return,
            Ok(Turn::Stand) => match shared.rest().await {
                true => continue,
                false => return,
            },
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
    /// Nothing, until it is to go on.
    Stand,
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
    fn turn(&self, returned: &mpsc::Receiver<(Handle, Box<Connection>)>) -> io::Result<Turn> {
        let mut inner = self.lock();
        if inner.is_still() {
            return Ok(Turn::Stand);
        }
        let now = self.now();
        for (handle, connection) in returned.try_iter() {
            inner.routes.remove(handle);
            inner.endpoint.attach(handle, connection);
            inner.endpoint.release(now, handle);
        }
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
        if inner.stage == Stage::Halts {
            inner.stage = Stage::Stands;
            self.stood.notify_one();
            return Ok(Turn::Stand);
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
        let Inner { endpoint, outbox, owns, datagram, .. } = inner;
        if !outbox.is_empty() && !outbox.send(&self.udp)? {
            return Ok(Left::Full);
        }
        for _ in 0..DATAGRAMS_A_TURN {
            let Some(transmit) = endpoint.poll_transmit(now, datagram) else {
                return Ok(if outbox.send(&self.udp)? { Left::Nothing } else { Left::Full });
            };
            outbox.put(|bytes| {
                bytes.extend_from_slice(datagram);
                Some(Outgoing { to: transmit.to, from: owns.of(transmit.to), mark: transmit.mark })
            });
        }
        Ok(if outbox.send(&self.udp)? { Left::Some } else { Left::Full })
    }

    /// A user that changed something sends what may go because of it, unless much goes: it goes together. The
    /// task is woken for what it does not know of.
    pub(crate) fn act(&self, mut inner: MutexGuard<'_, Inner>) {
        let now = self.now();
        let may_send = inner.outbox.is_empty() && !inner.is_still();
        let is_lone = may_send && now.since(inner.flushed_at) >= ALONE;
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
            let (from, mark, bytes) = (received.from, received.mark, received.bytes);
            let to = received.to.filter(|_| self.answers_alike);
            to.into_iter().for_each(|own| inner.owns.note(from, own));
            if let Some(handle) = inner.endpoint.handle_datagram(now, from, mark, bytes) {
                inner.routes.put(handle, HandedOver { peer: 0, from, to, mark, bytes });
            }
        }
        match inner.routes.hand_over() {
            0 => (),
            unread => self.udp.count_unread(unread),
        }
        inner.follow(&self.asked);
    }

    fn give_up(&self, error: &io::Error) {
        self.end_with(format!("the socket failed: {error}"));
        self.stood.notify_one();
    }

    /// Nothing can come any more: those that wait for something are told why.
    fn end_with(&self, why: String) {
        let mut inner = self.lock();
        inner.error = Some(why);
        inner.wake_all();
        drop(inner);
        self.asked.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_host_that_wait_leave_room_for_others() {
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut waiting = vec![at("10.0.0.1"); PENDING_OF_ADDRESS_MAX];
        let may = |waiting: &[IpAddr], from| has_room(waiting.iter().copied(), from);
        assert!(!may(&waiting, at("10.0.0.1")) && !may(&waiting, at("::ffff:10.0.0.1")));
        assert!(may(&waiting, at("10.0.0.2")) && may(&waiting, at("2001:db8:1:2::1")));
        waiting.extend((1..PENDING_OF_ADDRESS_MAX as u32).map(|n| at(&format!("2001:db8:1:2::{n:x}"))));
        assert!(may(&waiting, at("2001:db8:1:2::1")));
        waiting.push(at("2001:db8:1:2:ffff::1"));
        assert!(!may(&waiting, at("2001:db8:1:2::1")) && !may(&waiting, at("10.0.0.2")), "all are taken");
    }
}
