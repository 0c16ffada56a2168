//! What links carry: packets of traffic, and packets of IP.

use bytes::Bytes;
use outflow_link::{Dropped, FlowId};

use super::flows::Flows;
use crate::network::links::{Carrier, Travelling};
use crate::network::packets::{LinkReport, Packets};
use crate::network::parcel::{PacketParcel, Parcel, Payloads};

/// A packet on its way.
#[derive(Debug, Clone)]
pub(super) enum Carried {
    /// Of traffic.
    Traffic(Parcel),
    /// Of IP.
    Packet(PacketParcel),
}

// Links move packets from place to place, often.
const _: () = assert!(size_of::<Carried>() <= 32, "what packets hold stands apart");

/// All that is known of what is on its way.
#[derive(Debug)]
pub(super) struct Carriage {
    pub(super) flows: Flows,
    pub(super) packets: Packets,
    pub(super) payloads: Payloads,
    /// By link.
    pub(super) reports: Vec<LinkReport>,
}

impl Carriage {
    /// A packet of traffic goes no further.
    fn release(&mut self, parcel: &Parcel) -> Option<Bytes> {
        parcel.payload.map(|number| self.payloads.take(number))
    }

    /// A packet of IP goes no further, and comes nowhere.
    fn gone(&mut self, parcel: &PacketParcel) {
        self.payloads.take(parcel.packet);
        self.packets.gone(parcel);
    }

    /// Whether something has come that goes on.
    pub(super) fn has_come(&self) -> bool {
        !self.flows.arrived.is_empty() || !self.packets.came.is_empty()
    }
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
            Carried::Traffic(parcel) => {
                self.release(&parcel);
                self.flows.dropped(&parcel, packet.tag, packet.bytes, reason);
            }
            Carried::Packet(parcel) => self.gone(&parcel),
        }
    }

    fn lost(&mut self, link: usize, packet: Travelling<Carried>) {
        self.reports[link].lost += 1;
        match packet.item {
            Carried::Traffic(parcel) => {
                self.release(&parcel);
                self.flows.lost(&parcel, packet.tag, packet.bytes);
            }
            Carried::Packet(parcel) => {
                let held = self.payloads.take(parcel.packet);
                self.packets.lost(link, packet.at, &parcel, held);
            }
        }
    }

    fn copied(&mut self, link: usize, packet: &Travelling<Carried>) {
        self.reports[link].copied += 1;
        match &packet.item {
            Carried::Traffic(parcel) => {
                parcel.payload.into_iter().for_each(|number| self.payloads.copied(number));
                self.flows.copied(parcel, packet.tag, packet.bytes);
            }
            Carried::Packet(parcel) => {
                self.payloads.copied(parcel.packet);
                self.packets.copied(parcel);
            }
        }
    }

    fn delivered(&mut self, packet: Travelling<Carried>) {
        match packet.item {
            Carried::Traffic(parcel) => {
                let payload = self.release(&parcel);
                self.flows.delivered(packet.at, &parcel, (packet.tag, packet.bytes), payload);
            }
            Carried::Packet(parcel) => {
                let held = self.payloads.take(parcel.packet);
                self.packets.delivered(&parcel, held);
            }
        }
    }
}
