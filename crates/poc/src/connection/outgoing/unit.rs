//! A unit at its sender.

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::service::Class;

use super::super::ranges::Ranges;

/// What is known of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not all of it is known to have come.
    Open,
    /// All of it came.
    Acked,
    /// It is not sent, or not sent again.
    GivenUp,
}

#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// What it is; nothing as soon as its fate is known.
    pub(super) data: Bytes,
    pub(super) bytes: u32,
    /// What was sent of it, again or not.
    pub(super) sent: u32,
    pub(super) is_begun: bool,
    pub(super) acked: Ranges,
    pub(super) until: Option<Time>,
    pub(super) class: Class,
    pub(super) fate: Fate,
}

impl Unit {
    pub(super) fn new(data: Bytes, until: Option<Time>, class: Class) -> Self {
        let bytes = data.len() as u32;
        let acked = Ranges::default();
        Unit { data, bytes, sent: 0, is_begun: false, acked, until, class, fate: Fate::Open }
    }

    /// A unit without data, given up from the start.
    pub(super) fn absent() -> Self {
        Unit { fate: Fate::GivenUp, ..Unit::new(Bytes::new(), None, Class::Unreliable) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.fate == Fate::Open
    }

    /// Whether these bytes of it, if it has any, are not known to have come.
    pub(super) fn lacks(&self, from: u32, to: u32) -> bool {
        self.is_open() && (self.bytes == 0 || !self.acked.contains(from, to))
    }

    /// Ends it.
    pub(super) fn close(&mut self, fate: Fate) {
        self.fate = fate;
        self.data = Bytes::new();
        self.acked = Ranges::default();
    }

    /// Bytes that wait to be sent for the first time.
    pub(super) fn queued(&self) -> u32 {
        if self.is_open() { self.bytes - self.sent } else { 0 }
    }
}
