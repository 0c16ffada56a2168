//! What comes out of a stream: its services, its branches, and the sinks that read them.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_graph::elements::ts_level::Piece;
use outflow_media::{Format, Time};
use outflow_packet::Parsed;
use outflow_ts::Found;

use super::audience::Audience;
use super::branches::{Branches, ORIGINAL, Services};
use super::handed::TrackClock;
use super::options::StreamOptions;
use super::origin::Origin;
use super::output::{Event, Output, SinkEnd};
use super::renditions::Renditions;
use crate::schedule::{Branch, Counters, Priority, Room, Sink, SinkKey, SinkSpec, Sinks};
use crate::send::Report;

/// The parts behind a stream's source.
#[derive(Debug)]
pub(super) struct Distribution {
    pub(super) options: StreamOptions,
    /// What is distributed; `None` before there was a source.
    pub(super) origin: Option<Origin>,
    pub(super) services: Services,
    pub(super) branches: Branches,
    /// Its levels, if these are streams of their own.
    pub(super) renditions: Option<Box<Renditions>>,
    pub(super) sinks: Sinks,
    pub(super) audience: Audience,
    pub(super) events: VecDeque<Event>,
    /// When hopeless sinks are looked for next.
    hopeless_check: Time,
    /// What the source's reader found in the packets of the datagram that comes, if that is one of a transport
    /// stream.
    pub(super) found: Vec<Found>,
    /// Kept so that no memory is asked for a packet.
    pub(super) pieces: Vec<Piece>,
    /// The same.
    pub(super) made: Vec<Parsed>,
}

impl Distribution {
    pub(super) fn new(options: StreamOptions) -> Self {
        Distribution {
            options,
            origin: None,
            services: Services::default(),
            branches: Branches::default(),
            renditions: None,
            sinks: Sinks::new(),
            audience: Audience::default(),
            events: VecDeque::new(),
            hopeless_check: Time::ZERO,
            found: Vec::new(),
            pieces: Vec::new(),
            made: Vec::new(),
        }
    }

    pub(super) fn set_options(&mut self, options: StreamOptions) {
        let StreamOptions { ssrc, seed, .. } = self.options;
        self.options = StreamOptions { ssrc, seed, ..options };
        for branch in self.branches.iter_mut() {
            branch.ring_mut().set_limits(options.ring_bytes, options.when_full, seed);
        }
        self.set_layers(options.layers);
    }

    pub(super) fn format(&self) -> Option<&Format> {
        self.origin.as_ref().map(Origin::format)
    }

    /// The source's packets are of this format from now on.
    pub(super) fn change_format(&mut self, now: Time, format: Format, turn: u64) {
        self.unhouse(now, self.origin.is_some());
        let options = &self.options;
        self.origin = Some(Origin::new(format.clone(), turn, (options.ssrc, options.ntp_at_zero)));
        self.begin_branches(&format);
        self.house(now);
    }

    /// There is no source any more.
    pub(super) fn rest(&mut self, now: Time) {
        self.unhouse(now, false);
        self.clear_branches();
        let renditions = self.renditions.as_ref().map(|all| Renditions::new(all.count()));
        self.renditions = renditions.map(Box::new);
        self.origin = None;
    }

    /// What sender reports of a track of the stream as it comes in are made of.
    pub(super) fn clock(&self, track: u8) -> Option<TrackClock> {
        let (clock, ssrc) = self.origin.as_ref()?.sender(track)?;
        Some(TrackClock { track, clock, ssrc, passed: self.branches.get(ORIGINAL)?.passed(track) })
    }

    /// A sink joins.
    pub(super) fn join(&mut self, now: Time, id: u64, spec: SinkSpec) -> SinkKey {
        self.audience.join(spec.priority);
        let mut sink = Sink::new(id, spec, now);
        sink.spec.level = self.bounded(&sink);
        let key = SinkKey(self.sinks.insert(sink));
        self.place(now, key);
        if !spec.held {
            self.audience.begins(key);
        }
        key
    }

    /// A sink leaves.
    pub(super) fn leave(&mut self, now: Time, key: SinkKey) {
        let branch = self.sinks.get(key.0).and_then(|sink| sink.branch);
        self.displace(key);
        if let Some(sink) = self.sinks.try_remove(key.0) {
            self.audience.leave(&sink);
        }
        if let Some(branch) = branch {
            self.left_branch(now, branch);
        }
    }

    /// What became of an order, as far as it is not "sent".
    pub(super) fn report(&mut self, key: SinkKey, report: Report) {
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
                    self.audience.begins(key);
                }
                match sink.branch.and_then(|branch| self.branches.get_mut(branch)) {
                    Some(branch) => branch.writable(&mut self.sinks, key),
                    None => sink.blocked = false,
                }
            }
        }
    }

    pub(super) fn set_priority(&mut self, key: SinkKey, priority: Priority) {
        let Some(sink) = self.sinks.get_mut(key.0) else { return };
        self.audience.change_class(sink.spec.priority, priority);
        match sink.branch.and_then(|branch| self.branches.get_mut(branch)) {
            Some(branch) => branch.set_priority(&mut self.sinks, key, priority),
            None => sink.spec.priority = priority,
        }
    }

    /// Places those sinks that wait for a branch.
    pub(super) fn house(&mut self, now: Time) {
        self.audience.take_awaiting().into_iter().for_each(|key| self.place(now, key));
    }

    /// Takes all sinks out of their branches. They wait for a format, or those of RTP end.
    fn unhouse(&mut self, now: Time, ends_rtp: bool) {
        let keys: Vec<_> = self.sinks.iter().map(|(key, _)| SinkKey(key)).collect();
        for key in keys {
            self.displace(key);
            if ends_rtp && self.sinks[key.0].spec.encapsulation.is_rtp() {
                self.end_sink(now, key, SinkEnd::FormatChanged);
            } else {
                self.audience.awaits(key);
            }
        }
    }

    /// Lets a sink go.
    pub(super) fn end_sink(&mut self, now: Time, key: SinkKey, end: SinkEnd) {
        let Some(id) = self.sinks.get(key.0).map(|sink| sink.id) else { return };
        self.leave(now, key);
        self.events.push_back(Event::SinkEnded { key, id, end });
    }

    /// Everything that a sink was sent.
    pub(super) fn sent_to(&self, key: SinkKey) -> Counters {
        let sink = self.sinks.get(key.0);
        match sink.and_then(|sink| self.branches.get(sink.branch?)) {
            Some(branch) => branch.counters(&self.sinks, key),
            None => sink.map(|sink| sink.counters).unwrap_or_default(),
        }
    }

    /// The next order, or that it has to be asked again for one.
    pub(super) fn next_order(&mut self, now: Time, class: Priority, room: Room, bps: u64) -> Option<Output> {
        let sinks = &mut self.sinks;
        let order =
            self.branches.iter_mut().find_map(|branch| branch.next_order(now, sinks, class, room, bps));
        let looks_on = || self.branches.iter().any(|branch| branch.looks_on(class));
        order.map(Output::Order).or_else(|| looks_on().then_some(Output::GoOn))
    }

    /// Looks for hopeless sinks, ten times within the time they have.
    pub(super) fn check_hopeless(&mut self, now: Time) {
        if now < self.hopeless_check {
            return;
        }
        let limit = self.options.hopeless_after;
        self.hopeless_check = now + (limit / 10).max(Duration::from_millis(10));
        let is_hopeless = |sink: &Sink| sink.lossy_since.is_some_and(|since| now.since(since) >= limit);
        let sinks = &self.sinks;
        let hopeless: Vec<_> = self
            .branches
            .iter()
            .flat_map(Branch::laggards)
            .filter(|key| sinks.get(key.0).is_some_and(is_hopeless))
            .collect();
        for key in hopeless {
            self.end_sink(now, key, SinkEnd::Hopeless);
        }
    }

    /// When hopeless sinks are to be looked for, if any may be.
    pub(super) fn hopeless_check(&self) -> Option<Time> {
        let lagging = self.branches.iter().any(|branch| branch.laggards().next().is_some());
        lagging.then_some(self.hopeless_check)
    }

    /// How many renditions there are; 0 if the stream has a source of its own.
    pub(super) fn rendition_count(&self) -> usize {
        self.renditions.as_ref().map_or(0, |renditions| renditions.count())
    }
}
