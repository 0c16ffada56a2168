//! A publisher: what it sends is taken, what is missing is asked for, and it is told what came.

mod arriving;
mod layers;
mod missing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use outflow_dtls::Scratch;
use outflow_media::{Rate, Time, TokenBucket};
use outflow_rtp::rtcp::transport_cc::Writer;
use outflow_rtp::{Arrivals, RtpHeader, rtcp};
use outflow_webrtc::{Received, Session};

use crate::limits::{REPORT_EVERY, RTCP_BURST, RTCP_PER_SECOND};
use crate::restart::Restarts;
use crate::settings::NAME;
use crate::tcp::Gateways;
use arriving::Arriving;
pub(crate) use arriving::{Layer, Receiving};
use layers::{Came, Layers};

/// The state machine of a publisher. It is to be polled after each call.
#[derive(Debug)]
pub(crate) struct Ingest {
    session: Session,
    gateways: Arc<Gateways>,
    restarts: Restarts,
    /// What reports are from.
    ssrc: u32,
    /// And layers of tracks.
    tracks: Vec<Arriving>,
    /// Of the track that comes in several.
    layers: Layers,
    // bounded: a datagram adds a few, and all are taken out before the next.
    outputs: VecDeque<Output>,
    report_at: Time,
    /// Which packets of the transport came, and what says so, once one has a number there.
    arrivals: Arrivals,
    says: Option<Writer>,
    session_due: Option<Time>,
    reports: TokenBucket,
    requests: u8,
}

/// What an [`Ingest`] wants done, or tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A datagram is to be sent.
    Send(SocketAddr, Vec<u8>),
    /// A packet of a track, in this quality, the best first; of one that comes in one only, in all.
    Media(Option<u8>, u8, Bytes),
    /// RTCP of a track likewise.
    Rtcp(Option<u8>, u8, Bytes),
    /// The publisher is there.
    Valid(SocketAddr),
    /// It is not there any more.
    Invalid(SocketAddr),
    /// It is gone: why, for people.
    Ended(String),
}

impl Ingest {
    /// One that sends these tracks; `ssrc` is what it is told in the name of.
    pub(crate) fn new(
        now: Time,
        (session, gateways, restarts): (Session, Arc<Gateways>, Restarts),
        ssrc: u32,
        tracks: &[Receiving],
    ) -> Self {
        let mut ingest = Ingest {
            session,
            gateways,
            restarts,
            ssrc,
            tracks: tracks.iter().map(|track| Arriving::new(track.clone())).collect(),
            layers: Layers::new(tracks.iter().filter(|track| track.layer.is_some()).count() as u8),
            outputs: VecDeque::new(),
            report_at: now + REPORT_EVERY,
            arrivals: Arrivals::default(),
            says: None,
            session_due: None,
            reports: TokenBucket::new(RTCP_BURST),
            requests: 0,
        };
        ingest.drain();
        ingest
    }

    /// A datagram came.
    pub(crate) fn handle_datagram(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let path = self.gateways.path(from);
        match self.restarts.handle_datagram(&mut self.session, (now, path), datagram) {
            Ok(Received::Media(length)) => self.media(now, &datagram[..length]),
            Ok(Received::Control(length)) => self.control(now, &datagram[..length]),
            Ok(Received::Own) | Err(_) => {}
        }
        self.drain();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(crate) fn due(&self) -> Time {
        let missing = self.tracks.iter().filter_map(Arriving::due);
        let due = missing.chain(self.arrivals.due()).chain(self.layers.due()).chain(self.session_due);
        due.fold(self.report_at, Time::min)
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.session_due.is_some_and(|at| at <= now) {
            self.session.handle_timeout(now, &mut Scratch::default());
        }
        for number in 0..self.tracks.len() {
            if let Some((source, numbers)) = self.tracks[number].ask(now) {
                self.say(rtcp::lost(self.ssrc, source, &numbers, NAME));
            }
        }
        if self.report_at <= now {
            self.report_at = now + REPORT_EVERY;
            let blocks: Vec<_> = self.tracks.iter_mut().filter_map(|track| track.report(now)).collect();
            self.say(rtcp::receiver_report(self.ssrc, &blocks, NAME));
        }
        let outputs = &mut self.outputs;
        self.layers.handle_timeout(now, |came| outputs.push_back(came.into()));
        let mut messages = Vec::new();
        if let (Some((first, times)), Some(says)) = (self.arrivals.poll(now), &mut self.says) {
            says.write(first, times, NAME, |message| messages.push(message));
        }
        messages.into_iter().for_each(|message| self.say(message));
        self.drain();
    }

    /// Receivers cannot go on without a key frame of a track, in this quality if it comes in several.
    pub(crate) fn want_key_frame(&mut self, quality: u8, track: u8) {
        let layer = self.layers.turned(quality);
        let is_meant =
            |one: &&Arriving| one.track() == track && (one.layer().is_none() || one.layer() == layer);
        if let Some(source) = self.tracks.iter().find(is_meant).and_then(Arriving::source) {
            self.requests = self.requests.wrapping_add(1);
            self.say(rtcp::key_frame_request(self.ssrc, source, self.requests, NAME));
        }
    }

    /// The relay ends it, and says so.
    pub(crate) fn close(&mut self, now: Time) {
        self.session.close(now, &mut Scratch::default());
        self.drain();
    }

    /// What is next.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn drain(&mut self) {
        loop {
            let place = |path| self.gateways.place(path);
            match self.session.poll() {
                outflow_webrtc::Output::Send(path, bytes) => {
                    self.outputs.push_back(Output::Send(place(path), bytes));
                }
                outflow_webrtc::Output::Valid(path) => self.outputs.push_back(Output::Valid(place(path))),
                outflow_webrtc::Output::Invalid(path) => self.outputs.push_back(Output::Invalid(place(path))),
                outflow_webrtc::Output::Ended(why) => self.outputs.push_back(Output::Ended(why.to_string())),
                outflow_webrtc::Output::Ready => {}
                outflow_webrtc::Output::Wait(at, _) => {
                    self.session_due = Some(at);
                    return;
                }
                outflow_webrtc::Output::Nothing => {
                    self.session_due = None;
                    return;
                }
            }
        }
    }

    /// Sends RTCP, once there is somewhere to send to.
    fn say(&mut self, mut packet: Vec<u8>) {
        if let Some(path) = self.session.path()
            && self.session.seal_control(&mut packet).is_ok()
        {
            self.outputs.push_back(Output::Send(self.gateways.place(path), packet));
        }
    }

    fn media(&mut self, now: Time, packet: &[u8]) {
        let Ok(header) = RtpHeader::new_checked(packet) else { return };
        if let Some(number) = self.tracks.iter().find_map(|track| track.transport_number(&header)) {
            self.says.get_or_insert_with(|| Writer::new(self.ssrc, header.ssrc()));
            self.arrivals.handle(now, number, packet.len());
        }
        let outputs = &mut self.outputs;
        let taken = self.tracks.iter_mut().find_map(|one| Some((one.take(now, &header, packet)?, one)));
        match taken.map(|(packet, one)| (packet, one.track(), one.layer())) {
            Some((packet, track, None)) => outputs.push_back(Output::Media(None, track, packet)),
            Some((packet, track, Some(layer))) => {
                let came = Came { layer, track, packet };
                self.layers.take(now, came, header.marker(), |came| outputs.push_back(came.into()));
            }
            None => {}
        }
    }

    fn control(&mut self, now: Time, packet: &[u8]) {
        if !self.reports.pass(now, Rate::per_second(RTCP_PER_SECOND)) {
            return;
        }
        let (tracks, layers, outputs) = (&mut self.tracks, &self.layers, &mut self.outputs);
        // What stands before a malformed part holds.
        let _ = rtcp::read(packet, |report| {
            if let rtcp::Report::Sender(report) = report
                && let Some(at) = tracks.iter_mut().position(|track| track.hear(now, &report))
            {
                let (layer, track) = (tracks[at].layer(), tracks[at].track());
                let quality = layer.and_then(|layer| layers.turned(layer));
                // Of which quality it is may not be known yet. It is said again.
                if layer.is_some() == quality.is_some() {
                    outputs.push_back(Output::Rtcp(quality, track, Bytes::copy_from_slice(packet)));
                }
            }
        });
    }
}

impl From<Came> for Output {
    fn from(came: Came) -> Self {
        Output::Media(Some(came.layer), came.track, came.packet)
    }
}
