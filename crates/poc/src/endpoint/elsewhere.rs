//! Connections that another driver drives: an endpoint keeps the way to them, and answers repeated hellos for
//! them.

use core::net::SocketAddr;

use outflow_media::Time;

use super::{Endpoint, Handle, Joined, State};
use crate::connection::Connection;
use crate::packet::{ConnectionId, Datagram, Head, Mark, parse};

/// What is kept of a connection that was taken out.
pub(super) struct Elsewhere {
    pub(super) local: ConnectionId,
    pub(super) remote: ConnectionId,
    pub(super) asked: Option<(SocketAddr, ConnectionId)>,
    pub(super) accept: Vec<u8>,
}

impl Endpoint {
    /// Takes a connection out, to be driven by another driver. Its place stays, and
    /// [`handle_datagram`](Self::handle_datagram) tells what is to be given to it, until it is put back.
    pub fn detach(&mut self, handle: Handle) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(&handle)?;
        let State::Joined(joined) = &mut slot.state else { return None };
        let (local, remote) = (joined.connection.local(), joined.connection.remote());
        let (asked, accept) = (joined.asked, core::mem::take(&mut joined.accept));
        let away = State::Elsewhere(Elsewhere { local, remote, asked, accept });
        let State::Joined(joined) = core::mem::replace(&mut slot.state, away) else { return None };
        slot.timer.take().into_iter().for_each(|at| _ = self.timers.remove(&(at, handle)));
        Some(Box::new(joined.connection))
    }

    /// Puts a connection back that was taken out.
    pub fn attach(&mut self, handle: Handle, connection: Box<Connection>) {
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        let State::Elsewhere(away) = &mut slot.state else { return };
        let (asked, accept) = (away.asked, core::mem::take(&mut away.accept));
        let joined = Joined { connection: *connection, asked, accept, is_released: false };
        slot.state = State::Joined(Box::new(joined));
        self.touch(handle);
    }

    /// A connection that was taken out does not come back: its peer is told, if it sends, that it is not known here.
    pub fn lose(&mut self, handle: Handle) {
        if self.slots.get(&handle).is_some_and(|slot| matches!(slot.state, State::Elsewhere(_))) {
            self.remove(handle);
        }
    }
}

/// Gives a connection that is elsewhere what its endpoint said is for it. Nothing is changed by what is not.
pub fn deliver(connection: &mut Connection, now: Time, from: SocketAddr, mark: Mark, datagram: &mut [u8]) {
    if Head::parse(datagram).is_some() {
        connection.handle_datagram(now, from, mark, datagram);
    } else if let Ok(Datagram::Reset(id)) = parse(datagram)
        && id == connection.remote()
        && from == connection.address()
    {
        connection.handle_reset(now);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::tests::{Pair, SECOND, address, to_send};
    use super::super::{Secret, Settings};
    use super::*;
    use crate::connection::{Closed, Event, Worth};
    use crate::packet::{Code, emit_reset};

    /// A pair whose client's connection is driven here.
    struct Away {
        pair: Pair,
        handle: Handle,
        connection: Box<Connection>,
    }

    impl Away {
        fn new() -> Self {
            let mut pair = Pair::new(Settings::default());
            let handle = pair.connect(to_send());
            pair.accept();
            pair.run(SECOND / 10);
            let connection = pair.client.detach(handle).expect("it is joined");
            assert!(pair.client.detach(handle).is_none(), "it is away");
            Away { pair, handle, connection }
        }

        /// What comes goes through the endpoint, what goes does not.
        fn run(&mut self, time: core::time::Duration) {
            let end = self.pair.now + time;
            let mut out = Vec::new();
            while self.pair.now < end {
                self.pair.now = self.pair.now + SECOND / 1000;
                let now = self.pair.now;
                self.pair.exchange();
                while let Some((_, from, to, mut bytes)) =
                    self.pair.flying.pop_front_if(|(at, ..)| *at <= now)
                {
                    if to == address(2) {
                        self.pair.server.handle_datagram(now, from, Mark::None, &mut bytes);
                    } else if self.pair.client.handle_datagram(now, from, Mark::None, &mut bytes).is_some() {
                        deliver(&mut self.connection, now, from, Mark::None, &mut bytes);
                    }
                }
                self.pair.server.handle_timeout(now);
                if self.connection.next_timeout().is_some_and(|(at, _)| at <= now) {
                    self.connection.handle_timeout(now);
                }
                while let Some(transmit) = self.connection.poll_transmit(now, &mut out) {
                    self.pair.flying.push_back((now + SECOND / 100, address(1), transmit.to, out.clone()));
                }
            }
        }

        fn send(&mut self) {
            let unit = self.connection.next_unit();
            let sent =
                self.connection.send(self.pair.now, unit, Bytes::from_static(b"unit"), Worth::default());
            sent.expect("there is room");
        }
    }

    #[test]
    fn a_connection_goes_on_elsewhere_and_is_ended_at_home() {
        let mut away = Away::new();
        (0..10).for_each(|_| away.send());
        away.run(SECOND);
        assert_eq!(away.pair.delivered(), 10);
        away.pair.client.release(away.pair.now, away.handle);
        assert_eq!((away.pair.client.len(), away.pair.client.next_timeout()), (1, None));
        let Away { mut pair, handle, connection } = away;
        pair.client.attach(handle, connection);
        pair.client.release(pair.now, handle);
        pair.run(SECOND);
        assert!(matches!(pair.events.last(), Some((_, Event::Closed(Closed { code: Code::DONE, .. })))));
        assert!(pair.client.is_empty());
    }

    #[test]
    fn one_that_is_lost_elsewhere_is_not_known_any_more() {
        let mut pair = Pair::new(Settings::default());
        let client = pair.connect(to_send());
        let server = pair.accept();
        pair.run(SECOND / 10);
        pair.server.lose(server);
        assert!(pair.server.connection(server).is_some(), "it is here");
        drop(pair.server.detach(server));
        pair.server.lose(server);
        assert!(pair.server.is_empty());
        let sent = pair.client.send(pair.now, client, None, Bytes::from_static(b"unit"), Worth::default());
        sent.expect("there is room");
        pair.run(SECOND * 6);
        let ended =
            |(_, event): &(_, Event)| matches!(event, Event::Closed(Closed { code: Code::RESET, .. }));
        assert!(pair.events.last().is_some_and(ended));
    }

    #[test]
    fn a_hello_is_answered_again_while_its_connection_is_elsewhere() {
        let mut pair = Pair::new(Settings::default());
        pair.connect(to_send());
        let server = pair.accept();
        let connection = pair.server.detach(server).expect("it is joined");
        pair.exchange();
        // The first answer is lost.
        pair.flying.clear();
        pair.run(SECOND * 3);
        assert!(pair.client.connection(Handle(0)).is_some(), "it was answered again");
        pair.server.attach(server, connection);
        assert!(pair.server.connection(server).is_some());
    }

    #[test]
    fn a_server_that_has_forgotten_it_ends_it_and_no_other_does() {
        let mut away = Away::new();
        let id = away.connection.remote();
        for host in [2, 7] {
            let mut reset = Vec::new();
            emit_reset(id, &mut reset);
            let whose =
                away.pair.client.handle_datagram(away.pair.now, address(host), Mark::None, &mut reset);
            assert_eq!(whose, Some(away.handle));
            deliver(&mut away.connection, away.pair.now, address(host), Mark::None, &mut reset);
        }
        away.run(SECOND * 3);
        assert!(!away.connection.is_closed(), "the server knows it");
        away.pair.server =
            Endpoint::new(Settings::default(), Secret::new([3; 16]), super::super::tests::plain());
        away.send();
        away.run(SECOND * 6);
        assert_eq!(away.connection.closed().map(|closed| closed.code), Some(Code::RESET));
    }
}
