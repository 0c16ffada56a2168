//! What user space and the filter share. The same layout in C: `bpf/thin.h`.

use core::net::IpAddr;

use outflow_packet::gmc::{Closed, Prioritized};
use outflow_packet::limits::TRACKS_MAX;
use outflow_packet::{Level, MaxLayer};
use outflow_rtp::payload::PrioritiesRead;

use super::{FlowId, State, TrackId, Way};
use crate::limits::WAYS_MAX;
use crate::shared::Plain;

/// `struct flow_key`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowKey {
    source: [u8; 16],
    group: [u8; 16],
    ifindex: u32,
}

/// `struct way`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct WayEntry {
    ifindex: u32,
    epoch: u32,
    source_mac: [u8; 6],
    level: u8,
    begins: u8,
}

/// `struct described`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct DescribedEntry {
    port: [u8; 2],
    payload_type: u8,
    is_there: u8,
}

/// `struct flow`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) by_user: u32,
    places: u32,
    tracks: u32,
    mtu: u32,
    ways: [WayEntry; WAYS_MAX],
    described: [DescribedEntry; TRACKS_MAX],
}

/// `struct track_key`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrackKey {
    pub(super) flow: FlowKey,
    ssrc: [u8; 4],
    port: [u8; 2],
    unused: u16,
}

/// `struct state`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct StateEntry {
    recent: u64,
    epoch: u32,
    newest: u16,
    left_out: u16,
    has_newest: u8,
    max_layer: u8,
    unused: [u8; 6],
}

/// `struct reading`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct ReadingEntry {
    timestamp: u32,
    part_end: u32,
    highest: u16,
    payload_type: u8,
    layers: u8,
    is_there: u8,
    has_begun: u8,
    has_part_end: u8,
    by_tile_part: u8,
}

/// `struct track`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackEntry {
    states: [StateEntry; WAYS_MAX],
    reading: ReadingEntry,
}

/// `struct thin_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CountsEntry {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) copies: u64,
    pub(super) thinned: u64,
    pub(super) failed: u64,
    pub(super) handed_over: u64,
    pub(super) unfit: u64,
}

const _: () = assert!(size_of::<FlowKey>() == 36 && size_of::<TrackKey>() == 44, "as in thin.h");
const _: () = assert!(size_of::<WayEntry>() == 16 && size_of::<DescribedEntry>() == 4, "as in thin.h");
const _: () = assert!(size_of::<Flow>() == 16 + 16 * WAYS_MAX + 4 * TRACKS_MAX, "as in thin.h");
const _: () =
    assert!(size_of::<StateEntry>() == 24 && size_of::<TrackEntry>() == 24 * WAYS_MAX + 16, "as in thin.h");

// SAFETY: integers without padding between them; any bytes are a valid value.
unsafe impl Plain for FlowKey {}
// SAFETY: as above.
unsafe impl Plain for Flow {}
// SAFETY: as above.
unsafe impl Plain for TrackKey {}
// SAFETY: as above.
unsafe impl Plain for TrackEntry {}
// SAFETY: as above.
unsafe impl Plain for CountsEntry {}
// SAFETY: an integer; any bytes are a valid value.
unsafe impl Plain for u32 {}

impl From<&FlowId> for FlowKey {
    fn from(id: &FlowId) -> Self {
        FlowKey { source: octets(id.source), group: octets(id.group), ifindex: id.ifindex }
    }
}

/// An address, with zeros behind one of IPv4.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&address.octets());
            octets
        }
        IpAddr::V6(address) => address.octets(),
    }
}

impl Flow {
    pub(super) const BY_USER: Flow = Flow {
        by_user: 1,
        places: 0,
        tracks: 0,
        mtu: 0,
        ways: [WayEntry { ifindex: 0, epoch: 0, source_mac: [0; 6], level: 0, begins: 0 }; WAYS_MAX],
        described: [DescribedEntry { port: [0; 2], payload_type: 0, is_there: 0 }; TRACKS_MAX],
    };

    /// One with these ways, each at its place, and these described tracks; nothing if there is no room for all.
    pub(super) fn new(places: &[Option<Way>], described: &[Prioritized]) -> Option<Self> {
        if places.len() > WAYS_MAX || described.len() > TRACKS_MAX {
            return None;
        }
        let mtu = places.iter().flatten().map(|way| way.mtu).min().unwrap_or(0);
        let mut flow = Flow { by_user: 0, places: places.len() as u32, mtu, ..Flow::BY_USER };
        for (entry, way) in flow.ways.iter_mut().zip(places) {
            let Some(Way { ifindex, epoch, source_mac, level, begins, mtu: _ }) = *way else { continue };
            let (level, begins) = (level.number(), begins.layer());
            *entry = WayEntry { ifindex, epoch, source_mac, level, begins };
        }
        for (entry, Prioritized { port, payload_type }) in flow.described.iter_mut().zip(described) {
            let (port, payload_type) = (port.to_be_bytes(), *payload_type);
            *entry = DescribedEntry { port, payload_type, is_there: 1 };
        }
        Some(flow)
    }
}

impl TrackKey {
    pub(super) fn id(&self) -> TrackId {
        TrackId { port: u16::from_be_bytes(self.port), ssrc: u32::from_be_bytes(self.ssrc) }
    }
}

impl TrackEntry {
    /// How far it is at each place.
    pub(super) fn states(&self) -> Vec<State> {
        let state = |entry: &StateEntry| State {
            epoch: entry.epoch,
            max_layer: MaxLayer::up_to(entry.max_layer),
            closed: Closed::resume(
                (entry.has_newest != 0).then_some(entry.newest),
                entry.left_out,
                entry.recent,
            ),
        };
        self.states.iter().map(state).collect()
    }

    /// If it is described: the payload type of its packets, and how far they were read.
    pub(super) fn reading(&self) -> Option<(u8, PrioritiesRead)> {
        let reading = self.reading;
        let read = PrioritiesRead {
            newest: (reading.has_begun != 0).then_some((reading.highest, reading.timestamp)),
            layers: reading.layers.max(1),
            by_tile_part: reading.by_tile_part != 0,
            part_end: (reading.has_part_end != 0).then_some(reading.part_end),
        };
        (reading.is_there != 0).then_some((reading.payload_type, read))
    }
}

const _: () = assert!(Level::MAX == 128, "as ALL_LAYERS in thin.h");
