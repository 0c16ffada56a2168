//! Links: packets of sinks that are behind one wait here, and go by the ordinary way out when their time comes.
//!
//! A link is with one worker, and so are all receivers behind it. What an order asks to be sent to them is
//! offered to the link; what departs is sent to its sink. Packets that depart within [`LINK_WAKE`] of each
//! other go by one waking up: the link makes up for it, so that its rate holds.

mod admit;
mod behind;
mod link;
mod offered;
mod parcel;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use outflow_config::LinkConfig;
use outflow_link::{Follow, Reported};
use outflow_media::Time;
use outflow_relay::{LinkId, Report, SinkKey};

use super::sink::{LiveSink, Out};
use super::timers::Timers;
use crate::message::{LinkState, ReceiverId};
pub(super) use behind::Behind;
use link::LiveLink;
pub(super) use offered::Offered;
pub(super) use parcel::Parcel;

/// The links of a worker.
#[derive(Default)]
pub(super) struct Links {
    all: BTreeMap<LinkId, LiveLink>,
    /// When each is to be asked again at which something waits.
    due: Timers<LinkId>,
    /// What departs at a time; kept so that no memory is asked for it.
    batch: Vec<Parcel>,
}

/// Bytes of IP and UDP headers (RFC 791, RFC 768), and of IPv6's (RFC 8200).
const UDP_OVERHEAD: [usize; 2] = [20 + 8, 40 + 8];
/// Bytes of IP and TCP headers without options (RFC 9293), as if each packet were a segment.
const TCP_OVERHEAD: [usize; 2] = [20 + 20, 40 + 20];

impl Links {
    /// What a sink is to have at the link that it is behind, if that is here.
    pub(super) fn behind(&self, link: LinkId, out: &Out, to: &str) -> Option<Behind> {
        self.all.get(&link)?;
        let v6 = |to: &str| to.parse::<std::net::SocketAddr>().is_ok_and(|to| to.is_ipv6());
        let overhead = match out {
            Out::Udp { route, .. } => {
                let v6 = route.media.first().is_some_and(|(_, to)| to.is_ipv6());
                UDP_OVERHEAD[usize::from(v6)]
            }
            Out::Peer { overhead, .. } => UDP_OVERHEAD[usize::from(v6(to))] + overhead,
            Out::Stream { framing, .. } => TCP_OVERHEAD[usize::from(v6(to))] + framing.prefix_bytes(),
        };
        Some(Behind { link, flows: ArrayVec::new(), overhead })
    }

    /// What the link is called that a sink is behind; none if that is no more.
    pub(super) fn name(&self, behind: &Behind) -> Option<&str> {
        self.all.get(&behind.link).map(|link| link.name.as_str())
    }

    /// Changes a link, if it is here. The order in which links are due follows.
    fn change<T>(&mut self, id: LinkId, change: impl FnOnce(&mut LiveLink) -> T) -> Option<T> {
        let link = self.all.get_mut(&id)?;
        let before = link.due();
        let changed = change(link);
        self.due.change(id, before, link.due());
        Some(changed)
    }

    /// Whether a link is here.
    pub(super) fn has(&self, id: LinkId) -> bool {
        self.all.contains_key(&id)
    }

    /// When the next packet is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.due.first()
    }

    /// Those from which packets are due.
    pub(super) fn are_due(&self, now: Time) -> impl Iterator<Item = LinkId> + '_ {
        self.due.due(now)
    }

    /// Their state.
    pub(super) fn states(&mut self, now: Time) -> Vec<LinkState> {
        self.all.values_mut().map(|link| link.state(now)).collect()
    }

    /// There is such a link from now on, or it is another one.
    pub(super) fn put(&mut self, now: Time, id: LinkId, name: String, config: &LinkConfig) {
        if self.change(id, |link| link.configure(now, config)).is_none() {
            self.all.insert(id, LiveLink::new(now, name, config));
        }
    }

    /// A link is no more: what waits goes at once.
    pub(super) fn remove(&mut self, now: Time, id: LinkId) -> Option<LiveLink> {
        let mut live = self.all.remove(&id)?;
        self.due.change(id, live.due(), None);
        live.release(now);
        Some(live)
    }

    /// A receiver reports on a track. The rate follows it, where it does so.
    pub(super) fn handle_report(&mut self, now: Time, behind: &Behind, track: u8, reported: Reported) {
        let Some((_, flow)) = behind.flows.iter().find(|(of, _)| *of == track) else { return };
        self.follow(now, behind.link, |follow| follow.handle_report(*flow, reported));
    }

    /// A receiver says what its way carries. The rate follows that, where it does so.
    pub(super) fn handle_limit(&mut self, now: Time, behind: &Behind, receiver: ReceiverId, bps: u64) {
        self.follow(now, behind.link, |follow| follow.handle_limit(now, receiver, bps));
    }

    fn follow(&mut self, now: Time, id: LinkId, tell: impl FnOnce(&mut Follow)) {
        self.change(id, |link| link.follow(now, tell));
    }

    /// A sink leaves: nothing of it waits any longer. What is given up for that is to be settled at the link
    /// that this answers.
    pub(super) fn leave(&mut self, sink: &LiveSink) -> Option<LinkId> {
        let behind = sink.behind.as_ref()?;
        self.change(behind.link, |link| link.leave(behind, sink.id))?;
        Some(behind.link)
    }

    /// Offers packets to a link. What it gives up for them is to be settled. Returns whether packets are due
    /// there now, where none were waited for.
    pub(super) fn offer(
        &mut self,
        (now, id): (Time, LinkId),
        offered: &Offered<'_>,
        sinks: &mut [Option<LiveSink>],
    ) -> bool {
        let offer = |link: &mut LiveLink| {
            offered.each(|piece, tag, body| {
                for key in offered.members {
                    let sink = sinks.get_mut(key.0).and_then(Option::as_mut);
                    if let Some(sink) = sink.filter(|sink| sink.is_reached(piece.track)) {
                        link.offer(now, offered, (*key, sink), (piece, tag, body));
                    }
                }
            });
            link.wake(now)
        };
        self.change(id, offer).unwrap_or(false)
    }

    /// Counts, and tells, what a link gave up.
    pub(super) fn settle(&mut self, id: LinkId, tell: impl FnMut(usize, SinkKey, Report)) {
        self.change(id, |link| link.settle(tell));
    }

    /// Takes out what a link lets go now, and whether it is to be asked again at once.
    pub(super) fn depart(&mut self, now: Time, id: LinkId, batch: &mut Vec<Parcel>) -> bool {
        let take = |link: &mut LiveLink| {
            link.take(now, batch);
            link.due().is_some_and(|due| due <= now)
        };
        self.change(id, take).unwrap_or(false)
    }

    /// Where what departs is put; to be given back, so that no memory is asked for it.
    pub(super) fn take_batch(&mut self) -> Vec<Parcel> {
        core::mem::take(&mut self.batch)
    }

    pub(super) fn give_back(&mut self, batch: Vec<Parcel>) {
        self.batch = batch;
    }
}
