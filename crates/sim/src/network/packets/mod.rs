//! Packets of IP on their ways: what becomes of them at links.

mod flows;
mod key;
mod report;

use std::collections::VecDeque;

use bytes::Bytes;
use outflow_link::FlowId;
use outflow_media::Time;

pub use report::{LinkReport, Report, TrafficReport};

pub(super) use flows::Flows;
pub(super) use key::{Looked, look};

use super::parcel::PacketParcel;
use super::wiring::{Leads, Wiring};

/// A packet that is at an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// The port of the end where it is (see [`World::ports`](super::World::ports)).
    pub port: usize,
    /// When it should be there.
    pub at: Time,
    /// All of it.
    pub packet: Bytes,
}

/// A packet that was lost behind a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The link's number among those of [`Report::links`].
    pub link: usize,
    /// When it would have been at the link's end.
    pub at: Time,
    /// All of it.
    pub packet: Bytes,
}

/// Ways, and what becomes of packets there.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) wiring: Wiring,
    pub(super) flows: Flows,
    /// What is at the end of a way.
    pub(super) came: VecDeque<(usize, Bytes)>,
    pub(super) arrived: Vec<Arrived>,
    /// What was lost, if it is wanted: how many of them at most.
    pub(super) lost: Vec<Lost>,
    pub(super) keeps: usize,
    /// Packets on their way.
    pub(super) held: usize,
    pub(super) report: Report,
}

impl Packets {
    pub(super) fn new(wiring: Wiring) -> Self {
        Packets {
            wiring,
            flows: Flows::default(),
            came: VecDeque::new(),
            arrived: Vec::new(),
            lost: Vec::new(),
            keeps: 0,
            held: 0,
            report: Report::default(),
        }
    }

    /// A packet is on its way no more.
    pub(super) fn gone(&mut self, parcel: &PacketParcel) {
        self.held -= 1;
        self.flows.count(parcel.flow, false);
    }

    pub(super) fn lost(&mut self, link: usize, at: Time, parcel: &PacketParcel, packet: Bytes) {
        self.gone(parcel);
        if self.lost.len() < self.keeps {
            self.lost.push(Lost { link, at, packet });
        }
    }

    pub(super) fn next(&self, parcel: &PacketParcel) -> Option<(usize, Option<FlowId>)> {
        let hop = usize::from(parcel.hops);
        let link = *self.wiring.ways[usize::from(parcel.way)].links.get(hop)?;
        Some((link, self.flows.id(parcel.flow, hop)))
    }

    pub(super) fn copied(&mut self, parcel: &PacketParcel) {
        self.held += 1;
        self.flows.count(parcel.flow, true);
    }

    pub(super) fn delivered(&mut self, parcel: &PacketParcel, packet: Bytes) {
        self.gone(parcel);
        self.came.push_back((usize::from(parcel.way), packet));
    }

    /// What came of it so far, but for links, nodes and traffic.
    pub(super) fn report(&self) -> Report {
        let name = |port: Option<usize>| match port {
            Some(port) => self.wiring.names[self.wiring.ports[port].place].as_str(),
            None => "",
        };
        let media = self.flows.media().filter_map(|(way, key, carries)| {
            let way = &self.wiring.ways[way];
            let from = name(Some(way.from?));
            let to = match way.leads {
                Leads::Port(port) => format!(" > {}", name(Some(port))),
                Leads::Segment(..) => String::new(),
            };
            Some(format!("{from}{to}: {} > {}: {carries}", key.source, key.destination))
        });
        Report { media: media.collect(), ..self.report.clone() }
    }
}

#[cfg(test)]
mod tests;
