//! One live source and everyone who receives it.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use outflow_media::rtcp::SenderReport;
use outflow_media::rtp::HEADER;
use outflow_media::{Format, Time};

use super::branches::Branches;
use super::gap::Gap;
use super::intake::{Input, Intake};
use super::levels::LevelBounds;
use super::output::{Event, Output, ReportTo, SinkEnd};
use super::renditions::Renditions;
use super::share::{Handed, Understood};
use super::source::Source;
use crate::buffer::{Entry, Seq, WhenFull};
use crate::drops::Drops;
use crate::element::ts_level::Piece;
use crate::limits::SENDER_REPORT_EVERY;
use crate::schedule::{
    Carriage, Counters, Priority, Room, Share, Sink, SinkKey, SinkSpec, Sinks, StartPoint,
};
use crate::send::{Order, Report, Whom, align};

/// What a stream is configured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// How many bytes a ring holds.
    pub ring_bytes: usize,
    /// Who loses packets when a ring is full.
    pub when_full: WhenFull,
    /// A sink that loses packets for that long without ever catching up is let go.
    pub hopeless_after: Duration,
    /// No packet for that long, and the source counts as away.
    pub source_timeout: Duration,
    /// SSRC under which a transport stream goes out by RTP. Random, from the driver.
    pub ssrc: u32,
    /// All chance of the core comes from it. Random, from the driver.
    pub seed: u64,
    /// NTP time of [`Time::ZERO`], 32.32 fixed point seconds since 1900.
    pub ntp_at_zero: u64,
    /// How many layers the source has at least, though fewer may come: who hands the stream on leaves out those
    /// that nobody here wants, and levels mean the same here and there. 0 if packets say it.
    pub layers: u8,
    /// Other relays hand the source on, and may take turns at that.
    pub is_relayed: bool,
}

/// What holds where a configuration says nothing; without chance.
impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions {
            ring_bytes: 8_000_000,
            when_full: WhenFull::SlowestSink,
            hopeless_after: Duration::from_secs(10),
            source_timeout: Duration::from_secs(2),
            ssrc: 1,
            seed: 1,
            ntp_at_zero: 0,
            layers: 0,
            is_relayed: false,
        }
    }
}

/// A stream: its source, its branches and its sinks.
#[derive(Debug)]
pub struct Stream {
    pub(super) options: StreamOptions,
    pub(super) source: Source,
    pub(super) input: Option<Input>,
    pub(super) branches: Branches,
    /// Its levels, if these are streams of their own.
    pub(super) renditions: Option<Box<Renditions>>,
    pub(super) sinks: Sinks,
    pub(super) bounds: LevelBounds,
    /// How many sinks there are of each class.
    of_class: [usize; Priority::ALL.len()],
    /// Sinks that joined before the stream had a format.
    pub(super) homeless: Vec<SinkKey>,
    pub(super) events: VecDeque<Event>,
    pub(super) new_reports: VecDeque<SinkKey>,
    pub(super) reports_due: Time,
    pub(super) hopeless_check: Time,
    /// Drops of sinks that have left, and of the remultiplexer.
    pub(super) past_drops: Drops,
    pub(super) past: Counters,
    pub(super) joins: u64,
    /// What replicas are to be handed, if there are any.
    pub(super) handed: Option<Vec<Handed>>,
    /// What got lost on the way to this replica.
    pub(super) gap: Option<Box<Gap>>,
    /// Kept so that no memory is asked for a packet.
    pub(super) pieces: Vec<Piece>,
    /// The same.
    pub(super) made: Vec<Understood>,
}

impl Stream {
    /// A stream without a source.
    pub fn new(options: StreamOptions) -> Self {
        Stream {
            options,
            source: Source::default(),
            input: None,
            branches: Branches::default(),
            renditions: None,
            sinks: Sinks::new(),
            bounds: LevelBounds::default(),
            of_class: [0; Priority::ALL.len()],
            homeless: Vec::new(),
            events: VecDeque::new(),
            new_reports: VecDeque::new(),
            reports_due: Time::ZERO,
            hopeless_check: Time::ZERO,
            past_drops: Drops::default(),
            past: Counters::default(),
            joins: 0,
            handed: None,
            gap: None,
            pieces: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Changes what can be changed while packets flow: all options but the SSRC and the seed.
    pub fn set_options(&mut self, options: StreamOptions) {
        let StreamOptions { ssrc, seed, .. } = self.options;
        self.options = StreamOptions { ssrc, seed, ..options };
        for branch in self.branches.iter_mut() {
            branch.ring_mut().set_limits(options.ring_bytes, options.when_full, seed);
        }
        self.branches.set_layers(options.layers);
    }

    /// A sink joins, at the newest key frame. `id` is the driver's name for it.
    pub fn handle_join(&mut self, now: Time, id: u64, spec: SinkSpec) -> SinkKey {
        self.joins += 1;
        self.of_class[spec.priority as usize] += 1;
        let mut sink = Sink::new(id, spec, now);
        sink.spec.level = self.bounded(&sink);
        let key = SinkKey(self.sinks.insert(sink));
        self.place(now, key);
        if !spec.held {
            self.new_reports.push_back(key);
        }
        key
    }

    /// A sink leaves.
    pub fn handle_leave(&mut self, now: Time, key: SinkKey) {
        let branch = self.sinks.get(key.0).and_then(|sink| sink.branch);
        self.displace(key);
        if let Some(sink) = self.sinks.try_remove(key.0) {
            self.of_class[sink.spec.priority as usize] -= 1;
            self.past.packets += sink.counters.packets;
            self.past.bytes += sink.counters.bytes;
            self.past_drops.merge(&sink.drops);
        }
        if let Some(branch) = branch {
            self.left_branch(now, branch);
        }
    }

    /// A sink wants nothing until [`Stream::handle_resume`].
    pub fn handle_pause(&mut self, key: SinkKey) {
        self.displace(key);
    }

    /// A sink that paused takes a place at the newest key frame again, held until it is reported
    /// writable.
    pub fn handle_resume(&mut self, now: Time, key: SinkKey) {
        self.displace(key);
        if let Some(sink) = self.sinks.get_mut(key.0) {
            sink.blocked = true;
            sink.spec.held = true;
        }
        self.place(now, key);
    }

    /// What became of an order, as far as it is not "sent".
    pub fn handle_report(&mut self, key: SinkKey, report: Report) {
        let Some(sink) = self.sinks.get_mut(key.0) else { return };
        match report {
            Report::Lost { reason, packets } => sink.drops.add(reason, packets),
            Report::GivenUp { reason, bytes } => {
                sink.counters.take_off(Counters { packets: 1, bytes });
                sink.drops.add(reason, 1);
            }
            Report::Blocked { next } => {
                if let Some(branch) = sink.branch.and_then(|branch| self.branches.get_mut(branch)) {
                    branch.blocked(&mut self.sinks, key, next);
                }
            }
            Report::Writable => {
                if sink.spec.held {
                    sink.spec.held = false;
                    self.new_reports.push_back(key);
                }
                match sink.branch.and_then(|branch| self.branches.get_mut(branch)) {
                    Some(branch) => branch.writable(&mut self.sinks, key),
                    None => sink.blocked = false,
                }
            }
        }
    }

    /// Changes a sink's class. Nothing that it is owed gets lost.
    pub fn set_priority(&mut self, key: SinkKey, priority: Priority) {
        let Some(sink) = self.sinks.get_mut(key.0) else { return };
        self.of_class[sink.spec.priority as usize] -= 1;
        self.of_class[priority as usize] += 1;
        match sink.branch.and_then(|branch| self.branches.get_mut(branch)) {
            Some(branch) => branch.set_priority(&mut self.sinks, key, priority),
            None => sink.spec.priority = priority,
        }
    }

    /// What to do next, whatever its class; see [`Output::Wait`].
    pub fn poll(&mut self, now: Time) -> Output {
        let order = |stream: &mut Self| {
            Priority::ALL.into_iter().find_map(|class| stream.next_order(now, class, Room::UNLIMITED))
        };
        self.poll_with(now, order)
    }

    /// What to do next in this class, for at most so many sinks at once; what is owed in other
    /// classes waits. Everything but orders is of every class.
    pub fn poll_class(&mut self, now: Time, class: Priority, room: Room) -> Output {
        self.poll_with(now, |stream| stream.next_order(now, class, room))
    }

    /// The classes in which there are sinks.
    pub fn classes(&self) -> impl Iterator<Item = Priority> + '_ {
        Priority::ALL.into_iter().filter(|class| self.of_class[*class as usize] > 0)
    }

    fn poll_with(&mut self, now: Time, order: impl Fn(&mut Self) -> Option<Order>) -> Output {
        self.serve(now);
        self.check_source(now);
        self.check_hopeless(now);
        self.check_linger(now);
        if let Some(event) = self.events.pop_front() {
            return Output::Event(event);
        }
        self.change_levels(now);
        loop {
            if let Some(order) = order(self) {
                return Output::Order(order);
            }
            if !self.change_levels(now) {
                break;
            }
        }
        if let Some(key) = self.new_reports.pop_front() {
            return Output::SenderReports(ReportTo::One(key));
        }
        if self.source.up && now >= self.reports_due {
            self.reports_due = now + SENDER_REPORT_EVERY;
            return Output::SenderReports(ReportTo::All);
        }
        Output::Wait { until: self.next_wake() }
    }

    /// Those packets of an order that a sink with this share of it gets, in order, and by how much the
    /// sequence number of each is lower for it.
    pub fn packets(&self, order: &Order, share: Share) -> impl Iterator<Item = (Seq, &Entry, u16)> {
        let branch = self.branches.get(order.branch);
        branch.into_iter().flat_map(move |branch| {
            let ring = branch.ring();
            let wanted = |(_, entry): &(Seq, &Entry)| order.tracks.has(entry.packet.tag.track);
            let mut lowered = share.lowered;
            ring.range(order.from, order.to).filter(wanted).filter_map(move |(seq, entry)| {
                let tag = &entry.packet.tag;
                if !ring.is_within(share.cut, tag) {
                    lowered = lowered.wrapping_add(1);
                    return None;
                }
                Some((seq, entry, if tag.track == ring.main_track() { lowered } else { 0 }))
            })
        })
    }

    /// What of an order's packets those of a cohort get who take the same layers: each cut once.
    pub fn shares(&self, branch: usize, cohort: usize) -> impl Iterator<Item = Share> + '_ {
        self.branches.get(branch).into_iter().flat_map(move |branch| branch.shares(cohort))
    }

    /// The track of a branch of which sinks may take fewer layers.
    pub fn main_track(&self, branch: usize) -> Option<u8> {
        self.branches.get(branch).map(|branch| branch.ring().main_track())
    }

    /// Rises with every member of a cohort that comes, goes or changes.
    pub fn cohort_version(&self, branch: usize, cohort: usize) -> u64 {
        self.branches.get(branch).map_or(0, |branch| branch.version(cohort))
    }

    /// What of an order's packets a sink gets.
    pub fn share(&self, order: &Order, key: SinkKey) -> Share {
        let of_cohort = || {
            let (branch, sink) = (self.branches.get(order.branch)?, self.sinks.get(key.0)?);
            match order.whom {
                Whom::Cohort { cohort, .. } => Some(branch.share(cohort, sink)),
                Whom::One(_) => None,
            }
        };
        order.share.or_else(of_cohort).unwrap_or(Share::WHOLE)
    }

    /// What an order begins with, if it says so, and the RTP header that this has where it goes by RTP, before
    /// its sequence number is lowered like those of the packets behind it.
    pub fn preamble(&self, order: &Order) -> Option<(&Bytes, [u8; HEADER])> {
        if !order.preamble {
            return None;
        }
        if let (Whom::One(key), true) = (order.whom, order.from == order.to) {
            let (bytes, header) = self.sinks.get(key.0)?.greeting.given()?;
            return Some((bytes, *header));
        }
        let entry = self.branches.get(order.branch)?.ring().get(order.from)?;
        Some((entry.preamble.as_ref()?, entry.preamble_header()))
    }

    /// The sinks of an order.
    pub fn members<'a>(&'a self, order: &'a Order) -> &'a [SinkKey] {
        self.branches.get(order.branch).map_or(&[], |branch| branch.ordered(&order.whom))
    }

    /// All members of a cohort, those whom an order leaves out as well.
    pub fn cohort(&self, branch: usize, cohort: usize) -> &[SinkKey] {
        self.branches.get(branch).map_or(&[], |branch| branch.members(cohort))
    }

    /// The sender report of a track of a branch, once a packet of it has passed.
    pub fn sender_report(&self, now: Time, branch: usize, track: u8) -> Option<SenderReport> {
        let (clock, ssrc) = self.branch_sender(branch, track)?;
        let clock = clock.at(now)?;
        let sent = self.branches.get(branch)?.passed(track);
        // RFC 3550: both counters are 32 bits wide and wrap.
        let (packets, octets) = (sent.packets as u32, sent.bytes as u32);
        Some(SenderReport { ssrc, ntp: clock.ntp, rtp: clock.rtp, packets, octets })
    }

    /// What receivers get, if the stream ever had a source.
    pub fn format(&self) -> Option<&Format> {
        self.input.as_ref().map(|input| &input.format)
    }

    /// Where a sink's tracks begin.
    pub fn start_points(&self, key: SinkKey) -> Vec<StartPoint> {
        let Some(index) = self.sinks.get(key.0).and_then(|sink| sink.branch) else { return Vec::new() };
        let Some(branch) = self.branches.get(index) else { return Vec::new() };
        let mut points = branch.start_points(&self.sinks, key);
        align(&mut points, |track| Some(self.branch_sender(index, track)?.0));
        points
    }
}

impl Stream {
    pub(super) fn change_format(&mut self, now: Time, format: Format, turn: u64, intake: Option<Intake>) {
        self.unhouse(now, self.input.is_some());
        let options = &self.options;
        self.input = Some(Input::new(format.clone(), turn, intake, (options.ssrc, options.ntp_at_zero)));
        self.begin_branches(&format);
        self.hand_format();
        self.house(now);
    }

    /// Places those sinks that wait for a branch.
    pub(super) fn house(&mut self, now: Time) {
        core::mem::take(&mut self.homeless).into_iter().for_each(|key| self.place(now, key));
    }

    /// Takes all sinks out of their branches. They wait for a format, or those of RTP end.
    pub(super) fn unhouse(&mut self, now: Time, ends_rtp: bool) {
        let keys: Vec<_> = self.sinks.iter().map(|(key, _)| SinkKey(key)).collect();
        for key in keys {
            self.displace(key);
            if ends_rtp && self.sinks[key.0].spec.carriage == Carriage::Rtp {
                self.end_sink(now, key, SinkEnd::FormatChanged);
            } else if !self.homeless.contains(&key) {
                self.homeless.push(key);
            }
        }
    }

    pub(super) fn end_sink(&mut self, now: Time, key: SinkKey, end: SinkEnd) {
        let Some(id) = self.sinks.get(key.0).map(|sink| sink.id) else { return };
        self.handle_leave(now, key);
        self.events.push_back(Event::SinkEnded { key, id, end });
    }

    fn next_order(&mut self, now: Time, class: Priority, room: Room) -> Option<Order> {
        let bps = self.source.meter.bps(now);
        self.branches.iter_mut().find_map(|branch| branch.next_order(now, &mut self.sinks, class, room, bps))
    }
}
