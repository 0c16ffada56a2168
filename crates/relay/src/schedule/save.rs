//! Sinks of another process take their places in a branch again.

use outflow_packet::DropReason;

use super::branch::Branch;
use super::ids::SinkKey;
use super::sink::{Place, Sink, Sinks};
use super::splice::Splice;
use crate::save::SavedSplice;
use outflow_ring::Seq;

impl Branch {
    /// A sink takes the place that it had: `behind` packets are owed to it. Those that are not here it has lost.
    pub(crate) fn put_back(&mut self, sinks: &mut Sinks, key: SinkKey, behind: u64) {
        let (first, head) = (self.ring.first(), self.ring.head());
        let lost = behind.saturating_sub(head - first);
        let Some(sink) = sinks.get_mut(key.0) else { return };
        sink.branch = Some(self.index);
        if lost > 0 {
            sink.drops.add(DropReason::SlowSink, lost);
            sink.broken = sink.spec.tracks;
        }
        self.place_behind(sinks, key, head.saturating_sub(behind).max(first));
    }

    /// By how much the sequence numbers of a sink are lower than they came, its cohort's share included.
    pub(crate) fn sequence_offset(&self, sink: &Sink) -> u16 {
        let Place::Live { cohort, slot } = sink.place else { return sink.sequence_offset };
        let (_, _, of_cohort) = self.cohorts[cohort].standing(slot, sink.max_layer);
        sink.sequence_offset.wrapping_add(of_cohort)
    }

    /// All sinks have their places: what none of them needs, nor the next to join, is let go.
    pub(crate) fn settle(&mut self) {
        self.trim();
    }

    /// The RTP sequence number of the newest packet of the main track.
    pub(crate) fn newest_sequence(&self) -> Option<u16> {
        let main = self.ring.main_track();
        let newest = self.ring.newest(|entry| entry.packet.tag.track == main)?;
        newest.packet.rtp_header(&newest.rtp_header).map(outflow_rtp::sequence)
    }

    /// The oldest packet that is here.
    pub(crate) fn first(&self) -> Seq {
        self.ring.first()
    }
}

impl Splice {
    /// What of it was not given yet.
    pub(crate) fn save(&self) -> Vec<SavedSplice> {
        let left = self.left().iter();
        left.map(|(bytes, rtp_header)| SavedSplice { rtp_header: *rtp_header, bytes: bytes.clone() })
            .collect()
    }

    /// Goes on with what another process has not given. RTP sequence numbers of the branch are higher here, by
    /// `apart`.
    pub(crate) fn restore(saved: Vec<SavedSplice>, apart: u16) -> Self {
        let datagram = |SavedSplice { mut rtp_header, bytes }| {
            if rtp_header[0] != 0 {
                let sequence = outflow_rtp::sequence(&rtp_header);
                outflow_rtp::set_sequence(&mut rtp_header, sequence.wrapping_add(apart));
            }
            (bytes, rtp_header)
        };
        Splice::new(saved.into_iter().map(datagram).collect())
    }
}
