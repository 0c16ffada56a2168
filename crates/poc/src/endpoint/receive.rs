//! What an endpoint makes of datagrams.

use core::net::SocketAddr;

use outflow_media::Time;
use outflow_petri::service::Request;

use super::connecting::{Agreed, Connecting};
use super::{Asking, Endpoint, Handle, Joined, Notice, State};
use crate::connection::{Begin, Connection};
use crate::packet::{
    Accept, Code, ConnectionId, Datagram, Head, Hello, Mark, RESET_BYTES, Retry, is_ours, parse,
};

impl Endpoint {
    /// A datagram came. Nothing is changed by one that is not ours, and by no more than one connection. Answers
    /// whose it is, if that connection is elsewhere and has to be given it ([`deliver`](super::deliver)).
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        mark: Mark,
        datagram: &mut [u8],
    ) -> Option<Handle> {
        if !datagram.first().is_some_and(|first| is_ours(*first)) {
            self.counts.malformed += 1;
            return None;
        }
        if let Some(head) = Head::parse(datagram) {
            return self.handle_data(now, from, mark, head.receiver, datagram);
        }
        match parse(datagram) {
            Ok(Datagram::Hello(hello)) => self.handle_hello(now, from, &hello),
            Ok(Datagram::Retry(retry)) => {
                if let Some((_, connecting)) = self.connecting(retry.client, from) {
                    connecting.handle_retry(now, &retry);
                    self.touch_id(retry.client);
                }
            }
            Ok(Datagram::Accept(accept)) => self.handle_accept(now, from, &accept),
            Ok(Datagram::Refuse(refuse)) => {
                if let Some((handle, _)) = self.connecting(refuse.client, from) {
                    self.fail(handle, Connecting::refused(&refuse));
                }
            }
            Ok(Datagram::Reset(id)) => return self.handle_reset(now, from, id),
            Ok(Datagram::OtherVersion { client, .. }) if self.handshakes.is_some() => {
                self.counts.other_versions += 1;
                self.say_no(from, client, Code::VERSION, "this version of the protocol is not spoken here");
            }
            Ok(Datagram::Data(_) | Datagram::OtherVersion { .. }) | Err(_) => self.counts.malformed += 1,
        }
        None
    }

    fn handle_data(
        &mut self,
        now: Time,
        from: SocketAddr,
        mark: Mark,
        id: ConnectionId,
        datagram: &mut [u8],
    ) -> Option<Handle> {
        let Some(handle) = self.by_id.get(&id).copied() else {
            self.counts.unknown += 1;
            if datagram.len() > RESET_BYTES && self.answers.push_reset(now, from, id) {
                self.counts.resets += 1;
            }
            return None;
        };
        match self.slots.get_mut(&handle).map(|slot| &mut slot.state) {
            Some(State::Joined(joined)) => {
                if joined.connection.handle_datagram(now, from, mark, datagram) {
                    self.touch(handle);
                }
            }
            Some(State::Elsewhere(_)) => return Some(handle),
            _ => self.counts.early += 1,
        }
        None
    }

    fn handle_hello(&mut self, now: Time, from: SocketAddr, hello: &Hello<'_>) {
        self.counts.hellos += 1;
        let Some(handshakes) = &mut self.handshakes else { return };
        if !self.cookies.is_ours(now, from, hello.client, hello.cookie) {
            self.counts.retries += 1;
            let cookie = self.cookies.make(now, from, hello.client);
            let mut retry = Vec::new();
            if (Retry { client: hello.client, cookie: &cookie }).emit(&mut retry).is_ok() {
                self.answers.push(from, retry);
            }
            return;
        }
        let key = (from, hello.client);
        if let Some(handle) = self.by_hello.get(&key) {
            // The answer was lost, or is still thought about.
            match self.slots.get(handle).map(|slot| &slot.state) {
                Some(State::Joined(joined)) => self.answers.push(from, joined.accept.clone()),
                Some(State::Elsewhere(away)) => self.answers.push(from, away.accept.clone()),
                _ => (),
            }
            return;
        }
        if self.slots.len() >= self.settings.connections_max {
            self.counts.busy += 1;
            return self.say_no(from, hello.client, Code::BUSY, "too many connections; try again later");
        }
        let mut handshake = handshakes();
        let request = handshake.as_mut().and_then(|handshake| handshake.hello(hello.service));
        let (Some(handshake), Some(request)) = (handshake, request) else {
            self.counts.strangers += 1;
            let text = "the key is not the one that is asked for here: check the keys at both ends";
            return self.say_no(from, hello.client, Code::KEY, text);
        };
        match Request::parse(&request) {
            Ok(request) => {
                let until = now + self.settings.patience;
                let asking = Asking { from, client: hello.client, handshake, until };
                let handle = self.add(State::Asking(asking));
                self.by_hello.insert(key, handle);
                self.notices.push_back((handle, Notice::Asked { from, request }));
            }
            Err(error) => {
                let text = format!("the request cannot be read: {}", error.reason);
                self.say_no(from, hello.client, Code::SERVICE, &text);
            }
        }
    }

    fn handle_accept(&mut self, now: Time, from: SocketAddr, accept: &Accept<'_>) {
        let Some((handle, connecting)) = self.connecting(accept.client, from) else { return };
        let Some(agreed) = connecting.handle_accept(accept) else { return };
        let (local, address) = (connecting.local, connecting.address);
        let Agreed { remote, service, protection } = match agreed {
            Ok(agreed) => agreed,
            Err(error) => return self.fail(handle, error),
        };
        let (outgoing, incoming) = (service.to_server.clone(), service.to_client.clone());
        let begin = Begin { local, remote, address, outgoing, incoming };
        let secret = self.secret.derive();
        let connection = Connection::new(now, begin, protection, self.settings.connection, secret);
        let joined = Joined { connection, asked: None, accept: Vec::new(), is_released: false };
        self.notices.push_back((handle, Notice::Connected { service }));
        self.join(handle, joined);
    }

    /// A peer does not know the connection of this id, which we put in front.
    fn handle_reset(&mut self, now: Time, from: SocketAddr, id: ConnectionId) -> Option<Handle> {
        let handle = self.by_remote.get(&id).copied()?;
        if matches!(self.slots.get(&handle)?.state, State::Elsewhere(_)) {
            return Some(handle);
        }
        if self.connection(handle).is_some_and(|connection| connection.address() == from) {
            self.with(handle, |connection| connection.handle_reset(now));
        }
        None
    }

    fn connecting(&mut self, client: ConnectionId, from: SocketAddr) -> Option<(Handle, &mut Connecting)> {
        let handle = *self.by_id.get(&client)?;
        match &mut self.slots.get_mut(&handle)?.state {
            State::Connecting(connecting) if connecting.address == from => Some((handle, connecting)),
            _ => None,
        }
    }
}
