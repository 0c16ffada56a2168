//! The directory: which relay has the stream.

use core::net::{Ipv4Addr, SocketAddr};
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::Time;

use super::super::{Figures, Node, Place, udp};
use super::limits::{CONTROL, OFFERS_MAX};
use super::wire::Said;
use super::{DirectoryModel, STREAM, contact, id};
use crate::trees;

/// Where relays of a tree find each other.
#[derive(Debug)]
pub(in crate::network) struct Directory {
    /// Its addresses.
    ports: Vec<Ipv4Addr>,
    entries: trees::Directory,
    random: fastrand::Rng,
    questions: u64,
    outbox: VecDeque<(usize, Bytes)>,
}

impl Directory {
    /// One that knows of no relay.
    ///
    /// # Errors
    ///
    /// It is on no segment.
    pub(in crate::network) fn new(_: Time, _: &DirectoryModel, place: &Place<'_>) -> Result<Self, String> {
        if place.ports.is_empty() {
            return Err("a directory has to be on a segment".to_owned());
        }
        Ok(Directory {
            ports: place.ports.iter().map(|port| port.v4).collect(),
            entries: trees::Directory::new(),
            random: fastrand::Rng::with_seed(place.seed),
            questions: 0,
            outbox: VecDeque::new(),
        })
    }

    fn answer(&mut self, now: Time, port: usize, to: Ipv4Addr) {
        self.questions += 1;
        let offers = self.entries.answer(now, STREAM, contact(to), &mut self.random);
        for part in offers.chunks(OFFERS_MAX) {
            let said = Said::Offers(part.to_vec()).emit();
            let from = (self.ports[port], CONTROL).into();
            let packet = udp::datagram(from, (to, CONTROL).into(), &said);
            self.outbox.extend(packet.map(|packet| (port, packet)));
        }
    }
}

impl Node for Directory {
    fn handle_packet(&mut self, now: Time, port: usize, packet: &Bytes) {
        let Some((SocketAddr::V4(from), to, payload)) = udp::payload(packet) else { return };
        let is_here = self.ports.get(port).is_some_and(|here| to == (*here, CONTROL).into());
        let Some(said) = Said::parse(&payload).filter(|_| is_here) else { return };
        let from = *from.ip();
        match said {
            Said::Register(offer) if offer.contact == contact(from) => {
                self.entries.put(now, STREAM, id(from), Some(offer));
            }
            Said::Withdraw => self.entries.put(now, STREAM, id(from), None),
            Said::Lookup => self.answer(now, port, from),
            _ => (),
        }
    }

    fn handle_timeout(&mut self, _: Time) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn poll_transmit(&mut self, _: Time) -> Option<(usize, Bytes)> {
        self.outbox.pop_front()
    }

    fn figures(&self, now: Time) -> Figures {
        Figures::from([("entries", self.entries.len(now) as f64), ("questions", self.questions as f64)])
    }
}
