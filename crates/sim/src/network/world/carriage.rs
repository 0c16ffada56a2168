//! What links carry: packets of traffic, and packets of IP.

use outflow_link::{Dropped, FlowId};

use super::flows::Flows;
use crate::network::links::{Carrier, Travelling};
use crate::network::packets::{LinkReport, PacketParcel, Packets};
use crate::network::parcel::Parcel;

/// A packet on its way.
#[derive(Debug, Clone)]
pub(super) enum Carried {
    /// Of traffic.
    Traffic(Parcel),
    /// Of IP.
    Packet(PacketParcel),
}

/// All that is known of what is on its way.
#[derive(Debug)]
pub(super) struct Carriage {
    pub(super) flows: Flows,
    pub(super) packets: Packets,
    /// By link.
    pub(super) reports: Vec<LinkReport>,
}

impl Carrier for Carriage {
    type Item = Carried;

    fn next(&self, item: &Carried) -> Option<(usize, Option<FlowId>)> {
        match item {
            Carried::Traffic(parcel) => self.flows.next(parcel),
            Carried::Packet(parcel) => self.packets.next(parcel),
        }
    }

    fn is_final(&self, item: &Carried) -> bool {
        match item {
            Carried::Traffic(parcel) => self.flows.is_final(parcel),
            // It arrives at its time, and not before.
            Carried::Packet(_) => false,
        }
    }

    fn entered(&mut self, link: usize, packet: &Travelling<Carried>) {
        let report = &mut self.reports[link];
        report.packets += 1;
        report.bytes += packet.bytes as u64;
    }

    fn departed(&mut self) {
        self.flows.departed();
    }

    fn passed(&mut self, item: &mut Carried) {
        match item {
            Carried::Traffic(parcel) => parcel.hops += 1,
            Carried::Packet(parcel) => parcel.hops += 1,
        }
    }

    fn dropped(&mut self, link: usize, Dropped { packet, item, reason }: Dropped<Carried>) {
        self.reports[link].drops.add(reason, 1);
        match item {
            Carried::Traffic(parcel) => self.flows.dropped(&parcel, packet.tag, packet.bytes, reason),
            Carried::Packet(parcel) => self.packets.gone(&parcel),
        }
    }

    fn lost(&mut self, link: usize, packet: Travelling<Carried>) {
        self.reports[link].lost += 1;
        match packet.item {
            Carried::Traffic(parcel) => self.flows.lost(&parcel, packet.tag, packet.bytes),
            Carried::Packet(parcel) => self.packets.lost(link, packet.at, parcel),
        }
    }

    fn copied(&mut self, link: usize, packet: &Travelling<Carried>) {
        self.reports[link].copied += 1;
        match &packet.item {
            Carried::Traffic(parcel) => self.flows.copied(parcel, packet.tag, packet.bytes),
            Carried::Packet(parcel) => self.packets.copied(parcel),
        }
    }

    fn delivered(&mut self, packet: Travelling<Carried>) {
        match packet.item {
            Carried::Traffic(parcel) => self.flows.delivered(packet.at, parcel, packet.tag, packet.bytes),
            Carried::Packet(parcel) => self.packets.delivered(parcel),
        }
    }
}
