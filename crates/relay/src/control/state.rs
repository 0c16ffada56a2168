//! What can be read of a stream.

use bytes::Bytes;
use outflow_media::{Format, Time};
use outflow_rtp::HEADER;
use outflow_rtp::rtcp::SenderReport;

use super::distribution::Distribution;
use super::intake::Intake;
use super::options::StreamOptions;
use super::output::Wake;
use super::share::Sharing;
use super::source::Source;
use crate::feedback::Gathered;
use crate::schedule::{Branch, Priority, Share, SinkKey, StartPoint, align};
use crate::send::{Order, Recipients};
use outflow_ring::{Entry, Seq};

/// The parts of a [`Stream`](super::Stream), which it derefs to: all that reading takes, and nothing that
/// changes it. A driver that carries out an order needs no more.
#[derive(Debug)]
pub struct State {
    /// Whether packets come, and how many.
    pub(super) source: Source,
    /// What makes packets out of what comes in; `None` in a replica, which is handed what came out of its
    /// owner's.
    pub(super) intake: Option<Intake>,
    /// Services, branches, sinks.
    pub(super) out: Distribution,
    /// What replicas get, and what this one missed.
    pub(super) sharing: Sharing,
    /// What receivers say, for the publisher.
    pub(super) feedback: Gathered,
    /// When sender reports go out next.
    pub(super) reports_due: Time,
}

impl State {
    pub(super) fn new(options: StreamOptions) -> Self {
        State {
            source: Source::default(),
            intake: None,
            out: Distribution::new(options),
            sharing: Sharing::default(),
            feedback: Gathered::default(),
            reports_due: Time::ZERO,
        }
    }

    /// What receivers get, if the stream ever had a source.
    pub fn format(&self) -> Option<&Format> {
        self.out.format()
    }

    /// Whether it is handed its packets.
    pub(super) fn is_replica(&self) -> bool {
        self.out.origin.is_some() && self.intake.is_none()
    }

    /// The classes in which there are sinks.
    pub fn classes(&self) -> impl Iterator<Item = Priority> + '_ {
        self.out.audience.classes()
    }

    /// Those packets of an order that a sink with this share of it gets, in order, and by how much the
    /// sequence number of each is lower for it.
    pub fn packets(&self, order: &Order, share: Share) -> impl Iterator<Item = (Seq, &Entry, u16)> {
        let branch = self.out.branches.get(order.branch);
        branch.into_iter().flat_map(move |branch| {
            let ring = branch.ring();
            let wanted = |(_, entry): &(Seq, &Entry)| order.tracks.has(entry.packet.tag.track);
            let mut sequence_offset = share.sequence_offset;
            ring.range(order.from, order.to).filter(wanted).filter_map(move |(seq, entry)| {
                let tag = &entry.packet.tag;
                if !ring.is_within(share.max_layer, tag) {
                    sequence_offset = sequence_offset.wrapping_add(1);
                    return None;
                }
                Some((seq, entry, if tag.track == ring.main_track() { sequence_offset } else { 0 }))
            })
        })
    }

    /// What of an order's packets the sinks of a cohort get, by the layers that they take: each maximum once.
    pub fn shares(&self, branch: usize, cohort: usize) -> impl Iterator<Item = Share> + '_ {
        self.out.branches.get(branch).into_iter().flat_map(move |branch| branch.shares(cohort))
    }

    /// The track of a branch of which sinks may take fewer layers.
    pub fn main_track(&self, branch: usize) -> Option<u8> {
        self.out.branches.get(branch).map(|branch| branch.ring().main_track())
    }

    /// Rises with every member of a cohort that comes, goes or changes.
    pub fn cohort_version(&self, branch: usize, cohort: usize) -> u64 {
        self.out.branches.get(branch).map_or(0, |branch| branch.version(cohort))
    }

    /// What of an order's packets a sink gets.
    pub fn share(&self, order: &Order, key: SinkKey) -> Share {
        let of_cohort = || {
            let (branch, sink) = (self.out.branches.get(order.branch)?, self.sink(key)?);
            match order.recipients {
                Recipients::Cohort { cohort, .. } => Some(branch.share(cohort, sink)),
                Recipients::One(_) => None,
            }
        };
        order.share.or_else(of_cohort).unwrap_or(Share::WHOLE)
    }

    /// What an order begins with, if it says so, and the RTP header that this has where it goes by RTP, before
    /// its sequence number is offset like those of the packets behind it.
    pub fn preamble(&self, order: &Order) -> Option<(&Bytes, [u8; HEADER])> {
        if !order.preamble {
            return None;
        }
        if let (Recipients::One(key), true) = (order.recipients, order.from == order.to) {
            let (bytes, header) = self.sink(key)?.splice.given()?;
            return Some((bytes, *header));
        }
        let entry = self.out.branches.get(order.branch)?.ring().get(order.from)?;
        Some((entry.preamble.as_ref()?, entry.preamble_header()))
    }

    /// The sinks of an order.
    pub fn members<'a>(&'a self, order: &'a Order) -> &'a [SinkKey] {
        self.out.branches.get(order.branch).map_or(&[], |branch| branch.ordered(&order.recipients))
    }

    /// All members of a cohort, those that an order leaves out as well.
    pub fn cohort(&self, branch: usize, cohort: usize) -> &[SinkKey] {
        self.out.branches.get(branch).map_or(&[], |branch| branch.members(cohort))
    }

    /// The sender report of a track of a branch, once a packet of it has passed.
    pub fn sender_report(&self, now: Time, branch: usize, track: u8) -> Option<SenderReport> {
        let (clock, ssrc) = self.out.branch_sender(branch, track)?;
        let clock = clock.at(now)?;
        let sent = self.out.branches.get(branch)?.passed(track);
        // RFC 3550: both counters are 32 bits wide and wrap.
        let (packets, octets) = (sent.packets as u32, sent.bytes as u32);
        Some(SenderReport { ssrc, ntp: clock.ntp, rtp: clock.rtp, packets, octets })
    }

    /// Where a sink's tracks begin.
    pub fn start_points(&self, key: SinkKey) -> Vec<StartPoint> {
        let Some(index) = self.sink(key).and_then(|sink| sink.branch) else { return Vec::new() };
        let Some(branch) = self.out.branches.get(index) else { return Vec::new() };
        let mut points = branch.start_points(&self.out.sinks, key);
        align(&mut points, |track| Some(self.out.branch_sender(index, track)?.0));
        points
    }

    /// When to poll at the latest, and why.
    pub(super) fn next_wake(&self) -> Option<(Time, Wake)> {
        let (out, up) = (&self.out, self.source.is_up());
        let turns = out.branches.iter().filter_map(Branch::next_turn).min();
        let timeout = self.source.last_packet() + out.options.source_timeout;
        [
            turns.map(|at| (at, Wake::CatchUp)),
            (up && !self.is_replica()).then_some((timeout, Wake::SourceTimeout)),
            out.hopeless_check().map(|at| (at, Wake::Hopeless)),
            up.then_some((self.reports_due, Wake::SenderReports)),
            out.linger_ends().map(|at| (at, Wake::BranchLinger)),
            self.feedback.next_timeout().map(|at| (at, Wake::Feedback)),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
