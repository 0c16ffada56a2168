//! Packets of simulated traffic, on their way.

use bytes::Bytes;
use outflow_media::Time;

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
