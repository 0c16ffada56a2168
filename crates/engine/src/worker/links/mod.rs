//! Links: packets of sinks that are behind one wait here, and go by the ordinary way out when their time comes.
//!
//! A link is with one worker, and so are all receivers behind it. What an order asks to be sent to them is
//! offered to the link; what departs is sent to its sink. Packets that depart within [`LINK_WAKE`] of each
//! other go by one waking up: the link makes up for it, so that its rate holds.

mod offer;
mod tally;

use arrayvec::ArrayVec;
use bytes::Bytes;
use outflow_config::LinkConfig;
use outflow_link::{ApplicationId, FlowId, Follow, Link, LinkOptions, Medium, Next, Similar};
use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_packet::limits::TRACKS_MAX;
use outflow_relay::limits::ORDER_PACKETS_MAX;
use outflow_relay::{LinkId, Priority, Report, SinkKey};
use outflow_rtp::HEADER;

use super::Worker;
use super::stream::{LiveSink, Out};
use super::tasks::Task;
use crate::limits::{LINK_BATCH, LINK_SLACK, LINK_WAKE};
use crate::message::{CloseReason, LinkState, ReceiverId};
use crate::send::fanout::Audience;
use crate::send::stream::{Flush, Outcome};
use crate::send::{Piece, Pieces, Worth};
pub(super) use offer::Offered;
use tally::Tally;

/// The links of a worker.
#[derive(Default)]
pub(super) struct Links {
    all: Vec<LiveLink>,
    /// What departs at a time; kept so that no memory is asked for it.
    batch: Vec<Parcel>,
}

/// A link, and what is counted of it.
struct LiveLink {
    id: LinkId,
    name: String,
    link: Link<Parcel>,
    similar: Similar,
    follow: Option<Follow>,
    /// Receivers that something was offered for.
    receivers: usize,
    tally: Tally,
    /// When it is to be asked again; `None` if nothing waits.
    due: Option<Time>,
}

/// What a sink that is behind a link has there.
#[derive(Debug)]
pub(super) struct Behind {
    link: LinkId,
    /// What that is called.
    pub(super) name: String,
    /// The flows of its tracks, from their first packets on.
    flows: ArrayVec<(u8, FlowId), TRACKS_MAX>,
    /// Bytes that its packets have on the link besides those of the core.
    overhead: usize,
}

/// A packet that waits, and the sink that it is for.
#[derive(Debug)]
struct Parcel {
    stream: usize,
    sink: SinkKey,
    receiver: ReceiverId,
    /// The flows that it was alike to when it came.
    application: ApplicationId,
    track: u8,
    /// How many departed before it, of those that are sent together.
    place: usize,
    is_preamble: bool,
    worth: Worth,
    /// An RTP header that is not part of the body; `None` if there is none.
    header: Option<[u8; HEADER]>,
    body: Bytes,
}

/// Bytes of IP and UDP headers (RFC 791, RFC 768), and of IPv6's (RFC 8200).
const UDP_OVERHEAD: [usize; 2] = [20 + 8, 40 + 8];
/// Bytes of IP and TCP headers without options (RFC 9293), as if each packet were a segment.
const TCP_OVERHEAD: [usize; 2] = [20 + 20, 40 + 20];

impl Links {
    /// What a sink is to have at the link that it is behind, if that is here.
    pub(super) fn behind(&self, link: LinkId, out: &Out, to: &str) -> Option<Behind> {
        let name = self.all[self.place(link)?].name.clone();
        let v6 = |to: &str| to.parse::<std::net::SocketAddr>().is_ok_and(|to| to.is_ipv6());
        let overhead = match out {
            Out::Udp { route, .. } => {
                let v6 = route.media.first().is_some_and(|(_, to)| to.is_ipv6());
                UDP_OVERHEAD[usize::from(v6)]
            }
            Out::Peer { overhead, .. } => UDP_OVERHEAD[usize::from(v6(to))] + overhead,
            Out::Stream { framing, .. } => TCP_OVERHEAD[usize::from(v6(to))] + framing.prefix_bytes(),
        };
        Some(Behind { link, name, flows: ArrayVec::new(), overhead })
    }

    fn place(&self, id: LinkId) -> Option<usize> {
        self.all.iter().position(|link| link.id == id)
    }

    /// Whether a link is here.
    pub(super) fn has(&self, id: LinkId) -> bool {
        self.place(id).is_some()
    }

    /// When the next packet is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.all.iter().filter_map(|link| link.due).min()
    }

    /// Those from which packets are due.
    pub(super) fn are_due(&self, now: Time) -> impl Iterator<Item = LinkId> + '_ {
        self.all.iter().filter(move |link| link.due.is_some_and(|due| due <= now)).map(|link| link.id)
    }

    /// Their state.
    pub(super) fn states(&mut self, now: Time) -> Vec<LinkState> {
        self.all.iter_mut().map(|link| link.state(now)).collect()
    }

    /// A receiver reports on a track. The rate follows it, where it does so.
    pub(super) fn handle_report(
        &mut self,
        now: Time,
        behind: &Behind,
        track: u8,
        reported: outflow_link::Reported,
    ) {
        let Some((_, flow)) = behind.flows.iter().find(|(of, _)| *of == track) else { return };
        self.follow(now, behind, |follow| follow.handle_report(*flow, reported));
    }

    /// A receiver says what its way carries. The rate follows that, where it does so.
    pub(super) fn handle_limit(&mut self, now: Time, behind: &Behind, receiver: ReceiverId, bps: u64) {
        self.follow(now, behind, |follow| follow.handle_limit(now, receiver, bps));
    }

    fn follow(&mut self, now: Time, behind: &Behind, tell: impl FnOnce(&mut Follow)) {
        let Some(at) = self.place(behind.link) else { return };
        let LiveLink { follow: Some(follow), link, name, receivers, .. } = &mut self.all[at] else { return };
        tell(follow);
        if let Some(rate_bps) = follow.poll(now, *receivers) {
            tracing::debug!(link = name, rate_bps, "the link follows its receivers");
            link.set_rate(rate_bps);
        }
    }
}

impl LiveLink {
    fn new(now: Time, id: LinkId, name: String, config: &LinkConfig) -> Self {
        let mut live = LiveLink {
            id,
            name,
            link: Link::new(options(config, config.rate_at_first().0)),
            similar: Similar::default(),
            follow: None,
            receivers: 0,
            tally: Tally::new(now),
            due: None,
        };
        live.configure(now, config);
        live
    }

    /// It is as this says from now on; what waits goes on waiting.
    fn configure(&mut self, now: Time, config: &LinkConfig) {
        let (least, most) = (config.rate_min.0, config.rate_max.0);
        match &mut self.follow {
            _ if !config.follows() => self.follow = None,
            Some(follow) => follow.set_bounds(least, most),
            None => self.follow = Some(Follow::new(now, least, most)),
        }
        let rate_bps = self.follow.as_ref().map_or(config.rate_at_first().0, Follow::rate_bps);
        self.link.set_useful_for(config.useful_for);
        for medium in Medium::ALL {
            self.link.set_size_of(medium, config.size_of(medium));
        }
        self.link.set_options(now, options(config, rate_bps));
        self.due = self.due.map(|_| now);
    }

    /// Takes out what goes now, no more than there is room for in the batch.
    fn take(&mut self, now: Time, batch: &mut Vec<Parcel>) {
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
}

fn options(config: &LinkConfig, rate_bps: u64) -> LinkOptions {
    LinkOptions {
        rate_bps,
        policy: config.policy.0,
        unit: config.unit.0,
        scheduling: config.scheduler.0,
        size: config.size(),
        slack: LINK_SLACK,
    }
}

impl Worker {
    /// There is such a link from now on, or it is another one.
    pub(super) fn put_link(&mut self, id: LinkId, name: String, config: &LinkConfig) {
        let now = self.clock.now();
        match self.links.place(id) {
            Some(at) => self.links.all[at].configure(now, config),
            None => self.links.all.push(LiveLink::new(now, id, name, config)),
        }
        self.settle(id);
    }

    /// A link is no more: what waits goes at once, and so does what comes after it.
    pub(super) fn remove_link(&mut self, id: LinkId) {
        let Some(at) = self.links.place(id) else { return };
        let mut live = self.links.all.remove(at);
        live.link.set_rate(u64::MAX);
        let now = self.clock.now();
        live.link.release_all(now);
        let mut batch = core::mem::take(&mut self.links.batch);
        // It may be busy with a packet for a while.
        let (mut then, mut waits) = (now, true);
        while waits {
            live.take(then, &mut batch);
            then = live.due.unwrap_or(then).max(then);
            waits = live.due.is_some();
            self.send_parcels(&mut batch);
        }
        self.links.batch = batch;
        for sink in self.streams.iter_mut().flat_map(|(_, stream)| stream.sinks.iter_mut().flatten()) {
            sink.behind.take_if(|behind| behind.link == id);
        }
    }

    /// A sink leaves: nothing of it waits any longer.
    pub(super) fn leave_link(&mut self, sink: &LiveSink) {
        let Some(behind) = &sink.behind else { return };
        let Some(at) = self.links.place(behind.link) else { return };
        let live = &mut self.links.all[at];
        live.receivers = live.receivers.saturating_sub(usize::from(!behind.flows.is_empty()));
        live.follow.iter_mut().for_each(|follow| follow.forget_receiver(sink.id));
        for (_, flow) in &behind.flows {
            live.link.cut_flow(*flow, DropReason::ReceiverLeft);
            live.similar.end(*flow);
            if let Some(follow) = &mut live.follow {
                follow.forget(*flow);
            }
        }
        self.settle(behind.link);
    }

    /// Tells the core, and counts, what a link gave up.
    pub(super) fn settle(&mut self, id: LinkId) {
        let Some(at) = self.links.place(id) else { return };
        let LiveLink { link, follow, tally, .. } = &mut self.links.all[at];
        for dropped in link.dropped() {
            tally.dropped(dropped.item.application, dropped.reason);
            if let Some(follow) = follow.as_mut().filter(|_| dropped.reason != DropReason::ReceiverLeft) {
                follow.handle_given_up(dropped.packet.flow);
            }
            if let Some(stream) = self.streams.get_mut(dropped.item.stream) {
                stream.core.handle_report(dropped.item.sink, dropped.item.given_up(dropped.reason));
            }
        }
    }

    /// Sends what a link lets go now.
    pub(super) fn depart(&mut self, id: LinkId) {
        let now = self.clock.now();
        let Some(at) = self.links.place(id) else { return };
        let mut batch = core::mem::take(&mut self.links.batch);
        self.links.all[at].take(now, &mut batch);
        if self.links.all[at].due.is_some_and(|due| due <= now) {
            self.tasks.add(Priority::High, Task::Depart(id));
        }
        self.send_parcels(&mut batch);
        self.links.batch = batch;
    }

    /// Sends packets, those for a sink together and in their order.
    fn send_parcels(&mut self, batch: &mut Vec<Parcel>) {
        batch.sort_unstable_by_key(|parcel| (parcel.stream, parcel.sink, parcel.place));
        let one_sink =
            |a: &Parcel, b: &Parcel| (a.stream, a.sink, a.receiver) == (b.stream, b.sink, b.receiver);
        for parcels in batch.chunk_by(one_sink).flat_map(|parcels| parcels.chunks(ORDER_PACKETS_MAX)) {
            self.send_to_one(parcels);
        }
        batch.clear();
    }

    /// Sends packets to one sink. What does not go is counted there: it had its time on the link.
    fn send_to_one(&mut self, parcels: &[Parcel]) {
        let Some(&Parcel { stream: index, sink: key, receiver, .. }) = parcels.first() else { return };
        let Some(stream) = self.streams.get_mut(index) else { return };
        if stream.sink_mut(key).is_none_or(|sink| sink.id != receiver) {
            return;
        }
        let pieces: Pieces<'_> = (0..).zip(parcels).map(|(place, parcel)| parcel.piece(place)).collect();
        let mut is_gone = false;
        let mut from = parcels.len();
        let out = stream.sinks[key.0].as_ref().map(|sink| &sink.out);
        if matches!(out, Some(Out::Udp { .. })) {
            let out = (&mut self.fanout, &mut self.uring, &mut self.ports);
            stream.send_datagrams(index, Audience::Some(&[key]), &pieces, out);
        } else if let Some(place) = out.and_then(Out::peer) {
            let (now, reports) = (self.clock.now(), self.fanout.reports());
            self.peers.send(
                now,
                &pieces,
                &[key],
                |_| Some(place),
                |_, report| match report {
                    Report::Blocked { next } => from = usize::try_from(next).unwrap_or(from),
                    report => reports.push((key, report)),
                },
            );
        } else {
            let flush = Flush { pieces: &pieces, end: pieces.len() as u64 };
            self.streamer.send(
                &mut self.uring,
                flush,
                &[key],
                &mut stream.sinks,
                |_, outcome| match outcome {
                    Outcome::Sent => {}
                    Outcome::Blocked(next) => from = usize::try_from(next).unwrap_or(from),
                    Outcome::Gone => is_gone = true,
                },
            );
        }
        drop(pieces);
        self.plan_peers();
        self.settle_sent(index, key, parcels, from);
        if is_gone {
            self.end(index, key, CloseReason::PeerGone);
        }
    }

    /// Tells the core what of a sink's packets did not go: those that the socket reports, and, of a
    /// connection, all from a place on.
    fn settle_sent(&mut self, index: usize, key: SinkKey, parcels: &[Parcel], from: usize) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        for parcel in parcels.get(from..).unwrap_or_default() {
            stream.core.handle_report(key, parcel.given_up(DropReason::ConnectionFull));
        }
        let mut is_full = false;
        for (key, report) in self.fanout.reports().drain(..) {
            let Report::Blocked { next } = report else {
                stream.core.handle_report(key, report);
                continue;
            };
            is_full = true;
            let from = usize::try_from(next).unwrap_or(usize::MAX);
            for parcel in parcels.get(from..).unwrap_or_default() {
                stream.core.handle_report(key, parcel.given_up(DropReason::DeviceFull));
            }
        }
        if is_full {
            self.wait_for_ports();
        }
    }
}

impl Parcel {
    fn piece(&self, place: u64) -> Piece<'_> {
        let header = self.header.as_ref().map_or(&[][..], |header| &header[..]);
        Piece {
            seq: place,
            track: self.track,
            layer: None,
            ends: None,
            header,
            body: &self.body,
            is_preamble: false,
            worth: self.worth,
        }
    }

    /// What to tell the core where it does not go: it counted as sent, unless it is a preamble.
    fn given_up(&self, reason: DropReason) -> Report {
        match self.is_preamble {
            true => Report::Lost { reason, packets: 1 },
            false => Report::GivenUp { reason, bytes: self.body.len() as u64 },
        }
    }
}
