//! RTCP with receivers: sender reports out, receiver reports in.

use std::collections::BTreeMap;

use arrayvec::ArrayVec;
use outflow_link::Reported;
use outflow_media::Time;
use outflow_relay::control::ReportTo;
use outflow_relay::{Priority, SinkKey};
use outflow_rtp::rtcp;

use super::Worker;
use super::links::Links;
use super::negotiation::Request;
use super::reporter::Pin;
use super::reports::{reports_of, track_of};
use super::stream::LiveStream;
use super::tasks::Task;
use super::watch::Watched;
use crate::limits::{REPORT_STEP, RTCP_REPORTS_MAX, RTCP_REQUESTS_MAX, RTCP_ROUND};
use crate::message::{ReceiverReport, Unread};

impl Worker {
    /// Reads what receivers report to the worker's own RTCP port.
    pub(super) fn receive_rtcp(&mut self, token: usize) {
        let mut buffer = [0; 2048];
        // What is left is told again.
        for _ in 0..RTCP_ROUND {
            let Some(Watched::Rtcp { socket }) = self.watch.get(token) else { return };
            // Nothing left, or an error that belongs to an earlier send: both end the round.
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { return };
            // Reports from unknown addresses belong to no receiver.
            let Some(&mut ((stream, sink, track), mut pin)) = self.paths.reporter(&from) else { continue };
            if self.passes_rtcp(stream, sink, length) {
                self.receiver_report(stream, sink, Some((track, &mut pin)), &buffer[..length]);
                self.paths.reporter(&from).into_iter().for_each(|known| known.1 = pin);
            }
        }
    }

    /// Whether a receiver's packet of this length is to be read.
    fn passes_rtcp(&mut self, index: usize, sink: SinkKey, length: usize) -> bool {
        let now = self.clock.now();
        let sink = self.streams.get_mut(index).and_then(|stream| stream.sink_mut(sink));
        sink.is_some_and(|sink| sink.rtcp.passes(now, length))
    }

    /// Notes what a receiver reports: by UDP about a track, where it is known which source is the receiver's. Else the
    /// track is told by the reported SSRC.
    pub(super) fn receiver_report(
        &mut self,
        index: usize,
        sink: SinkKey,
        by_udp: Option<(u8, &mut Pin)>,
        bytes: &[u8],
    ) {
        let now = self.clock.now();
        let ntp = self.clock.ntp(now);
        let Some(stream) = self.streams.get_mut(index) else { return };
        let Some(branch) = stream.core.sink(sink).and_then(|sink| sink.branch) else { return };
        let read = stream.read_report(now, branch, by_udp, bytes);
        if let Some(sink) = stream.sink_mut(sink) {
            let counts = sink.rtcp.counts();
            for (why, count) in [(Unread::Parts, read.left_out), (Unread::Foreign, read.foreign)] {
                counts.add(why, count);
            }
        }
        if let Some(track) = read.wanted {
            stream.core.handle_key_frame_request(sink, track);
            stream.touched = true;
            stream.sink_mut(sink).into_iter().for_each(|sink| sink.key_frame_requests += 1);
        }
        for wish in read.wishes {
            if let Some((track, answer)) = stream.negotiate(now, sink, wish, &mut self.links)
                && let Some(sink) = stream.sink_mut(sink)
            {
                self.paths.send_rtcp(&self.watch, now, &mut sink.out, (track, &answer));
                self.paths.peers().plan(&mut self.tasks);
            }
        }
        for (track, block) in read.blocks {
            stream.note_block((now, ntp), (sink, branch), (track, block), &mut self.links);
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
        let by_rtp = |key: &SinkKey| stream.core.spec(*key).is_some_and(|spec| spec.encapsulation.is_rtp());
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
            for (track, bytes) in reports.iter() {
                self.paths.send_rtcp(&self.watch, now, &mut sink.out, (*track, bytes));
            }
        }
        self.paths.peers().plan(&mut self.tasks);
    }
}

/// What a compound RTCP packet of a receiver says.
#[derive(Default)]
struct Read {
    /// Report blocks, by track.
    blocks: ArrayVec<(u8, rtcp::ReportBlock), RTCP_REPORTS_MAX>,
    wishes: ArrayVec<Request, RTCP_REQUESTS_MAX>,
    /// The track of which it wants a key frame.
    wanted: Option<u8>,
    /// What was looked at that names a source.
    looked_at: usize,
    /// What was not looked at any more.
    left_out: u64,
    /// What another source said.
    foreign: u64,
}

impl Read {
    /// Whether one more that names a source is to be looked at.
    fn looks(&mut self) -> bool {
        let looks = self.looked_at < RTCP_REPORTS_MAX;
        self.looked_at += usize::from(looks);
        self.left_out += u64::from(!looks);
        looks
    }

    fn wish(&mut self, wish: Request) {
        self.left_out += u64::from(self.wishes.try_push(wish).is_err());
    }
}

impl LiveStream {
    /// Reads RTCP of a sink that gets this branch.
    fn read_report(&self, now: Time, branch: usize, by_udp: Option<(u8, &mut Pin)>, bytes: &[u8]) -> Read {
        let mut read = Read::default();
        let (track, mut pin) = by_udp.unzip();
        // What was told before a malformed part holds; the rest is the receiver's own loss.
        let _ = rtcp::read(bytes, |report| match report {
            _ if pin.as_mut().is_some_and(|pin| !is_of_receiver(now, pin, &report)) => read.foreign += 1,
            rtcp::Report::Block { block, .. } if read.looks() => {
                let by_ssrc = || track_of(&self.core, now, branch, block.ssrc);
                if let Some(track) = track.or_else(by_ssrc) {
                    read.blocks.push((track, block));
                }
            }
            rtcp::Report::KeyFrame { media, .. } if read.looks() => {
                let by_ssrc = || track_of(&self.core, now, branch, media);
                read.wanted = track.or_else(by_ssrc);
            }
            report => Request::of(report).into_iter().for_each(|wish| read.wish(wish)),
        });
        read
    }

    /// Takes note of a report block about a track, at this time, of both clocks.
    fn note_block(
        &mut self,
        (now, ntp): (Time, u64),
        (sink, branch): (SinkKey, usize),
        (track, block): (u8, rtcp::ReportBlock),
        links: &mut Links,
    ) {
        // It is handed on with what else is due: it does not wake the stream.
        self.core.handle_loss(block.fraction_lost);
        let rate = self.core.branch_format(branch).map_or(90_000, |format| format.clock_rate(track));
        let report = ReceiverReport {
            track,
            fraction_lost: f64::from(block.fraction_lost) / 256.0,
            lost: i64::from(block.lost),
            jitter_ms: f64::from(block.jitter) * 1000.0 / f64::from(rate.max(1)),
            rtt_ms: block.round_trip(ntp).map(|rtt| rtt.as_secs_f64() * 1000.0),
        };
        let Some(sink) = self.sink_mut(sink) else { return };
        if let Some(behind) = &sink.behind {
            let reported = Reported { highest: block.highest, lost: block.lost };
            links.handle_report(now, behind, track, reported);
        }
        match sink.reports.iter_mut().find(|known| known.track == track) {
            Some(known) => *known = report,
            None => sink.reports.push(report),
        }
    }
}

/// Whether the source that a receiver reports as says this, as far as it matters.
fn is_of_receiver(now: Time, pin: &mut Pin, report: &rtcp::Report) -> bool {
    match report {
        rtcp::Report::Receiver { ssrc } => pin.hear(now, *ssrc),
        rtcp::Report::Sender(report) => pin.hear(now, report.ssrc),
        rtcp::Report::Block { from, .. }
        | rtcp::Report::KeyFrame { from, .. }
        | rtcp::Report::Lost { from, .. }
        | rtcp::Report::Limit { from, .. }
        | rtcp::Report::Level { from, .. } => pin.is(*from),
        rtcp::Report::Bye { ssrc } => {
            pin.leave(*ssrc);
            true
        }
        rtcp::Report::App { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use outflow_relay::StreamOptions;
    use outflow_rtp::rtcp::{LevelMessage, LevelRequest, ReportBlock};

    use super::*;

    fn read(packets: &[Vec<u8>]) -> Read {
        read_by(&mut Pin::default(), packets)
    }

    fn read_by(pin: &mut Pin, packets: &[Vec<u8>]) -> Read {
        let (told, _) = crate::message::demands(0);
        let (name, options) = ("live".to_owned(), StreamOptions::default());
        let stream = LiveStream::new((1, 1), name, String::new(), options, Vec::new(), told);
        stream.read_report(Time::ZERO, 0, Some((0, pin)), &packets.concat())
    }

    #[test]
    fn what_another_source_says_from_a_receivers_address_is_not_taken() {
        let block =
            ReportBlock { ssrc: 7, fraction_lost: 255, lost: 0, highest: 1, jitter: 0, lsr: 0, dlsr: 0 };
        let wish = LevelMessage::Request(LevelRequest { number: 1, level: 3, media: 7 });
        let said = |ssrc| {
            let key_frame = rtcp::key_frame_request(ssrc, 7, 1, "r");
            [rtcp::receiver_report(ssrc, &[block], "r"), wish.emit(ssrc, "r"), key_frame]
        };
        let taken =
            |read: Read| (read.blocks.len(), read.wishes.len(), read.wanted.is_some(), read.foreign > 0);
        let mut pin = Pin::default();
        assert_eq!(taken(read_by(&mut pin, &said(9))), (1, 1, true, false));
        assert_eq!(taken(read_by(&mut pin, &said(10))), (0, 0, false, true), "forged");
        assert_eq!(taken(read_by(&mut pin, &said(9))), (1, 1, true, false), "it goes on");
        // A request alone, without the report that a packet begins with (RFC 3550, section 6.1).
        let remb = [0x8f, 206, 0, 5, 0, 0, 0, 9, 0, 0, 0, 0, b'R', b'E', b'M', b'B', 1, 4, 0, 1, 0, 0, 0, 7];
        assert_eq!(
            taken(read_by(&mut pin, &[remb.to_vec()])),
            (0, 1, false, false),
            "it has reported before"
        );
        let unknown = read_by(&mut Pin::default(), &[remb.to_vec()]);
        assert_eq!(taken(unknown), (0, 0, false, true), "it has not");
    }

    #[test]
    fn of_a_packet_full_of_reports_a_few_are_looked_at_and_the_rest_is_counted() {
        let block =
            ReportBlock { ssrc: 7, fraction_lost: 0, lost: 0, highest: 1, jitter: 0, lsr: 0, dlsr: 0 };
        let reports = vec![rtcp::receiver_report(9, &[block; 31], "r"); 2];
        let asks = vec![rtcp::key_frame_request(9, 7, 1, "r")];
        let read = read(&[reports, asks].concat());
        assert_eq!(read.blocks.len(), RTCP_REPORTS_MAX);
        // A key frame is asked for in two words, PLI and FIR.
        assert_eq!((read.wanted, read.left_out), (None, 62 + 2 - RTCP_REPORTS_MAX as u64));
    }

    #[test]
    fn so_are_requests() {
        let request =
            |number| LevelMessage::Request(LevelRequest { number, level: 1, media: 7 }).emit(9, "r");
        let read = read(&(0..10).map(request).collect::<Vec<_>>());
        assert_eq!((read.wishes.len(), read.left_out), (RTCP_REQUESTS_MAX, 10 - RTCP_REQUESTS_MAX as u64));
    }
}
