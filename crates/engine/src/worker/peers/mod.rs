//! Receivers that are reached by state machines of their own: given what they are owed and what comes for them,
//! woken when their time has come, and what they want to send goes out together, in pieces of equal datagrams.
//!
//! Work follows what happens: a peer to which something has happened stands in the queue of its class, and the
//! others are not looked at. Deadlines stand in one ordered table.

mod ports;
mod ready;

use std::collections::BTreeMap;

use bytes::BytesMut;
use outflow_media::Time;
use outflow_relay::{Priority, Report, SinkKey};
use outflow_udp::limits::DATAGRAMS_A_TURN;
use outflow_udp::{Outgoing, OwnOfPeer, Parcel, Parcels};
use rustix::event::epoll::EventFlags;
use slab::Slab;

use super::tasks::{Task, Tasks};
use super::timers::Timers;
use super::watch::{Watch, Watched};
use crate::clock::Clock;
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, Outlet, Peer, PeerEvent, PeerPath, ReceiverId, WriteDatagram};
use crate::send::{Packets, Piece, Recent};
use ports::Ports;
use ready::Ready;

/// The peers of a worker.
pub(super) struct Peers {
    all: Slab<LivePeer>,
    /// Whose what comes in is.
    by_receiver: BTreeMap<ReceiverId, usize>,
    timers: Timers<usize>,
    /// Those to which something has happened.
    ready: Ready,
    ports: Ports,
    parcels: Parcels,
    /// What was heard from peers, and is to be told.
    heard: Vec<Heard>,
    recent: Recent,
    // To be used again.
    block: BytesMut,
}

struct LivePeer {
    peer: Box<dyn Peer>,
    /// By which own addresses it was reached.
    own: OwnOfPeer,
    whose: Whose,
    class: Priority,
    port: usize,
    /// As it stands in the table of deadlines; none if it is over, or there is none.
    timer: Option<Time>,
    /// Whether it stands in a queue of those to which something has happened.
    is_ready: bool,
}

/// The receiver that a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) stream: usize,
    pub(super) sink: SinkKey,
    pub(super) receiver: ReceiverId,
}

/// Something that was heard from a peer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) whose: Whose,
    pub(super) event: PeerEvent,
}

/// The way out of a peer that has nothing else to send.
struct Open<'a> {
    ports: &'a mut Ports,
    port: usize,
    own: &'a OwnOfPeer,
    room: &'a mut usize,
}

impl Outlet for Open<'_> {
    fn put(&mut self, write: &mut WriteDatagram<'_>) {
        let outgoing = |(to, mark)| Outgoing { to, from: self.own.of(to), mark };
        self.ports.put(self.port, |out| write(out).map(outgoing));
        *self.room = self.room.saturating_sub(1);
    }
}

impl LivePeer {
    /// Its next datagram.
    fn outgoing(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Outgoing> {
        let (to, mark) = self.peer.poll_transmit(now, out)?;
        Some(Outgoing { to, from: self.own.of(to), mark })
    }
}

impl Peers {
    /// None yet; what comes for them comes through this queue.
    pub(super) fn new(parcels: Parcels) -> Self {
        Peers {
            all: Slab::new(),
            by_receiver: BTreeMap::new(),
            timers: Timers::default(),
            ready: Ready::default(),
            ports: Ports::default(),
            parcels,
            heard: Vec::new(),
            recent: Recent::default(),
            block: BytesMut::new(),
        }
    }

    /// One more. Answers its place.
    pub(super) fn add(
        &mut self,
        peer: Box<dyn Peer>,
        path: PeerPath,
        (whose, class): (Whose, Priority),
    ) -> usize {
        let mut own = OwnOfPeer::default();
        path.own.into_iter().for_each(|here| own.note(path.peer, here));
        let port = self.ports.enter(path);
        let live = LivePeer { peer, own, whose, class, port, timer: None, is_ready: false };
        let place = self.all.insert(live);
        self.by_receiver.insert(whose.receiver, place);
        // It may have been told something before.
        self.make_ready(place);
        place
    }

    /// The relay ends one; if the receiver does not know that, it is told why. Answers the port, if
    /// no other peer uses it.
    fn remove(&mut self, now: Time, place: usize, why: Option<&str>) -> Option<ports::Port> {
        let mut live = self.all.try_remove(place)?;
        self.timers.change(place, live.timer, None);
        self.by_receiver.remove(&live.whose.receiver);
        if self.all.is_empty() {
            self.recent.clear();
        }
        if let Some(why) = why {
            live.peer.close(now, why);
            while self.ports.put(live.port, |out| live.outgoing(now, out)) {}
            // If that fails, the others of the port hear of it when they send.
            let _ = self.ports.send();
        }
        self.ports.leave(live.port)
    }

    /// The relay ends one. The receiver is told why, unless it knows.
    pub(super) fn end(&mut self, watch: &mut Watch, now: Time, place: usize, reason: CloseReason) {
        let why = (reason != CloseReason::PeerGone).then(|| reason.to_string());
        self.let_go(watch, now, place, why.as_deref());
        self.wait_for_full(watch);
    }

    /// Lets one go. If the receiver does not know that, it is told why.
    pub(super) fn let_go(&mut self, watch: &mut Watch, now: Time, place: usize, why: Option<&str>) {
        if let Some(port) = self.remove(now, place, why)
            && let Some(token) = port.token
        {
            // Others may have the socket open, which keeps it in the epoll set.
            watch.take_out(token, &port.udp);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// It is in another class from now on.
    pub(super) fn set_class(&mut self, place: usize, class: Priority) {
        if let Some(live) = self.all.get_mut(place) {
            live.class = class;
        }
    }

    /// What the state machine at this place says of itself, if it can go on elsewhere.
    pub(super) fn save(&self, place: usize) -> Option<Vec<u8>> {
        self.all.get(place)?.peer.save()
    }

    /// Gives the packets of an order to those of its members that are peers; `place_of` knows where they are. What they
    /// have to send goes at once: all that is needed of each is at hand then, and an order is short. Reports what was not
    /// taken, for which the order goes on at the first packet of it, and what does not go.
    pub(super) fn send(
        &mut self,
        now: Time,
        pieces: &[Piece<'_>],
        members: &[SinkKey],
        place_of: impl Fn(SinkKey) -> Option<usize>,
        mut report: impl FnMut(SinkKey, Report),
    ) {
        let (mut block, mut recent) = (core::mem::take(&mut self.block), core::mem::take(&mut self.recent));
        let mut packets = Packets::new(now, pieces, &mut block, &mut recent);
        let mut room = DATAGRAMS_A_TURN;
        let all = members.iter().filter_map(|key| self.all.get(place_of(*key)?));
        core::hint::black_box(all.fold(0, |sum, live| sum ^ live.peer.warm()));
        for key in members {
            let Some(place) = place_of(*key) else { continue };
            let Some(live) = self.all.get_mut(place) else { continue };
            let (is_first, own) = (!live.is_ready && !self.ports.is_full(live.port), &live.own);
            let mut outlet = Open { ports: &mut self.ports, port: live.port, own, room: &mut room };
            let out = is_first.then_some(&mut outlet as &mut dyn Outlet);
            let taken = live.peer.write(now, &mut packets, out, &mut |told| report(*key, told));
            if let Some(piece) = pieces.get(taken) {
                report(*key, Report::Blocked { next: piece.seq });
            }
            self.go_ahead(now, place, &mut room);
        }
        (self.block, self.recent) = (block, recent);
        self.flush();
    }

    /// Sends what one has to send, unless it has to wait for others, or something is due: it has its turn then.
    fn go_ahead(&mut self, now: Time, place: usize, room: &mut usize) {
        if *room == 0 {
            self.flush();
            *room = DATAGRAMS_A_TURN;
        }
        let Some(live) = self.all.get_mut(place) else { return };
        if live.is_ready || live.timer.is_none_or(|at| at <= now) {
            return self.make_ready(place);
        }
        live.is_ready = true;
        while !self.settle(now, place, room) {
            self.flush();
            *room = DATAGRAMS_A_TURN;
        }
    }

    /// Gives an RTCP packet of the relay to one.
    pub(super) fn write_rtcp(&mut self, now: Time, place: usize, track: u8, packet: &[u8]) {
        if let Some(live) = self.all.get_mut(place) {
            live.peer.write_rtcp(now, track, packet);
            self.make_ready(place);
        }
    }

    /// What has come.
    fn take(&mut self, now: Time, parcel: &mut Parcel) {
        for it in parcel.iter() {
            // One that has left is not known any more.
            let Some(place) = self.by_receiver.get(&it.peer).copied() else { continue };
            let Some(live) = self.all.get_mut(place) else { continue };
            it.to.into_iter().for_each(|own| live.own.note(it.from, own));
            live.peer.handle_datagram(now, (it.from, it.mark), it.bytes, &self.recent);
            self.make_ready(place);
        }
    }

    /// Takes what has come, for a round at most. Answers whether something may be left.
    pub(super) fn take_parcels(&mut self, clock: &Clock) -> bool {
        let began = clock.now();
        let mut now = began;
        while now < began + WORK_ROUND {
            let Some(mut parcel) = self.parcels.take() else { return false };
            self.take(now, &mut parcel);
            now = clock.now();
        }
        true
    }

    /// When the next deadline is.
    pub(super) fn due(&self) -> Option<Time> {
        self.timers.first()
    }

    /// Puts those down whose time has come.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(place) = self.timers.pop(now) {
            if let Some(live) = self.all.get_mut(place) {
                live.timer = None;
            }
            self.make_ready(place);
        }
    }

    /// Puts down what is to be done for those to which something has happened.
    pub(super) fn plan(&mut self, tasks: &mut Tasks) {
        self.ready.begun().for_each(|(class, stream)| tasks.add(class, Task::Transmit(stream)));
    }

    /// Sends what those of a stream in a class have to send, as much as goes at once. Answers whether there is more.
    pub(super) fn transmit(&mut self, now: Time, of: (Priority, usize)) -> bool {
        let mut room = DATAGRAMS_A_TURN;
        let mut ready = self.ready.take(of);
        while let Some(place) = ready.front() {
            if !self.settle(now, *place, &mut room) {
                break;
            }
            ready.pop_front();
        }
        self.flush();
        self.ready.put_back(of, ready)
    }

    /// Sends what was put down. Those whose socket fails are over.
    fn flush(&mut self) {
        for port in self.ports.send() {
            for (_, live) in self.all.iter().filter(|(_, live)| live.port == port) {
                let event = PeerEvent::Closed("its socket has failed".to_owned());
                self.heard.push(Heard { whose: live.whose, event });
            }
        }
    }

    /// What was heard since this was asked last; to be given back, so that no memory is asked for it.
    pub(super) fn take_heard(&mut self) -> Vec<Heard> {
        core::mem::take(&mut self.heard)
    }

    pub(super) fn give_back(&mut self, heard: Vec<Heard>) {
        self.heard = heard;
    }

    /// Does what is to be done for a peer. Answers whether that is all; else there is no room for more datagrams.
    fn settle(&mut self, now: Time, place: usize, room: &mut usize) -> bool {
        let Some(live) = self.all.get_mut(place) else { return true };
        if self.ports.waits(live.port, place) {
            // It stays put down, and has nothing to be woken for before there is room.
            self.timers.change(place, live.timer.take(), None);
            return true;
        }
        if live.timer.is_none_or(|at| at <= now) {
            live.peer.handle_timeout(now, &self.recent);
        }
        loop {
            if *room == 0 {
                return false;
            }
            if !self.ports.put(live.port, |out| live.outgoing(now, out)) {
                break;
            }
            *room -= 1;
        }
        live.is_ready = false;
        while let Some(event) = live.peer.poll_event() {
            self.heard.push(Heard { whose: live.whose, event });
        }
        let timer = live.peer.next_timeout().map(|(at, _)| at);
        self.timers.change(place, live.timer, timer);
        live.timer = timer;
        true
    }

    /// Waits until sockets take datagrams again that are full.
    pub(super) fn wait_for_full(&mut self, watch: &mut Watch) {
        while let Some((number, port)) = self.ports.filled() {
            let flags = EventFlags::OUT | EventFlags::ONESHOT;
            let waited = match port.token {
                Some(token) => watch.change(token, &port.udp, flags),
                None => watch.add(&port.udp, flags).map(|entry| {
                    port.token = Some(entry.key());
                    entry.insert(Watched::PeerPort { port: number });
                }),
            };
            if let Err(error) = waited {
                tracing::error!(%error, "cannot wait for a socket that is full");
            }
        }
    }

    /// A socket takes datagrams again: those that waited for it go on.
    pub(super) fn port_writable(&mut self, watch: &mut Watch, port: usize) {
        let waited = self.ports.writable(port);
        self.go_on(waited);
        self.wait_for_full(watch);
    }

    /// The socket that these have waited for takes more.
    fn go_on(&mut self, places: Vec<usize>) {
        for place in places {
            if let Some(live) = self.all.get_mut(place) {
                live.is_ready = false;
            }
            self.make_ready(place);
        }
    }

    fn make_ready(&mut self, place: usize) {
        if let Some(live) = self.all.get_mut(place)
            && !core::mem::replace(&mut live.is_ready, true)
        {
            self.ready.push((live.class, live.whose.stream), place);
        }
    }
}

#[cfg(test)]
mod tests;
