//! RTCP with receivers: sender reports out, receiver reports in.

use std::collections::BTreeMap;
use std::net::UdpSocket;

use arrayvec::ArrayVec;
use outflow_link::Reported;
use outflow_media::{Format, Time};
use outflow_relay::control::ReportTo;
use outflow_relay::{Carriage, Priority, SinkKey, Stream};
use outflow_rtp::rtcp;

use super::negotiation::Wish;
use super::peers::Peers;
use super::stream::{LiveStream, Out};
use super::tasks::Task;
use super::{Watched, Worker};
use crate::limits::REPORT_STEP;
use crate::message::ReceiverReport;
use crate::send::udp::{UdpPort, send_one};

/// The name under which the relay reports (RFC 3550, section 6.5.1).
pub(super) const CNAME: &str = "outflow";

impl Worker {
    /// Reads what receivers report to the worker's own RTCP port.
    pub(super) fn receive_rtcp(&mut self, token: usize) {
        let mut buffer = [0; 2048];
        loop {
            let Some(Watched::Rtcp { socket }) = self.watched.get(token) else { return };
            // Nothing left, or an error that belongs to an earlier send: both end the round.
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { return };
            // Reports from unknown addresses belong to no receiver.
            if let Some(&(stream, sink, track)) = self.rtcp_peers.get(&from) {
                self.receiver_report(stream, sink, Some(track), &buffer[..length]);
            }
        }
    }

    /// Notes what a receiver reports. Without a track it is told by the reported SSRC.
    pub(super) fn receiver_report(&mut self, index: usize, sink: SinkKey, track: Option<u8>, bytes: &[u8]) {
        let now = self.clock.now();
        let ntp = self.clock.ntp(now);
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(branch) = stream.core.sink(sink).and_then(|sink| sink.branch) else { return };
        let (mut found, mut wishes, mut wanted) = (Vec::new(), Vec::new(), None);
        // What was told before a malformed part holds; the rest is the receiver's own loss.
        let _ = rtcp::read(bytes, |report| match report {
            rtcp::Report::Block { block, .. } => {
                let by_ssrc = || track_of(stream, now, branch, block.ssrc);
                if let Some(track) = track.or_else(by_ssrc) {
                    found.push((track, block));
                }
            }
            rtcp::Report::KeyFrame { media, .. } => {
                let by_ssrc = || track_of(stream, now, branch, media);
                wanted = track.or_else(by_ssrc);
            }
            report => wishes.extend(Wish::of(report)),
        });
        if let Some(track) = wanted {
            stream.core.handle_key_frame_request(track);
            stream.touched = true;
        }
        for wish in wishes {
            self.negotiate(index, sink, wish);
        }
        let Some(stream) = self.streams.get_mut(index) else { return };
        for (track, block) in found {
            // It is handed on with what else is due: it does not wake the stream.
            stream.core.handle_loss(block.fraction_lost);
            let rate = stream.core.branch_format(branch).map_or(90_000, |format| format.clock_rate(track));
            let report = ReceiverReport {
                track,
                fraction_lost: f64::from(block.fraction_lost) / 256.0,
                lost: i64::from(block.lost),
                jitter_ms: f64::from(block.jitter) * 1000.0 / f64::from(rate.max(1)),
                rtt_ms: block.round_trip(ntp).map(|rtt| rtt.as_secs_f64() * 1000.0),
            };
            let Some(sink) = stream.sink_mut(sink) else { return };
            if let Some(behind) = &sink.behind {
                let reported = Reported { highest: block.highest, lost: block.lost };
                self.links.handle_report(now, behind, track, reported);
            }
            match sink.reports.iter_mut().find(|known| known.track == track) {
                Some(known) => *known = report,
                None => sink.reports.push(report),
            }
        }
    }

    /// Sends the stream's sender reports: to one sink now, or to all, a few at a time.
    pub(super) fn send_reports(&mut self, index: usize, to: ReportTo) {
        match to {
            ReportTo::One(key) => self.send_reports_to(index, &[key]),
            ReportTo::All => {
                if let Some(stream) = self.streams.get_mut(index) {
                    stream.reporting = Some(0);
                    self.tasks.add(Priority::Normal, Task::Report(index));
                }
            }
        }
    }

    /// Sends the reports that are due to the next sinks.
    pub(super) fn go_on_with_reports(&mut self, index: usize) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(from) = stream.reporting.take() else { return };
        let by_rtp = |key: &SinkKey| stream.core.spec(*key).is_some_and(|s| s.carriage == Carriage::Rtp);
        let keys = (from..stream.sinks.len()).map(SinkKey).filter(by_rtp);
        let keys: ArrayVec<SinkKey, REPORT_STEP> = keys.take(REPORT_STEP).collect();
        if keys.is_full() {
            stream.reporting = keys.last().map(|key| key.0 + 1);
            self.tasks.add(Priority::Normal, Task::Report(index));
        }
        self.send_reports_to(index, &keys);
    }

    fn send_reports_to(&mut self, index: usize, keys: &[SinkKey]) {
        let now = self.clock.now();
        let Some(stream) = self.streams.get_mut(index) else { return };
        // Of each branch, made once.
        let mut reports: BTreeMap<usize, Vec<(u8, Vec<u8>)>> = BTreeMap::new();
        for key in keys {
            let Some(branch) = stream.core.sink(*key).and_then(|sink| sink.branch) else { continue };
            let reports = reports.entry(branch).or_insert_with(|| reports_of(&stream.core, now, branch));
            let Some(Some(sink)) = stream.sinks.get_mut(key.0) else { continue };
            let now = self.clock.now();
            let (watched, ports, peers) = (&self.watched, &self.ports, &mut self.peers);
            let mut from = ReportPorts { now, watched, ports, peers };
            for (track, bytes) in reports.iter() {
                from.send(&mut sink.out, *track, bytes);
            }
        }
        self.plan_peers();
    }

    /// Sends an RTCP packet about a track to a receiver.
    pub(super) fn send_rtcp(&mut self, index: usize, sink: SinkKey, track: u8, bytes: &[u8]) {
        let now = self.clock.now();
        let (watched, ports, peers) = (&self.watched, &self.ports, &mut self.peers);
        let mut from = ReportPorts { now, watched, ports, peers };
        let stream = self.streams.get_mut(index);
        if let Some(sink) = stream.and_then(|stream| stream.sink_mut(sink)) {
            from.send(&mut sink.out, track, bytes);
        }
        self.plan_peers();
    }
}

/// The sockets that RTCP goes out from.
struct ReportPorts<'a> {
    now: Time,
    watched: &'a slab::Slab<Watched>,
    ports: &'a slab::Slab<UdpPort>,
    peers: &'a mut Peers,
}

impl ReportPorts<'_> {
    fn send(&mut self, out: &mut Out, track: u8, bytes: &[u8]) {
        match out {
            Out::Udp { route, rtcp, .. } => {
                let socket = self.socket(route.socket);
                if let (Some(socket), Some((_, to))) = (socket, rtcp.iter().find(|(t, _)| *t == track)) {
                    send_one(socket, bytes, to);
                }
            }
            Out::Stream { connection: Some((connection, _)), framing } if !connection.has_unsent() => {
                if let Some(framed) = framing.rtcp(track, bytes) {
                    // A broken connection shows itself at the next packet.
                    connection.inject(&framed);
                }
            }
            Out::Peer { place: Some(place), .. } => self.peers.write_rtcp(self.now, *place, track, bytes),
            Out::Stream { .. } | Out::Peer { place: None, .. } => {}
        }
    }

    /// The RTCP side of a pair, else the port itself.
    fn socket(&self, port: usize) -> Option<&UdpSocket> {
        let port = self.ports.get(port)?;
        let Some(token) = port.rtcp else { return Some(&port.socket) };
        match self.watched.get(token)? {
            Watched::Rtcp { socket } => Some(socket),
            _ => None,
        }
    }
}

/// The sender reports of a branch, by track.
fn reports_of(core: &Stream, now: Time, branch: usize) -> Vec<(u8, Vec<u8>)> {
    let format = core.branch_format(branch);
    let tracks = format.map_or(0, Format::tracks).min(usize::from(u8::MAX)) as u8;
    // A receiver that gets a track encrypted takes no report that is not (RFC 3711, section 3.4).
    let is_plain = |track: &u8| {
        format.and_then(|format| format.track(*track)).is_none_or(|track| !track.codec.is_srtp())
    };
    let report = |track| Some((track, rtcp::sender_report(&core.sender_report(now, branch, track)?, CNAME)));
    (0..tracks).filter(is_plain).filter_map(report).collect()
}

fn track_of(stream: &LiveStream, now: Time, branch: usize, ssrc: u32) -> Option<u8> {
    let tracks = stream.core.branch_format(branch).map_or(0, Format::tracks);
    let report = |track| stream.core.sender_report(now, branch, track);
    let is_it = |track: &u8| report(*track).is_some_and(|report| report.ssrc == ssrc);
    (0..tracks.min(255) as u8).find(is_it)
}
