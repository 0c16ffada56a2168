//! A client that asks for a service, until it is answered.

use core::net::SocketAddr;
use core::time::Duration;

use outflow_media::{Backoff, Time};
use outflow_petri::service::{Request, Service};

use super::ConnectError;
use crate::packet::{Accept, ConnectionId, Hello, Refuse, Retry, VERSION};
use crate::protection::{ClientHandshake, Protection};

/// Waits until a hello is sent again.
const AGAIN: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));

/// Retries that are believed: a server needs one.
const RETRIES_MAX: u32 = 4;

pub(super) struct Connecting {
    pub(super) local: ConnectionId,
    pub(super) address: SocketAddr,
    request: Request,
    handshake: Box<dyn ClientHandshake>,
    /// What the handshake made of the request: the same each time it is sent.
    service: Vec<u8>,
    cookie: Vec<u8>,
    retries: u32,
    send_at: Time,
    backoff: Backoff,
    until: Time,
}

/// What a server agreed to.
pub(super) struct Agreed {
    pub(super) remote: ConnectionId,
    pub(super) service: Service,
    pub(super) protection: Box<dyn Protection>,
}

impl Connecting {
    pub(super) fn new(
        now: Time,
        local: ConnectionId,
        address: SocketAddr,
        request: Request,
        mut handshake: Box<dyn ClientHandshake>,
        patience: Duration,
    ) -> Result<Self, ConnectError> {
        let mut bytes = Vec::new();
        request.emit(&mut bytes)?;
        Ok(Connecting {
            local,
            address,
            service: handshake.hello(&bytes)?,
            request,
            handshake,
            cookie: Vec::new(),
            retries: 0,
            send_at: now,
            backoff: AGAIN,
            until: now + patience,
        })
    }

    pub(super) fn next_timeout(&self) -> Time {
        self.send_at.min(self.until)
    }

    pub(super) fn is_hopeless(&self, now: Time) -> bool {
        self.until <= now
    }

    /// The hello, if it is to be sent (again).
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        if now < self.send_at {
            return false;
        }
        self.send_at = now + self.backoff.wait();
        out.clear();
        let hello = Hello { client: self.local, cookie: &self.cookie, service: &self.service };
        hello.emit(out).is_ok()
    }

    pub(super) fn handle_retry(&mut self, now: Time, retry: &Retry<'_>) {
        if self.retries < RETRIES_MAX && self.cookie != retry.cookie {
            self.retries += 1;
            retry.cookie.clone_into(&mut self.cookie);
            (self.send_at, self.backoff) = (now, AGAIN);
        }
    }

    /// What the server agreed to. Nothing if that is not from the server: the right one may still come.
    pub(super) fn handle_accept(&mut self, accept: &Accept<'_>) -> Option<Result<Agreed, ConnectError>> {
        let (service, protection) = self.handshake.accept(accept.service)?;
        let service = match Service::parse(&service) {
            Ok(service) => service,
            Err(error) => return Some(Err(ConnectError::Malformed(error))),
        };
        if let Err(error) = service.is_within(&self.request) {
            return Some(Err(ConnectError::NotAsked(error)));
        }
        Some(Ok(Agreed { remote: accept.server, service, protection }))
    }

    pub(super) fn refused(refuse: &Refuse<'_>) -> ConnectError {
        if refuse.version == VERSION {
            ConnectError::Refused { code: refuse.code, text: refuse.text.to_owned() }
        } else {
            ConnectError::OtherVersion { theirs: refuse.version }
        }
    }
}
