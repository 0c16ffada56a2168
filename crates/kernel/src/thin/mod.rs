//! Levels between routers, in the kernel: packets that say their layer, by a mark or by the priority that a session
//! description makes known (RFC 5372), go to each interface as far as they are wanted
//! there, with the numbers that they have there (`bpf/thin.c`). The same rules in user space: [`outflow_packet::gmc`].
//!
//! The filter sits where packets come in, as long as this process is there, and leaves them to the kernel as they came:
//! interfaces that want all are the business of its multicast routing. A flow with a packet that it cannot judge becomes
//! user space's, for good, which reads how far its tracks are.

mod layout;
#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicU32, Ordering};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya_obj::generated::{BPF_F_NO_PREALLOC, bpf_map_type, bpf_prog_type};
use outflow_packet::gmc::{Closed, Prioritized};
use outflow_packet::{Level, MaxLayer};
use outflow_rtp::payload::PrioritiesRead;

use self::layout::{CountsEntry, Flow, FlowKey, TrackEntry, TrackKey};
use crate::bpf;
use crate::bpf::{Entries, MapShape};
use crate::error::KernelError;
use crate::object::{Aligned, Code};

/// `struct packet` of `bpf/thin.c`, which is for that alone.
const PACKET_BYTES: usize = 64;

/// Compiled by `build.rs`.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/thin.o")));

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Packets of a source to a group that come in by an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowId {
    /// Their source.
    pub source: IpAddr,
    /// Their group, of the same family.
    pub group: IpAddr,
    /// The index of the interface.
    pub ifindex: u32,
}

/// An interface that some of them go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Its index. It is one of Ethernet.
    pub ifindex: u32,
    /// Another one, and never 0, each time that its place is given to a way.
    pub epoch: u32,
    /// Its address.
    pub source_mac: [u8; 6],
    /// Bytes of an IP packet that goes there whole.
    pub mtu: u32,
    /// What is wanted there.
    pub level: Level,
    /// What of a track goes there to begin with.
    pub begins: MaxLayer,
}

/// A track of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackId {
    /// The port that its packets are for.
    pub port: u16,
    /// Their source (RFC 3550, section 5.1).
    pub ssrc: u32,
}

/// How far a track is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// Which one it is.
    pub id: TrackId,
    /// If it is described: the payload type of its packets, and how far they were read.
    pub reading: Option<(u8, PrioritiesRead)>,
    /// At each place.
    pub states: Vec<State>,
}

/// How far a track is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Of the way that it is of; of an earlier one, it says nothing of the way that is there.
    pub epoch: u32,
    /// The highest layer that goes there.
    pub max_layer: MaxLayer,
    /// Its numbers there.
    pub closed: Closed,
}

/// What was done, of all flows of a version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Packets that were judged.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Copies that were sent.
    pub copies: u64,
    /// Copies that were left out, as their layer is not wanted at their interface.
    pub thinned: u64,
    /// Copies that an interface did not take: it is gone, or its queue is full.
    pub failed: u64,
    /// Flows that became user space's, as of their packets one could not be judged: merged ones, ones with options, or
    /// longer than an interface allows, and tracks that are too many.
    pub handed_over: u64,
    /// Packets of a wrong length or checksum, or whose TTL allows them to go no farther: no router forwards them.
    pub unfit: u64,
}

/// The filter, with what it is told. Dropping it takes all of it out of the kernel, once it sits nowhere.
#[derive(Debug)]
pub struct Filter {
    flows: Entries<FlowKey, Flow>,
    tracks: Entries<TrackKey, TrackEntry>,
    tracks_max: u32,
    counts: Entries<u32, CountsEntry>,
    /// How many places were given.
    epochs: AtomicU32,
    thin: OwnedFd,
    thin_v6: OwnedFd,
    hear: OwnedFd,
}

/// The filter sits at an interface as long as this is there.
#[derive(Debug)]
#[must_use = "it is taken away with this"]
pub struct Seat(#[expect(dead_code, reason = "it is held")] OwnedFd);

impl Filter {
    /// Loads the programs. Of more tracks than `tracks_max`, those that were not used for longest begin again.
    ///
    /// # Errors
    /// What is missing, with what to do about it.
    pub fn open(flows_max: u32, tracks_max: u32) -> Result<Self, KernelError> {
        let (hash, lru) = (bpf_map_type::BPF_MAP_TYPE_HASH, bpf_map_type::BPF_MAP_TYPE_LRU_HASH);
        let shape = |kind, name, key_bytes, value_bytes, entries, flags| MapShape {
            kind,
            name,
            key_bytes,
            value_bytes,
            entries,
            flags,
        };
        let array = |name, value_bytes| MapShape { flags: 0, ..MapShape::array(name, value_bytes, 1) };
        let shapes = [
            shape(hash, "flows", size_of::<FlowKey>(), size_of::<Flow>(), flows_max, BPF_F_NO_PREALLOC),
            shape(lru, "tracks", size_of::<TrackKey>(), size_of::<TrackEntry>(), tracks_max, 0),
            array("blank", size_of::<TrackEntry>()),
            MapShape { kind: bpf_map_type::BPF_MAP_TYPE_PERCPU_ARRAY, ..array("packets", PACKET_BYTES) },
            MapShape { entries: 2, ..array("thin_counts", size_of::<CountsEntry>()) },
        ];
        let code = Code::new(OBJECT, &shapes)?;
        let thin = code.load(bpf_prog_type::BPF_PROG_TYPE_SCHED_CLS, "thin")?;
        let thin_v6 = code.load(bpf_prog_type::BPF_PROG_TYPE_SCHED_CLS, "thin_v6")?;
        let hear = code.load(bpf_prog_type::BPF_PROG_TYPE_SOCKET_FILTER, "hear")?;
        let map =
            |name| code.map(name).try_clone_to_owned().map_err(|e| KernelError::new("keeping a BPF map", e));
        let (flows, tracks) = (Entries::new(map("flows")?), Entries::new(map("tracks")?));
        let (counts, epochs) = (Entries::new(map("thin_counts")?), AtomicU32::new(0));
        Ok(Filter { flows, tracks, tracks_max, counts, epochs, thin, thin_v6, hear })
    }

    /// Puts it at the ingress of an interface, which is one of Ethernet, for packets of a version of IP. It needs no
    /// privileges any more.
    ///
    /// # Errors
    /// Kernels older than 6.6 cannot.
    pub fn attach(&self, version: Version, ifindex: u32) -> Result<Seat, KernelError> {
        let program = match version {
            Version::V4 => &self.thin,
            Version::V6 => &self.thin_v6,
        };
        let seat = bpf::attach_ingress(program, ifindex);
        seat.map(Seat).map_err(|e| KernelError::new("attaching the filter to an interface", e))
    }

    /// The program of a packet socket that gets the packets of flows that are user space's (`SO_ATTACH_BPF`).
    pub fn hear(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }

    /// The epoch of the next way that gets a place.
    pub fn next_epoch(&self) -> u32 {
        // 0 is that of no way.
        match self.epochs.fetch_add(1, Ordering::Relaxed).wrapping_add(1) {
            0 => self.next_epoch(),
            epoch => epoch,
        }
    }

    /// Sets where packets of a flow go, and which of them say their layer by their priority: each way stays at its
    /// place. False if there is no room.
    pub fn set(&self, flow: &FlowId, places: &[Option<Way>], described: &[Prioritized]) -> bool {
        Flow::new(places, described).is_some_and(|entry| self.flows.set(&flow.into(), &entry).is_ok())
    }

    /// User space forwards a flow from now on. False if there is no room for that.
    pub fn give(&self, flow: &FlowId) -> bool {
        self.flows.set(&flow.into(), &Flow::BY_USER).is_ok()
    }

    /// Whether that was said, or the filter has found that it has to.
    pub fn is_given(&self, flow: &FlowId) -> bool {
        self.flows.get(&flow.into()).is_some_and(|flow| flow.by_user != 0)
    }

    /// Forgets a flow. Its tracks go when others need their room; if it comes again, its ways have other epochs, and they
    /// begin there.
    pub fn remove(&self, flow: &FlowId) {
        self.flows.remove(&flow.into());
    }

    /// The tracks of a flow, and how far they are.
    pub fn tracks(&self, flow: &FlowId) -> Vec<Track> {
        let flow = FlowKey::from(flow);
        let keys = self.tracks.keys(self.tracks_max).into_iter().filter(|key| key.flow == flow);
        let track = |key: TrackKey| {
            let entry = self.tracks.get(&key)?;
            Some(Track { id: key.id(), reading: entry.reading(), states: entry.states() })
        };
        keys.filter_map(track).collect()
    }

    /// What was done with packets of a version of IP.
    pub fn counts(&self, version: Version) -> Counts {
        let Some(counts) = self.counts.get(&(version as u32)) else { return Counts::default() };
        let CountsEntry { packets, bytes, copies, thinned, failed, handed_over, unfit } = counts;
        Counts { packets, bytes, copies, thinned, failed, handed_over, unfit }
    }
}
