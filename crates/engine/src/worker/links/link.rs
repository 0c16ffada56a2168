//! A link: what waits there, what is counted of it, and the rate that follows its receivers.

use bytes::Bytes;
use outflow_config::{LinkConfig, Share};
use outflow_link::{Admission, ApplicationId, FlowId, Follow, Link, LinkOptions, Medium, Next, Similar};
use outflow_media::{Format, Tag, Time};
use outflow_packet::DropReason;
use outflow_relay::{Report, SinkKey};

use super::super::sink::LiveSink;
use super::behind::Behind;
use super::offered::Offered;
use super::parcel::Parcel;
use super::tally::Tally;
use crate::limits::{LINK_BATCH, LINK_SLACK, LINK_WAKE};
use crate::message::{LinkState, ReceiverId};
use crate::send::Piece;

/// A link, and what is counted of it.
pub(in super::super) struct LiveLink {
    pub(super) name: String,
    link: Link<Parcel>,
    similar: Similar,
    follow: Option<Follow>,
    /// Receivers that something was offered for.
    receivers: usize,
    /// What receivers have reserved, and whether others may be let in at a lower level; none if all are let in.
    pub(super) admission: Option<(Admission, bool)>,
    tally: Tally,
    /// When it is to be asked again; `None` if nothing waits.
    due: Option<Time>,
}

impl LiveLink {
    /// One that is as this says.
    pub(super) fn new(now: Time, name: String, config: &LinkConfig) -> Self {
        let mut live = LiveLink {
            name,
            link: Link::new(options(config, config.rate_at_first().0)),
            similar: Similar::default(),
            follow: None,
            receivers: 0,
            admission: None,
            tally: Tally::new(now),
            due: None,
        };
        live.configure(now, config);
        live
    }

    /// It is as this says from now on; what waits goes on waiting.
    pub(super) fn configure(&mut self, now: Time, config: &LinkConfig) {
        let (least, most) = (config.rate_min.0, config.rate_max.0);
        match &mut self.follow {
            _ if !config.follows() => self.follow = None,
            Some(follow) => follow.set_bounds(least, most),
            None => self.follow = Some(Follow::new(now, least, most)),
        }
        let may_lower = config.admission == outflow_config::Admission::Lower;
        let before = self.admission.take().map(|(admission, _)| admission);
        if config.admission != outflow_config::Admission::Off {
            self.admission = Some((before.unwrap_or_default(), may_lower));
        }
        let rate_bps = self.follow.as_ref().map_or(config.rate_at_first().0, Follow::rate_bps);
        self.link.set_useful_for(config.useful_for);
        for medium in Medium::ALL {
            self.link.set_size_of(medium, config.size_of(medium));
            self.link.set_weight_of(medium, config.weight_of(medium).get());
        }
        self.link.set_options(now, options(config, rate_bps));
        self.due = self.due.map(|_| now);
    }

    /// Takes out what goes now, no more than there is room for in the batch.
    pub(super) fn take(&mut self, now: Time, batch: &mut Vec<Parcel>) {
        self.due = loop {
            if batch.len() == LINK_BATCH {
                break Some(now);
            }
            match self.link.depart(now) {
                Next::Departs(departed) => {
                    self.tally.sent(now, departed.item.application, &departed.packet);
                    let place = batch.len();
                    batch.push(Parcel { place, ..departed.item });
                }
                Next::Later(until) => {
                    self.follow.iter_mut().for_each(Follow::handle_used);
                    break Some(until.max(now + LINK_WAKE));
                }
                Next::Nothing => break None,
            }
        };
    }

    /// What it carries now, bits a second.
    pub(super) fn rate_bps(&self) -> u64 {
        self.link.options().rate_bps
    }

    /// When it is to be asked again; `None` if nothing waits.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// It is no more: what waits goes at once.
    pub(super) fn release(&mut self, now: Time) {
        self.link.set_rate(u64::MAX);
        self.link.release_all(now);
    }

    /// Takes out of a link that is no more what goes next. Answers when to ask for the rest, if there is more:
    /// it may be busy with a packet for a while.
    pub(in super::super) fn take_rest(&mut self, now: Time, batch: &mut Vec<Parcel>) -> Option<Time> {
        self.take(now, batch);
        self.due.map(|due| due.max(now))
    }

    /// What is shown of it.
    pub(super) fn state(&mut self, now: Time) -> LinkState {
        let reserved_bps = self.admission.as_ref().map(|(admission, _)| admission.reserved_bps());
        let state = self.tally.state(now, (&self.name, &self.link), self.follow.is_some());
        LinkState { reserved_bps, ..state }
    }

    /// Something was offered. Returns whether it is to be asked now, which it was not before.
    pub(super) fn wake(&mut self, now: Time) -> bool {
        let is_new = self.due.is_none() && self.link.waiting().1 > 0;
        if is_new {
            self.due = Some(now);
        }
        is_new
    }

    /// A receiver says something about its way, on this flow or for all. The rate follows, where it does so.
    pub(super) fn follow(&mut self, now: Time, tell: impl FnOnce(&mut Follow)) {
        let LiveLink { follow: Some(follow), link, name, receivers, .. } = self else { return };
        tell(follow);
        if let Some(rate_bps) = follow.poll(now, *receivers) {
            tracing::debug!(link = name, rate_bps, "the link follows its receivers");
            link.set_rate(rate_bps);
        }
    }

    /// A receiver leaves: nothing of it waits any longer.
    pub(super) fn leave(&mut self, behind: &Behind, receiver: ReceiverId) {
        self.receivers = self.receivers.saturating_sub(usize::from(!behind.flows.is_empty()));
        self.follow.iter_mut().for_each(|follow| follow.forget_receiver(receiver));
        self.admission.iter_mut().for_each(|(admission, _)| admission.release(receiver));
        for (_, flow) in &behind.flows {
            self.link.cut_flow(*flow, DropReason::ReceiverLeft);
            self.similar.end(*flow);
            if let Some(follow) = &mut self.follow {
                follow.forget(*flow);
            }
        }
    }

    /// Counts, and tells, what it gave up.
    pub(super) fn settle(&mut self, mut tell: impl FnMut(usize, SinkKey, Report)) {
        let LiveLink { link, follow, tally, .. } = self;
        for dropped in link.dropped() {
            tally.dropped(dropped.item.application, dropped.reason);
            if let Some(follow) = follow.as_mut().filter(|_| dropped.reason != DropReason::ReceiverLeft) {
                follow.handle_given_up(dropped.packet.flow);
            }
            tell(dropped.item.stream, dropped.item.sink, dropped.item.given_up(dropped.reason));
        }
    }

    /// Offers a packet for a sink.
    pub(super) fn offer(
        &mut self,
        now: Time,
        offered: &Offered<'_>,
        (key, sink): (SinkKey, &mut LiveSink),
        (piece, tag, body): (&Piece<'_>, Tag, &Bytes),
    ) {
        let (stream, index) = offered.stream;
        let spec = stream.spec(key).map_or((0, 1), |spec| (spec.priority as u8, spec.claim.weight));
        let Some(behind) = &mut sink.behind else { return };
        let bytes = piece.len() + behind.overhead;
        let known = behind.flows.iter().find(|(track, _)| *track == piece.track);
        let flow = known.map(|(_, flow)| *flow);
        let format = stream.branch_format(offered.order.branch);
        let flow = match flow {
            Some(flow) => flow,
            None => self.begin(now, behind, piece.track, (medium(format, piece.track), spec)),
        };
        self.link.set_stream(flow, index, stream.options().weight);
        let alike = self.similar.look(now, flow, &tag, bytes);
        if let Some(application) = alike.filter(|_| tag.needs.is_nothing() && self.link.shows(flow, &tag)) {
            self.link.regroup(flow, application);
        }
        let application = self.link.application(flow).unwrap_or(ApplicationId::of(Medium::Data, 0));
        self.tally.offered(application, bytes);
        let header = piece.header.first_chunk().copied();
        let (track, is_preamble) = (piece.track, piece.is_preamble);
        let (receiver, body) = (sink.id, body.clone());
        let (stream, sink, place, worth) = (index, key, 0, piece.worth);
        let parcel =
            Parcel { stream, sink, receiver, application, track, place, is_preamble, worth, header, body };
        self.link.offer(now, flow, tag, bytes, parcel);
    }

    /// The first packet of a sink's track.
    fn begin(&mut self, now: Time, behind: &mut Behind, track: u8, of: (Medium, (u8, u32))) -> FlowId {
        let (medium, (class, weight)) = of;
        let flow = self.link.add_flow(ApplicationId::of(medium, 0), class);
        self.link.set_flow_weight(flow, weight);
        self.similar.begin(now, flow, medium);
        self.receivers += usize::from(behind.flows.is_empty());
        // As many as there are tracks; a table that is full would be a track too many.
        if behind.flows.try_push((track, flow)).is_err() {
            tracing::error!(link = self.name, track, "a track too many behind a link");
        }
        flow
    }
}

fn options(config: &LinkConfig, rate_bps: u64) -> LinkOptions {
    LinkOptions {
        rate_bps,
        policy: config.policy.0,
        unit: config.unit.0,
        scheduling: config.scheduler.0,
        lower_share: Share::promised(config.lower_share),
        size: config.size(),
        slack: LINK_SLACK,
    }
}

/// What a track is for. A transport stream, whatever is in it, counts as video.
fn medium(format: Option<&Format>, track: u8) -> Medium {
    let Some(format) = format else { return Medium::Data };
    match format.track(track) {
        None if *format == Format::Data => Medium::Data,
        None => Medium::Video,
        Some(track) if track.codec.is_video() => Medium::Video,
        Some(_) => Medium::Audio,
    }
}
