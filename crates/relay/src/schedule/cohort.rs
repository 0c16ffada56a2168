//! Sinks that are up with the newest packet and want the same: they share a cursor.

use super::{Counters, Priority, SinkKey, SinkSpec, TrackMask};
use crate::buffer::Seq;
use crate::schedule::{Carriage, Transport};

/// What the members of a cohort have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) priority: Priority,
    pub(crate) carriage: Carriage,
    pub(crate) transport: Transport,
    pub(crate) tracks: TrackMask,
}

impl Class {
    pub(crate) fn of(spec: &SinkSpec) -> Self {
        Class {
            priority: spec.priority,
            carriage: spec.carriage,
            transport: spec.transport,
            tracks: spec.tracks,
        }
    }
}

/// A class's members and how far they are.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) class: Class,
    pub(crate) members: Vec<SinkKey>,
    pub(crate) cursor: Seq,
    /// What one who had been a member from the beginning would have been sent.
    pub(crate) totals: Counters,
}

impl Cohort {
    pub(crate) fn new(class: Class, cursor: Seq) -> Self {
        Cohort { class, members: Vec::new(), cursor, totals: Counters::default() }
    }
}
