//! Many connections behind one socket: which host asks for one, which is answered, and which datagram
//! belongs to which.
//!
//! A server keeps nothing of a client before it has shown, by a cookie, that it is where it says, and sends it
//! no more than it sent. Datagrams without a connection are answered at most so often; see [`Counts`] for
//! each reason why something is dropped.

mod answers;
mod connecting;
mod cookie;
mod elsewhere;
mod receive;
mod save;
mod types;

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::service::{Request, Service};

use self::answers::Answers;
use self::connecting::Connecting;
use self::cookie::Cookies;
use self::elsewhere::Elsewhere;
pub use self::elsewhere::deliver;
pub use self::save::Protect;
pub use self::types::{AcceptError, ConnectError, Counts, Handle, Handshakes, Notice, Settings};
use crate::connection;
use crate::connection::{Begin, Connection, SendError, Transmit, Worth};
use crate::packet::{Accept, Code, ConnectionId, Mark, Refuse, VERSION};
use crate::protection::{ClientHandshake, ServerHandshake};
use crate::secret::Secret;

/// A client that has shown where it is, and waits for an answer.
struct Asking {
    from: SocketAddr,
    client: ConnectionId,
    handshake: Box<dyn ServerHandshake>,
    until: Time,
}

/// A connection, and at a server which client asked for it and the answer, which is sent again if lost.
struct Joined {
    connection: Connection,
    asked: Option<(SocketAddr, ConnectionId)>,
    accept: Vec<u8>,
    /// Whether the application does not read it any more.
    is_released: bool,
}

enum State {
    Connecting(Box<Connecting>),
    Asking(Asking),
    Joined(Box<Joined>),
    Elsewhere(Elsewhere),
}

struct Slot {
    state: State,
    timer: Option<Time>,
    is_ready: bool,
    is_noticed: bool,
}

/// One end of many connections.
pub struct Endpoint {
    settings: Settings,
    secret: Secret,
    cookies: Cookies,
    /// `None` if it does not accept clients.
    handshakes: Option<Handshakes>,
    slots: BTreeMap<Handle, Slot>,
    next: u64,
    by_id: BTreeMap<ConnectionId, Handle>,
    by_hello: BTreeMap<(SocketAddr, ConnectionId), Handle>,
    /// By the id that the peer chose. Of several of the same, the last.
    by_remote: BTreeMap<ConnectionId, Handle>,
    timers: BTreeSet<(Time, Handle)>,
    /// Those that may have something to send.
    ready: VecDeque<Handle>,
    notices: VecDeque<(Handle, Notice)>,
    answers: Answers,
    counts: Counts,
}

impl Endpoint {
    /// An endpoint that connects, and with `handshakes` can be connected to. No other host may know `secret`.
    pub fn new(settings: Settings, mut secret: Secret, handshakes: Option<Handshakes>) -> Self {
        Endpoint {
            settings,
            cookies: Cookies::new(secret.derive()),
            secret,
            handshakes,
            slots: BTreeMap::new(),
            next: 0,
            by_id: BTreeMap::new(),
            by_hello: BTreeMap::new(),
            by_remote: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            notices: VecDeque::new(),
            answers: Answers::default(),
            counts: Counts::default(),
        }
    }

    /// Asks a server for a service.
    pub fn connect(
        &mut self,
        now: Time,
        server: SocketAddr,
        request: Request,
        handshake: Box<dyn ClientHandshake>,
    ) -> Result<Handle, ConnectError> {
        let local = self.fresh_id();
        let patience = self.settings.patience;
        let connecting = Connecting::new(now, local, server, request, handshake, patience)?;
        let handle = self.add(State::Connecting(Box::new(connecting)));
        self.by_id.insert(local, handle);
        Ok(handle)
    }

    /// Answers a client: it gets this service.
    pub fn accept(&mut self, now: Time, handle: Handle, service: &Service) -> Result<(), AcceptError> {
        let mut bytes = Vec::new();
        service.emit(&mut bytes)?;
        let Some(Asking { from, client, handshake, .. }) = self.take_asking(handle) else {
            return Err(AcceptError::NotAsked);
        };
        let local = self.fresh_id();
        let mut accept = Vec::new();
        let sealed = handshake.accept(&bytes).map_err(AcceptError::from).and_then(|(sealed, protection)| {
            Accept { client, server: local, service: &sealed }.emit(&mut accept)?;
            Ok(protection)
        });
        let protection = sealed.inspect_err(|_| self.remove(handle))?;
        let begin = Begin {
            local,
            remote: client,
            address: from,
            outgoing: service.to_client.clone(),
            incoming: service.to_server.clone(),
        };
        let secret = self.secret.derive();
        let connection = Connection::new(now, begin, protection, self.settings.connection, secret);
        self.answers.push(from, accept.clone());
        let asked = Some((from, client));
        let joined = Joined { connection, asked, accept, is_released: false };
        self.by_id.insert(local, handle);
        self.join(handle, joined);
        Ok(())
    }

    /// Answers a client: it gets nothing.
    pub fn refuse(&mut self, handle: Handle, code: Code, text: &str) {
        if let Some(Asking { from, client, .. }) = self.take_asking(handle) {
            self.say_no(from, client, code, text);
            self.remove(handle);
        }
    }

    fn join(&mut self, handle: Handle, joined: Joined) {
        self.by_remote.insert(joined.connection.remote(), handle);
        if let Some(slot) = self.slots.get_mut(&handle) {
            slot.state = State::Joined(Box::new(joined));
        }
        self.touch(handle);
    }

    fn say_no(&mut self, to: SocketAddr, client: ConnectionId, code: Code, text: &str) {
        let mut refuse = Vec::new();
        Refuse { version: VERSION, client, code, text }.emit(&mut refuse);
        self.answers.push(to, refuse);
    }

    fn fail(&mut self, handle: Handle, error: ConnectError) {
        self.remove(handle);
        self.notices.push_back((handle, Notice::Failed(error)));
    }

    /// The next datagram, written to `out`, which is cleared; nothing if none is to be sent now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(transmit) = self.answer(false, out) {
            return Some(transmit);
        }
        while let Some(handle) = self.ready.front().copied() {
            let Some(slot) = self.slots.get_mut(&handle) else {
                self.ready.pop_front();
                continue;
            };
            let transmit = match &mut slot.state {
                State::Connecting(connecting) => {
                    let transmit = Transmit { to: connecting.address, mark: Mark::None };
                    connecting.poll_transmit(now, out).then_some(transmit)
                }
                State::Asking(_) | State::Elsewhere(_) => None,
                State::Joined(joined) => joined.connection.poll_transmit(now, out),
            };
            if transmit.is_some() {
                return transmit;
            }
            self.ready.pop_front();
            self.settle(handle);
        }
        self.answer(true, out)
    }

    fn answer(&mut self, is_alone: bool, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, answer) = self.answers.pop(is_alone)?;
        out.clear();
        out.extend_from_slice(&answer);
        Some(Transmit { to, mark: Mark::None })
    }

    /// A connection has nothing to send for now: when to come back, and whether it is over.
    fn settle(&mut self, handle: Handle) {
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        slot.is_ready = false;
        let (timer, is_over) = match &slot.state {
            State::Connecting(connecting) => (Some(connecting.next_timeout()), false),
            State::Asking(asking) => (Some(asking.until), false),
            State::Joined(joined) => {
                let wake = joined.connection.next_timeout();
                (wake.map(|(at, _)| at), joined.connection.is_over() && joined.is_released)
            }
            State::Elsewhere(_) => (None, false),
        };
        if slot.timer != timer {
            slot.timer.take().into_iter().for_each(|at| _ = self.timers.remove(&(at, handle)));
            slot.timer = timer;
            timer.into_iter().for_each(|at| _ = self.timers.insert((at, handle)));
        }
        if is_over {
            self.remove(handle);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout). All other calls may change it; to be asked
    /// when there is nothing to send any more.
    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((_, handle)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.pop_first();
            let Some(slot) = self.slots.get_mut(&handle) else { continue };
            slot.timer = None;
            match &mut slot.state {
                State::Connecting(connecting) if connecting.is_hopeless(now) => {
                    let error = ConnectError::Silent(connecting.address);
                    self.fail(handle, error);
                }
                State::Asking(asking) if asking.until <= now => {
                    self.refuse(handle, Code::BUSY, "the server has not decided in time; try again later");
                }
                State::Connecting(_) | State::Asking(_) => self.touch(handle),
                State::Joined(joined) => {
                    joined.connection.handle_timeout(now);
                    self.touch(handle);
                }
                // It has no timer.
                State::Elsewhere(_) => (),
            }
        }
    }

    /// What there is to do for a connection.
    pub fn poll(&mut self) -> Option<(Handle, Notice)> {
        let (handle, notice) = self.notices.pop_front()?;
        if let (Notice::Ready, Some(slot)) = (&notice, self.slots.get_mut(&handle)) {
            slot.is_noticed = false;
        }
        Some((handle, notice))
    }

    /// The next event of a connection.
    pub fn read(&mut self, handle: Handle) -> Option<connection::Event> {
        let Some(State::Joined(joined)) = self.slots.get_mut(&handle).map(|slot| &mut slot.state) else {
            return None;
        };
        let event = joined.connection.poll();
        self.make_ready(handle);
        event
    }

    /// Sends a unit; without a number, the next one.
    ///
    /// Answers its number.
    pub fn send(
        &mut self,
        now: Time,
        handle: Handle,
        unit: Option<u64>,
        data: Bytes,
        worth: Worth,
    ) -> Result<u64, SendError> {
        let sent = self.with(handle, |connection| {
            let unit = unit.unwrap_or_else(|| connection.next_unit());
            connection.send(now, unit, data, worth).map(|()| unit)
        });
        sent.unwrap_or(Err(SendError::Closed))
    }

    /// Does something to a connection; nothing if there is none.
    pub fn with<T>(&mut self, handle: Handle, f: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let State::Joined(joined) = &mut self.slots.get_mut(&handle)?.state else { return None };
        let done = f(&mut joined.connection);
        self.touch(handle);
        Some(done)
    }

    /// A connection, if it is there.
    pub fn connection(&self, handle: Handle) -> Option<&Connection> {
        match &self.slots.get(&handle)?.state {
            State::Joined(joined) => Some(&joined.connection),
            _ => None,
        }
    }

    /// The application does not need a connection any more: it is closed if it is not yet, and forgotten when
    /// the peer knows. One that is elsewhere is left alone.
    pub fn release(&mut self, now: Time, handle: Handle) {
        match self.slots.get_mut(&handle).map(|slot| &mut slot.state) {
            Some(State::Joined(joined)) => {
                joined.is_released = true;
                joined.connection.close(now, Code::DONE, "");
                self.make_ready(handle);
            }
            Some(State::Asking(_)) => self.refuse(handle, Code::DONE, "the server is about to end"),
            Some(State::Connecting(_)) => self.remove(handle),
            Some(State::Elsewhere(_)) | None => (),
        }
    }

    /// How many connections there are, with those that are being asked for.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What happened to datagrams that are of no connection.
    pub fn counts(&self) -> Counts {
        Counts { answers_left_out: self.answers.left_out(), ..self.counts }
    }

    fn add(&mut self, state: State) -> Handle {
        let handle = Handle(self.next);
        self.next += 1;
        self.slots.insert(handle, Slot { state, timer: None, is_ready: false, is_noticed: false });
        self.make_ready(handle);
        handle
    }

    fn remove(&mut self, handle: Handle) {
        let Some(slot) = self.slots.remove(&handle) else { return };
        slot.timer.into_iter().for_each(|at| _ = self.timers.remove(&(at, handle)));
        match slot.state {
            State::Connecting(connecting) => _ = self.by_id.remove(&connecting.local),
            State::Asking(asking) => _ = self.by_hello.remove(&(asking.from, asking.client)),
            State::Joined(joined) => {
                let (local, remote) = (joined.connection.local(), joined.connection.remote());
                self.forget(handle, (local, remote), joined.asked);
            }
            State::Elsewhere(away) => self.forget(handle, (away.local, away.remote), away.asked),
        }
    }

    fn forget(
        &mut self,
        handle: Handle,
        (local, remote): (ConnectionId, ConnectionId),
        asked: Option<(SocketAddr, ConnectionId)>,
    ) {
        self.by_id.remove(&local);
        if self.by_remote.get(&remote) == Some(&handle) {
            self.by_remote.remove(&remote);
        }
        asked.into_iter().for_each(|key| _ = self.by_hello.remove(&key));
    }

    fn take_asking(&mut self, handle: Handle) -> Option<Asking> {
        let slot = self.slots.get_mut(&handle).filter(|slot| matches!(slot.state, State::Asking(_)))?;
        let Slot { state: State::Asking(asking), .. } = slot else { return None };
        let gone = Asking { handshake: Box::new(crate::protection::Plain), ..*asking };
        Some(core::mem::replace(asking, gone))
    }

    fn touch_id(&mut self, id: ConnectionId) {
        if let Some(handle) = self.by_id.get(&id).copied() {
            self.make_ready(handle);
        }
    }

    /// A connection has changed: it may have something to send, and to tell.
    fn touch(&mut self, handle: Handle) {
        self.make_ready(handle);
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        if let State::Joined(joined) = &slot.state
            && joined.connection.has_events()
            && !core::mem::replace(&mut slot.is_noticed, true)
        {
            self.notices.push_back((handle, Notice::Ready));
        }
    }

    fn make_ready(&mut self, handle: Handle) {
        if let Some(slot) = self.slots.get_mut(&handle)
            && !core::mem::replace(&mut slot.is_ready, true)
        {
            self.ready.push_back(handle);
        }
    }

    /// An id that no connection has.
    fn fresh_id(&mut self) -> ConnectionId {
        loop {
            let mut id = [0; ConnectionId::BYTES];
            id.copy_from_slice(&self.secret.fresh()[..ConnectionId::BYTES]);
            if !self.by_id.contains_key(&ConnectionId(id)) {
                return ConnectionId(id);
            }
        }
    }
}

#[cfg(test)]
mod flood;
#[cfg(test)]
mod tests;
