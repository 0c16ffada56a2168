//! The end that sends.

use core::net::SocketAddr;
use core::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use outflow_media::{Backoff, Tag, Time};
use outflow_petri::service::{Class, Request};
use outflow_poc::connection::{Connection, Event, Worth};
use outflow_poc::endpoint::{Handle, Notice};
use outflow_poc::protection::Plain;

use super::super::{Figures, Node, Place};
use super::{End, PORT, PocSenderModel};
use crate::network::traffic::{Emission, HEADERS};

/// Waits until a receiver that was not there, or is gone, is connected to again: as relays wait.
const AGAIN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Sends traffic by the transport. A packet that comes before there is a connection, or when too much waits
/// already, is dropped: nothing keeps it, as the ring of a relay would.
#[derive(Debug)]
pub(in crate::network) struct PocSender {
    end: End,
    to: SocketAddr,
    request: Request,
    useful_for: Option<Duration>,
    /// What is asked for, or is there.
    handle: Option<Handle>,
    is_connected: bool,
    connect_at: Option<Time>,
    again: Backoff,
    connections: u64,
    units: u64,
    dropped: u64,
    given_up: u64,
    lost: u64,
    /// By connections that are over.
    repeated: u64,
}

impl PocSender {
    /// One that connects at once.
    ///
    /// # Errors
    /// The model cannot be, or the receiver is on no segment that the sender is on.
    pub(in crate::network) fn new(
        now: Time,
        model: &PocSenderModel,
        place: &Place<'_>,
    ) -> Result<Self, String> {
        let request = model.request()?;
        let useful_for = request.to_server.as_ref().and_then(|flow| model.useful_for(flow));
        let (_, port) = (place.neighbour)(&model.to)
            .ok_or("no segment joins them: list both in one segment, or send to a node that is on one")?;
        Ok(PocSender {
            end: End::new(model.settings(), place, None),
            to: (port.v4, PORT).into(),
            request,
            useful_for,
            handle: None,
            is_connected: false,
            connect_at: Some(now),
            again: AGAIN,
            connections: 0,
            units: 0,
            dropped: 0,
            given_up: 0,
            lost: 0,
            repeated: 0,
        })
    }

    fn connect(&mut self, now: Time) {
        let asked = self.end.endpoint.connect(now, self.to, self.request.clone(), Box::new(Plain));
        self.handle = asked.ok();
        self.connect_at = self.handle.is_none().then(|| now + self.again.wait());
    }

    /// What follows from what the endpoint was told.
    fn follow(&mut self, now: Time) {
        while let Some((handle, notice)) = self.end.endpoint.poll() {
            match notice {
                Notice::Connected { .. } => {
                    self.again.reset();
                    self.is_connected = true;
                    self.connections += 1;
                }
                Notice::Failed(_) => self.lose(now),
                Notice::Ready => self.read(now, handle),
                // Nothing can be asked for here.
                Notice::Asked { .. } => {}
            }
        }
    }

    fn read(&mut self, now: Time, handle: Handle) {
        while let Some(event) = self.end.endpoint.read(handle) {
            match event {
                Event::GivenUp { .. } => self.given_up += 1,
                Event::Lost { .. } => self.lost += 1,
                Event::Closed(_) => {
                    self.repeated += self.end.endpoint.connection(handle).map_or(0, repeated);
                    self.end.endpoint.release(now, handle);
                    self.lose(now);
                }
                Event::Delivered { .. } | Event::Missed { .. } | Event::Writable => {}
            }
        }
    }

    /// There is no connection, or none any more.
    fn lose(&mut self, now: Time) {
        (self.handle, self.is_connected) = (None, false);
        self.connect_at = Some(now + self.again.wait());
    }
}

impl Node for PocSender {
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        self.end.handle_packet(now, port, packet);
        self.follow(now);
    }

    fn handle_traffic(&mut self, now: Time, packet: &Emission) {
        let handle = self.handle.filter(|_| self.is_connected);
        let worth = worth(&packet.tag, self.useful_for);
        let sent = handle.map(|handle| self.end.endpoint.send(now, handle, None, unit(packet), worth));
        *(if matches!(sent, Some(Ok(_))) { &mut self.units } else { &mut self.dropped }) += 1;
        self.follow(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.endpoint.handle_timeout(now);
        self.follow(now);
        if self.connect_at.is_some_and(|at| at <= now) {
            self.connect(now);
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.connect_at.into_iter().chain(self.end.endpoint.next_timeout()).min()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Bytes)> {
        self.end.poll_transmit(now)
    }

    fn figures(&self, _now: Time) -> Figures {
        let connection = self.handle.and_then(|handle| self.end.endpoint.connection(handle));
        Figures::from([
            ("connections", self.connections as f64),
            ("units", self.units as f64),
            ("bytes_sent", self.end.bytes_sent as f64),
            ("repeated", (self.repeated + connection.map_or(0, repeated)) as f64),
            ("given_up", self.given_up as f64),
            ("lost", self.lost as f64),
            ("dropped", self.dropped as f64),
        ])
    }
}

/// Pieces of units that were lost and go again, and further copies of them.
fn repeated(connection: &Connection) -> u64 {
    let repairs = connection.outgoing_counts().repairs;
    repairs.again + repairs.copies
}

/// A packet as relays carry it: its channel, then the packet of RTP, or as many zeros as it has bytes.
fn unit(packet: &Emission) -> Bytes {
    let bytes = packet.payload.as_ref().map_or(packet.bytes.saturating_sub(HEADERS), Bytes::len);
    let mut unit = BytesMut::with_capacity(1 + bytes);
    unit.put_u8(packet.tag.track.wrapping_mul(2));
    match &packet.payload {
        Some(payload) => unit.put_slice(payload),
        None => unit.put_bytes(0, bytes),
    }
    unit.freeze()
}

/// What a relay says of a packet that has just come.
fn worth(tag: &Tag, useful_for: Option<Duration>) -> Worth {
    let importance = tag.importance();
    let class = (!importance.is_key()).then_some(Class::Partial);
    Worth { useful_for, class, rank: importance.rank() }
}

#[cfg(test)]
mod tests {
    use outflow_media::Kind;

    use super::*;

    #[test]
    fn what_decoding_needs_is_sent_as_reliably_as_the_service_allows() {
        let of = |kind, layer| worth(&Tag { kind, layer, ..Tag::default() }, None);
        assert!(
            [of(Kind::Header, 0), of(Kind::Intra, 0), of(Kind::Data, 0)].iter().all(|w| w.class.is_none())
        );
        for less in [of(Kind::Intra, 1), of(Kind::Predicted, 0), of(Kind::Bidirectional, 0)] {
            assert_eq!(less.class, Some(Class::Partial));
            assert!(less.rank < of(Kind::Intra, 0).rank);
        }
    }

    #[test]
    fn a_unit_is_the_channel_and_the_packet() {
        let tag = Tag { track: 3, ..Tag::default() };
        let payload = Some(Bytes::from_static(b"packet"));
        assert_eq!(unit(&Emission { tag, bytes: 34, payload }), b"\x06packet"[..]);
        assert_eq!(unit(&Emission { tag, bytes: 30, payload: None }), b"\x06\0\0"[..]);
        assert_eq!(unit(&Emission { tag, bytes: 5, payload: None }), b"\x06"[..]);
    }
}
