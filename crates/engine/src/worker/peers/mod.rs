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
use outflow_udp::{Parcel, Parcels};
use rustix::event::epoll::EventFlags;
use slab::Slab;

use super::tasks::{Task, Tasks};
use super::timers::Timers;
use super::watch::{Watch, Watched};
use crate::clock::Clock;
use crate::limits::WORK_ROUND;
use crate::message::{CloseReason, Peer, PeerEvent, PeerPath, ReceiverId};
use crate::send::{Packets, Piece};
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
    // To be used again.
    datagram: Vec<u8>,
    block: BytesMut,
}

struct LivePeer {
    peer: Box<dyn Peer>,
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
            datagram: Vec::new(),
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
        let port = self.ports.enter(path);
        let live = LivePeer { peer, whose, class, port, timer: None, is_ready: false };
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
        if let Some(why) = why {
            live.peer.close(now, why);
            while let Some((to, mark)) = live.peer.poll_transmit(now, &mut self.datagram) {
                self.ports.put(live.port, to, mark, &self.datagram);
            }
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

    /// Gives packets to one. Answers how many it took.
    pub(super) fn write(
        &mut self,
        now: Time,
        place: usize,
        packets: &mut Packets<'_>,
        tell: &mut dyn FnMut(Report),
    ) -> usize {
        let Some(live) = self.all.get_mut(place) else { return packets.heads().len() };
        let taken = live.peer.write(now, packets, tell);
        self.make_ready(place);
        taken
    }

    /// Gives the packets of an order to those of its members that are peers; `place_of` knows where they are.
    /// Reports what was not taken, for which the order goes on at the first packet of it, and what does not go.
    pub(super) fn send(
        &mut self,
        now: Time,
        pieces: &[Piece<'_>],
        members: &[SinkKey],
        place_of: impl Fn(SinkKey) -> Option<usize>,
        mut report: impl FnMut(SinkKey, Report),
    ) {
        let mut block = core::mem::take(&mut self.block);
        let mut packets = Packets::new(pieces, &mut block);
        for key in members {
            let Some(place) = place_of(*key) else { continue };
            let taken = self.write(now, place, &mut packets, &mut |told| report(*key, told));
            if let Some(piece) = pieces.get(taken) {
                report(*key, Report::Blocked { next: piece.seq });
            }
        }
        self.block = block;
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
            if let Some(own) = it.to {
                self.ports.note(live.port, it.from, own);
            }
            live.peer.handle_datagram(now, it.from, it.mark, it.bytes);
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
        for port in self.ports.send() {
            for (_, live) in self.all.iter().filter(|(_, live)| live.port == port) {
                let event = PeerEvent::Closed("its socket has failed".to_owned());
                self.heard.push(Heard { whose: live.whose, event });
            }
        }
        self.ready.put_back(of, ready)
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
            live.peer.handle_timeout(now);
        }
        loop {
            if *room == 0 {
                return false;
            }
            let Some((to, mark)) = live.peer.poll_transmit(now, &mut self.datagram) else { break };
            self.ports.put(live.port, to, mark, &self.datagram);
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
