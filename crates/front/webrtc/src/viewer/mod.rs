//! A viewer, as its worker drives it.

mod described;
mod fec;
mod filling;
mod kept;
mod media;
mod numbers;
mod pace;
mod protect;
#[cfg(test)]
mod tests;
mod thin;
mod track;
mod undelivered;
mod way;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use outflow_control::SessionToken;
use outflow_dtls::Scratch;
use outflow_engine::message::{Outlet, Peer, PeerEvent, PeerWake, ReceiverId};
use outflow_engine::{PacketHead, Packets, Recent};
use outflow_ice::Path;
use outflow_media::ecn::Mark;
use outflow_media::{Rate, Time, TokenBucket};
use outflow_relay::Report;
use outflow_rtp::HEADER;
use outflow_rtp::rtcp::{self, estimated, rename, without_estimate};
use outflow_webrtc::{Output, Received, Session, Wake};
use smallvec::SmallVec;
use tokio::sync::mpsc;

use crate::hosts::HostPlace;
use crate::limits::{EVENTS_MAX, REPLIES_MAX, RTCP_BURST, RTCP_PER_SECOND, UNSENT_MAX, UNSENT_USUAL};
use crate::port::News;
use crate::restart::Restarts;
use crate::saved::{SavedTrack, SavedViewer, encode};
use crate::settings::NAME;
use crate::tcp::Gateways;
pub(crate) use fec::{Fec, Protection};
pub(crate) use media::Elements;
use pace::Pace;
use thin::Thinning;
pub(crate) use track::Sending;
use track::{Sent, Track, Unsent};
use undelivered::Undelivered;
use way::Way;

/// Bytes that a packet takes on the way beside its own and those of UDP: header extensions, and what the seal adds.
pub(crate) const OVERHEAD: usize = 12 + 16;

/// What is told where a viewer is, what knows which gateway that is, if it comes by TCP, and by which names it goes on.
pub(crate) type Told = (mpsc::Sender<News>, Arc<Gateways>, Restarts);

/// The state machine of a viewer.
// In this order: what each packet needs stands together, as there are thousands of viewers and little is in the cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Viewer {
    /// Where media is sent to, as the session has it.
    to: Option<SocketAddr>,
    /// What it gets: picture and sound, mostly.
    tracks: SmallVec<[Track; 2]>,
    // bounded: by `UNSENT_MAX`.
    unsent: VecDeque<Unsent>,
    pace: Pace,
    /// What of pictures goes where that carries less.
    thinning: Thinning,
    /// A packet has found no room.
    waits: bool,
    /// What is new of the picture is covered by repair packets.
    protects: bool,
    session_due: Option<(Time, PeerWake)>,
    /// What the session says, and RTCP.
    // bounded: by `REPLIES_MAX`.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    // bounded: by `EVENTS_MAX`, and its end.
    events: VecDeque<PeerEvent>,
    /// Of a viewer that says which packets came.
    way: Option<Way>,
    /// Of one that takes repair packets.
    fec: Option<Box<Fec>>,
    session: Session,
    id: ReceiverId,
    news: mpsc::Sender<News>,
    gateways: Arc<Gateways>,
    restarts: Restarts,
    reports: TokenBucket,
    /// Its place among those that have not come yet.
    coming: Option<HostPlace>,
    /// What its session was told to be known by.
    token: SessionToken,
}

impl Viewer {
    /// One that gets these tracks of a stream, by their numbers there, with their parameter sets. Sequence numbers begin
    /// where `random` says.
    pub(crate) fn new(
        id: ReceiverId,
        session: Session,
        told: Told,
        sending: &[(u8, Sending, Option<Bytes>)],
        (random, coming, token, fec): (u32, HostPlace, SessionToken, Option<Box<Fec>>),
    ) -> Self {
        let track = |(number, sending, sets): &(u8, Sending, Option<Bytes>)| {
            Track::new(*number, (*sending, sets.clone()), random)
        };
        let numbered = sending.iter().any(|(_, sending, _)| sending.elements.transport.is_some());
        let way = numbered.then(|| Way::new(random as u16));
        Self::begin((id, session, told, token), sending.iter().map(track), (way, fec), Some(coming))
    }

    /// One of another process, which has come.
    pub(crate) fn resume(
        id: ReceiverId,
        session: Session,
        told: Told,
        (tracks, token): (Vec<SavedTrack>, SessionToken),
        (way, fec): (Option<(u16, u64)>, Option<Box<Fec>>),
    ) -> Self {
        let tracks = tracks.into_iter().map(Track::resume);
        Self::begin((id, session, told, token), tracks, (way.map(Way::resume), fec), None)
    }

    /// One that has come, unless it has a place among those that have not.
    fn begin(
        (id, session, (news, gateways, restarts), token): (ReceiverId, Session, Told, SessionToken),
        tracks: impl Iterator<Item = Track>,
        (way, fec): (Option<Way>, Option<Box<Fec>>),
        coming: Option<HostPlace>,
    ) -> Self {
        let has_come = coming.is_none();
        let mut viewer = Viewer {
            id,
            session,
            news,
            gateways,
            restarts,
            to: None,
            tracks: tracks.collect(),
            unsent: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            pace: if has_come { Pace::resume() } else { Pace::new() },
            way,
            fec,
            thinning: Thinning::default(),
            protects: false,
            // What has come meanwhile is to be offered.
            waits: has_come,
            session_due: None,
            reports: TokenBucket::new(RTCP_BURST),
            coming,
            token,
        };
        viewer.drain();
        viewer
    }

    /// Does what the session says.
    fn drain(&mut self) {
        self.session_due = self.obey();
        self.to = self.session.path().map(|path| self.place(path));
    }

    /// Answers when it is to be woken, and why.
    fn obey(&mut self) -> Option<(Time, PeerWake)> {
        loop {
            match self.session.poll() {
                Output::Send(path, bytes) => self.reply(self.place(path), bytes),
                // Without room it is found by the name in its next check.
                Output::Valid(path) => drop(self.news.try_send(News::Confirm(self.id, self.place(path)))),
                Output::Invalid(path) => drop(self.news.try_send(News::Forget(self.id, self.place(path)))),
                Output::Ready => self.coming = None,
                Output::Ended(why) => self.events.push_back(PeerEvent::Closed(why.to_string())),
                Output::Wait(at, why) => return Some((at, meaning(why))),
                Output::Nothing => return None,
            }
        }
    }

    /// Where datagrams go that are to go by this path.
    fn place(&self, path: Path) -> SocketAddr {
        self.gateways.place(path)
    }

    /// What finds no room is lost, as on the way: it is asked for again.
    fn reply(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back((to, bytes));
        }
    }

    /// Takes a packet of the stream, if there is room for it. `packet` answers its bytes, and its number among those that
    /// were given. It goes to `out` if there is one, and it is its turn.
    fn take(
        &mut self,
        now: Time,
        head: &PacketHead,
        mut packet: impl FnMut() -> (Bytes, u32),
        out: Option<&mut dyn Outlet>,
    ) -> Result<(), Undelivered> {
        let has_room = self.to.is_some() && self.unsent.len() < UNSENT_MAX;
        let Some(place) = self.tracks.iter().position(|track| track.number == head.track) else {
            return if has_room { Ok(()) } else { Err(Undelivered::Later) };
        };
        let track = &mut self.tracks[place];
        let is_picture = track.sending.is_video && !head.is_preamble;
        if is_picture && self.thinning.leave(head.worth.is_left, head.worth.is_key()) {
            self.pace.begin_again();
        }
        let thins = is_picture && self.thinning.is_at_work();
        let mut ends = false;
        if thins && has_room {
            let (age, rank) = (head.worth.age(now), head.worth.rank);
            if let Err(reason) = track.leave_out(packet().0, |at| self.thinning.takes(age, at, rank)) {
                self.pace.measure(head.worth.arrived, head.bytes);
                return Err(Undelivered::Dropped(reason));
            }
            ends = self.thinning.ends_at(head.ends);
        }
        if !has_room || !self.pace.passes(now, head.worth.arrived, head.bytes) {
            // They are not offered again.
            return if head.is_preamble { track.remember(packet().0) } else { Err(Undelivered::Later) };
        }
        let at_once = self.pace.is_catching_up();
        let all = track.take(packet(), head, ends).map_err(Undelivered::Dropped)?;
        let all = all.into_iter().map(|(media, way)| Unsent { track: place, media, way, at_once });
        match out.filter(|_| self.unsent.is_empty() && self.replies.is_empty()) {
            Some(out) => all.for_each(|unsent| {
                out.put(&mut |bytes| self.seal(now, &unsent, bytes));
                if self.protects {
                    out.put(&mut |bytes| self.seal_repair(now, bytes));
                }
            }),
            None => self.unsent.extend(all),
        }
        Ok(())
    }

    /// RTCP of the viewer's.
    fn hear(&mut self, now: Time, packet: &mut [u8], recent: &Recent) {
        if !self.reports.pass(now, Rate::per_second(RTCP_PER_SECOND)) {
            return;
        }
        let (mut lost, mut is_for_stream) = (Vec::new(), false);
        // What stands before a malformed part holds.
        let _ = rtcp::read(packet, |report| match report {
            rtcp::Report::Lost { media, numbers, .. } => lost.push((media, numbers)),
            _ => is_for_stream = true,
        });
        for (media, numbers) in lost {
            self.repeat(now, recent, (media, &numbers));
        }
        self.hear_of_packets(now, packet, recent);
        if is_for_stream && self.events.len() < EVENTS_MAX {
            let tracks = &self.tracks;
            rename(packet, false, |ssrc| {
                tracks.iter().find(|track| track.sending.ssrc == ssrc).and_then(|track| track.source)
            });
            // Chromium's own estimate begins below what the way carries, and stays there where little is sent.
            self.events.push_back(PeerEvent::Rtcp(without_estimate(packet).into()));
        }
    }

    /// What it says of which packets came.
    fn hear_of_packets(&mut self, now: Time, packet: &[u8], recent: &Recent) {
        let Some(way) = &mut self.way else { return };
        way.hear(now, packet, self.pace.catch_up_bps(), self.fec.as_deref_mut());
        let picture = self.tracks.iter().find(|track| track.sending.is_video);
        if let Some(bps) = way.news(now) {
            self.pace.carries(bps);
            if let Some((own, source)) = picture.and_then(Track::ends)
                && self.events.len() < EVENTS_MAX
            {
                self.events.push_back(PeerEvent::Rtcp(estimated(own, source, bps, NAME).into()));
            }
        }
        if let Some((carried_bps, is_full)) = way.carries(now) {
            let holds = self.thinning.hear(carried_bps, self.pace.stream_bps(), is_full);
            self.pace.hold(holds.then_some(carried_bps));
        }
        let may_protect = !self.thinning.is_at_work() && !self.pace.is_catching_up();
        self.protects = self.fec.as_mut().is_some_and(|fec| fec.judge(may_protect));
        if let Some((own, source)) = picture.and_then(Track::ends).filter(|_| self.thinning.wants_key(now))
            && self.events.len() < EVENTS_MAX
        {
            self.events.push_back(PeerEvent::Rtcp(rtcp::key_frame_request(own, source, 0, NAME).into()));
        }
        if let Some(picture) = picture.filter(|_| !self.pace.is_catching_up()) {
            let bytes = || Some(picture.filler_bytes(recent)? + HEADER + OVERHEAD);
            way.look_for_more(now, self.pace.most_bps(), bytes);
        }
        self.fill_up(now, recent);
    }

    /// Sends what is due to find out what the way carries: packets that the viewer has already.
    fn fill_up(&mut self, now: Time, recent: &Recent) {
        let Some(way) = &mut self.way else { return };
        let Some(place) = self.tracks.iter().position(|track| track.sending.is_video) else { return };
        for _ in 0..way.due(now) {
            let filler = self.tracks[place].filler(recent).filter(|_| self.unsent.len() < UNSENT_MAX);
            let Some((media, repair)) = filler else { return };
            self.unsent.push_back(Unsent { track: place, media, way: Sent::Again(repair), at_once: false });
        }
    }

    /// Sends packets once more, as far as there is room and they are kept.
    fn repeat(&mut self, now: Time, recent: &Recent, (ssrc, numbers): (u32, &[u16])) {
        let of = |track: &Track| track.sending.ssrc == ssrc;
        let Some(place) = self.tracks.iter().position(of) else { return };
        let track = &mut self.tracks[place];
        if track.sending.is_video && self.thinning.leaves() {
            return;
        }
        let of = |is_base: bool| numbers.iter().map(move |sequence| (sequence, is_base));
        for (sequence, is_base) in of(true).chain(of(false)) {
            if track.is_base(*sequence) != is_base {
                continue;
            }
            if self.unsent.len() >= UNSENT_MAX {
                return;
            }
            let Some(media) = track.missed(now, recent, *sequence) else { continue };
            if !self.pace.repeats(now, media.payload.len(), is_base) {
                return;
            }
            let repair = track.repeat(now, media.number);
            self.unsent.push_back(Unsent { track: place, media, way: Sent::Again(repair), at_once: false });
        }
    }

    /// Writes a packet behind what is in `out`, and seals it. What stands there is of no use if it does not go.
    fn seal(&mut self, now: Time, unsent: &Unsent, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        let to = self.to?;
        let track = self.tracks.get(unsent.track)?;
        let (mut head, rollovers) = track.head(unsent);
        let way = self.way.as_mut().filter(|_| track.sending.elements.transport.is_some());
        head.transport = way.map(|way| way.sent(now, unsent.media.payload.len() + HEADER + OVERHEAD));
        let start = out.len();
        unsent.media.write(head, track.sending.elements, unsent.at_once, out);
        if self.protects {
            self.cover(now, unsent, &out[start..]);
        }
        self.session.seal(out, start, rollovers).ok()?;
        self.tracks.get_mut(unsent.track)?.sent(now, unsent);
        Some((to, Mark::None))
    }
}

/// What a wait of the session is to the worker.
fn meaning(why: Wake) -> PeerWake {
    match why {
        Wake::Consent => PeerWake::Gone,
        Wake::Ask => PeerWake::Tell,
        Wake::Handshake => PeerWake::Repair,
    }
}

impl Peer for Viewer {
    fn write(
        &mut self,
        now: Time,
        packets: &mut Packets<'_>,
        mut out: Option<&mut dyn Outlet>,
        tell: &mut dyn FnMut(Report),
    ) -> usize {
        for (index, head) in packets.heads().enumerate() {
            let out = out.as_mut().map(|out| &mut **out as &mut dyn Outlet);
            match self.take(now, &head, || packets.kept(index), out) {
                Ok(()) => {}
                Err(Undelivered::Later) => {
                    self.waits = true;
                    return index;
                }
                Err(Undelivered::Dropped(reason)) if head.is_preamble => {
                    tell(Report::Lost { reason, packets: 1 });
                }
                Err(Undelivered::Dropped(reason)) => {
                    tell(Report::GivenUp { reason, bytes: head.bytes as u64 });
                }
            }
        }
        packets.heads().len()
    }

    fn warm(&self) -> usize {
        let tracks = self.tracks.iter().fold(0, |sum, track| sum ^ track.warm());
        let (queues, way) = (self.unsent.len() ^ self.replies.len(), usize::from(self.way.is_some()));
        let states = usize::from(self.thinning.is_at_work() ^ self.to.is_some());
        tracks ^ queues ^ states ^ way ^ self.pace.warm() ^ self.session.warm()
    }

    fn write_rtcp(&mut self, _: Time, track: u8, packet: &[u8]) {
        let Some(track) = self.tracks.iter().find(|known| known.number == track) else { return };
        let Some(to) = self.to else { return };
        let (mut packet, own) = (packet.to_vec(), track.sending.ssrc);
        rename(&mut packet, true, |_| Some(own));
        if self.session.seal_control(&mut packet).is_ok() {
            self.reply(to, packet);
        }
    }

    fn handle_datagram(
        &mut self,
        now: Time,
        (from, _): (SocketAddr, Mark),
        datagram: &mut [u8],
        recent: &Recent,
    ) {
        let path = self.gateways.path(from);
        let received = self.restarts.handle_datagram(&mut self.session, (now, path), datagram);
        if let Ok(Received::Control(length)) = received
            && let Some(packet) = datagram.get_mut(..length)
        {
            self.hear(now, packet, recent);
        }
        self.drain();
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        if let Some((to, bytes)) = self.replies.pop_front() {
            out.extend_from_slice(&bytes);
            return Some((to, Mark::None));
        }
        if self.protects
            && let Some(sealed) = self.seal_repair(now, out)
        {
            return Some(sealed);
        }
        while let Some(unsent) = self.unsent.pop_front() {
            let before = out.len();
            if let Some(sealed) = self.seal(now, &unsent, out) {
                return Some(sealed);
            }
            out.truncate(before);
        }
        if self.unsent.capacity() > UNSENT_USUAL {
            self.unsent.shrink_to(UNSENT_USUAL);
        }
        None
    }

    fn next_timeout(&self) -> Option<(Time, PeerWake)> {
        let pace = self.pace.until().filter(|_| self.waits).map(|at| (at, PeerWake::Pace));
        let filling = self.way.as_ref().and_then(Way::next_due).map(|at| (at, PeerWake::Pace));
        pace.into_iter().chain(filling).chain(self.session_due).min()
    }

    fn handle_timeout(&mut self, now: Time, recent: &Recent) {
        if self.session_due.is_some_and(|(at, _)| at <= now) {
            self.session.handle_timeout(now, &mut Scratch::default());
            self.drain();
        }
        self.pace.pass(now);
        self.fill_up(now, recent);
    }

    fn poll_event(&mut self) -> Option<PeerEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let has_room = self.waits && self.to.is_some() && self.pace.until().is_none();
        has_room.then(|| {
            self.waits = false;
            PeerEvent::Report(Report::Writable)
        })
    }

    fn save(&self) -> Option<Vec<u8>> {
        let tracks = self.tracks.iter().map(Track::save);
        let saved = SavedViewer {
            session: self.session.save()?.into(),
            tracks: tracks.collect(),
            way: self.way.as_ref().map(Way::save),
            token: self.token.to_string(),
            protection: self.fec.as_ref().map(|fec| fec.save()),
        };
        Some(encode(&saved))
    }

    fn close(&mut self, now: Time, _: &str) {
        self.session.close(now, &mut Scratch::default());
        self.drain();
    }
}
