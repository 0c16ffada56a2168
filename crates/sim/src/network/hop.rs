//! A link, and the way behind it.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_link::{FlowId, Link};
use outflow_media::{Tag, Time};

use super::impair::Channel;
use super::ledger::Fate;

/// A packet on its way.
#[derive(Debug, Clone)]
pub(super) struct Parcel {
    pub(super) flow: u32,
    /// How many links it has behind it.
    pub(super) hops: u16,
    /// Within its flow.
    pub(super) number: u64,
    pub(super) sent: Time,
    /// What it holds, if a relay is to look into it.
    pub(super) payload: Option<Bytes>,
}

/// A packet that will be at the end of a link then.
#[derive(Debug, Clone)]
pub(super) struct Travelling {
    pub(super) at: Time,
    pub(super) parcel: Parcel,
    pub(super) tag: Tag,
    pub(super) bytes: usize,
}

impl Travelling {
    /// As its flow settles it.
    pub(super) fn fate(&self) -> Fate {
        self.parcel.fate(self.tag, self.bytes)
    }
}

impl Parcel {
    /// As its flow settles it.
    pub(super) fn fate(&self, tag: Tag, bytes: usize) -> Fate {
        Fate { number: self.number, sent: self.sent, tag, bytes }
    }
}

/// A link of the network.
#[derive(Debug)]
pub(super) struct Hop {
    /// `None`: it takes everything at once.
    pub(super) link: Option<Link<Parcel>>,
    pub(super) delay: Duration,
    pub(super) channel: Option<Channel>,
    /// It is known when it can take the next packet.
    pub(super) is_awaited: bool,
    /// What comes out of it in the order in which it went in. The first one is awaited.
    pub(super) travelling: VecDeque<Travelling>,
}

impl Hop {
    /// A flow that goes through it.
    pub(super) fn add_flow(&mut self, application: outflow_link::ApplicationId, class: u8) -> Option<FlowId> {
        self.link.as_mut().map(|link| link.add_flow(application, class))
    }
}
