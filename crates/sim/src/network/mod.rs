//! Networks in virtual time: traffic through links, each the very [`Link`](outflow_link::Link) that shapes
//! live traffic, with delay, loss, reordering and duplication behind it.
//!
//! Relays may stand between links: of every stream that goes to one, the very core that runs live decides what
//! goes where.
//!
//! A [`Network`] is data; [`play`] runs it and says of all traffic what arrived, what of that can be decoded, and
//! why the rest is missing. All chance comes from its seed, and each flow has its own: a change to one thing does
//! not change what chance brings to another, so policies are compared over the same packets.

mod account;
mod check;
mod impair;
mod ledger;
mod links;
mod model;
mod node;
mod nodes;
mod outcome;
mod packets;
mod parcel;
mod paths;
mod reach;
mod rng;
mod segments;
mod traffic;
mod units;
mod wiring;
mod world;

#[cfg(test)]
mod tests;

pub use account::account;
pub use check::Captures;
pub use impair::{Bursts, Impairments, Outages, Reordering};
pub use links::{Carrier, LinkEvent, Links, Travelling};
pub use model::{BufferModel, Counting, LinkModel, Network, NetworkError, Scheduler, Size, TrafficModel};
pub use nodes::{
    DirectoryModel, Figures, GroupWant, HostModel, NodeModel, PocReceiverModel, PocSenderModel, RouterModel,
    TreeRelayModel, TreeWant,
};
pub use outcome::{Delays, FlowOutcome, NetworkOutcome, TrafficOutcome};
pub use packets::{Arrived, LinkReport, Lost, Report, TrafficReport};
pub use paths::{EndModel, PathModel};
pub use segments::SegmentModel;
pub use traffic::{
    CapturedModel, DataModel, LayeredModel, Model, Offering, Only, PacketSize, Sizes, VideoModel,
};
pub use wiring::{On, PortPlace, ports};
pub use world::{World, play};

pub use crate::agenda::Agenda;

pub use units::quantity;
