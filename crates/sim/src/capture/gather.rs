//! The datagrams of a capture, by flow.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::datagram::{self, Datagram};
use super::error::Skipped;
use super::records::Records;
use crate::limits::CAPTURE_FLOWS_MAX;

/// A flow while it is gathered.
#[derive(Debug)]
pub(super) struct Gathered<'a> {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) packets: Vec<Recorded<'a>>,
}

/// A datagram as it was recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded<'a> {
    /// Nanoseconds, from whenever the capture counts.
    pub(super) nanos: i128,
    pub(super) bytes: usize,
    pub(super) payload: &'a [u8],
    pub(super) is_cut_off: bool,
}

/// The datagrams of a capture, by flow.
pub(super) fn gather<'a>(mut records: Records<'a>, skipped: &mut Skipped) -> Vec<Gathered<'a>> {
    let mut known: BTreeMap<(SocketAddr, SocketAddr), usize> = BTreeMap::new();
    let mut flows: Vec<Gathered<'a>> = Vec::new();
    while let Some(record) = records.next(skipped) {
        let Datagram { source, destination, bytes, payload } = match datagram::read(record.link, record.data)
        {
            Ok(datagram) => datagram,
            Err(reason) => {
                *skipped.entry(reason).or_default() += 1;
                continue;
            }
        };
        let packet =
            Recorded { nanos: record.nanos, bytes, payload, is_cut_off: record.data.len() < record.bytes };
        let at = *known.entry((source, destination)).or_insert(flows.len());
        if at == flows.len() && at < CAPTURE_FLOWS_MAX {
            flows.push(Gathered { source, destination, packets: Vec::new() });
        }
        match flows.get_mut(at) {
            Some(flow) => flow.packets.push(packet),
            None => *skipped.entry("of a flow too many").or_default() += 1,
        }
    }
    flows
}
