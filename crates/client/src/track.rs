//! One RTP track as it is received: packets in, reports back.

use std::collections::VecDeque;

use bytes::Bytes;
use core::time::Duration;
use minicbor::{Decode, Encode};
use outflow_media::{Codec, Time, Track};
use outflow_rtp::rtcp::{LevelAnswer, LevelMessage, Report, key_frame_request};
use outflow_rtp::save::SavedReception;
use outflow_rtp::{Reception, RtpHeader, rtcp};

use crate::negotiation::Negotiation;
use crate::{Packet, Received, RtpStamp};

/// Mean time between reports, RFC 3550 section 6.2.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The receiving end of a track.
#[derive(Debug)]
pub(crate) struct RtpTrack {
    index: u8,
    /// Carries a transport stream, which is taken out.
    holds_ts: bool,
    payload_type: Option<u8>,
    clock_rate: u32,
    reception: Option<Reception>,
    ssrc: u32,
    cname: String,
    random: u64,
    report_at: Option<Time>,
    negotiation: Negotiation,
    /// A key frame is to be asked for; how often it was, which wraps.
    key_frame: (bool, u8),
    pub(crate) malformed: u64,
}

/// A track that goes on in another process. Times are nanoseconds since the clock's zero.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct SavedRtpTrack {
    #[n(0)]
    holds_ts: bool,
    #[n(1)]
    payload_type: Option<u8>,
    #[n(2)]
    clock_rate: u32,
    #[n(3)]
    reception: Option<SavedReception>,
    #[n(4)]
    ssrc: u32,
    #[n(5)]
    cname: String,
    #[n(6)]
    random: u64,
    #[n(7)]
    report_at_ns: Option<u64>,
    /// How often a key frame was asked for, which wraps.
    #[n(8)]
    asked: u8,
    #[n(9)]
    malformed: u64,
}

impl RtpTrack {
    /// What another process goes on with. Levels have to be asked for again.
    pub(crate) fn save(&self) -> SavedRtpTrack {
        SavedRtpTrack {
            holds_ts: self.holds_ts,
            payload_type: self.payload_type,
            clock_rate: self.clock_rate,
            reception: self.reception.as_ref().and_then(Reception::save),
            ssrc: self.ssrc,
            cname: self.cname.clone(),
            random: self.random,
            report_at_ns: self.report_at.map(Time::as_nanos),
            asked: self.key_frame.1,
            malformed: self.malformed,
        }
    }

    /// Goes on with what another process has saved, as the track that stands at `index`.
    pub(crate) fn restore(index: u8, saved: SavedRtpTrack) -> Self {
        RtpTrack {
            index,
            holds_ts: saved.holds_ts,
            payload_type: saved.payload_type,
            clock_rate: saved.clock_rate,
            reception: saved.reception.map(|it| Reception::restore(it, saved.clock_rate)),
            ssrc: saved.ssrc,
            cname: saved.cname,
            random: saved.random,
            report_at: saved.report_at_ns.map(Time::from_nanos),
            negotiation: Negotiation::new((saved.random >> 32) as u16),
            key_frame: (false, saved.asked),
            malformed: saved.malformed,
        }
    }

    /// The track that stands at `index`. `seed` gives its synchronization source.
    pub(crate) fn new(index: u8, track: &Track, seed: u64) -> Self {
        let random = mixed(seed.wrapping_add(u64::from(index)));
        RtpTrack {
            index,
            holds_ts: track.codec == Codec::Mp2t,
            payload_type: Some(track.payload_type),
            clock_rate: track.clock_rate,
            reception: None,
            ssrc: random as u32,
            cname: format!("outflow-{:08x}", mixed(seed) as u32),
            random,
            report_at: None,
            negotiation: Negotiation::new((random >> 32) as u16),
            key_frame: (false, 0),
            malformed: 0,
        }
    }

    /// A transport stream in RTP whose payload type is not known.
    pub(crate) fn transport_stream(seed: u64) -> Self {
        RtpTrack { payload_type: None, ..RtpTrack::new(0, &Track::mp2t(), seed) }
    }

    /// Our synchronization source.
    pub(crate) fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Takes a datagram or interleaved frame that should be an RTP packet.
    pub(crate) fn media(&mut self, mut bytes: Bytes, now: Time, queue: &mut VecDeque<Received>) {
        let Ok(header) = RtpHeader::new_checked(&bytes) else {
            self.malformed += 1;
            return;
        };
        let payload = header.payload_offset()..header.payload_offset() + header.payload().len();
        let described = self.payload_type.is_none_or(|pt| pt == header.payload_type());
        let is_ts = payload.len() % 188 == 0 && header.payload().first() == Some(&0x47);
        if !described || (self.holds_ts && !is_ts) {
            self.malformed += 1;
            return;
        }
        let (sequence, timestamp, ssrc) = (header.sequence(), header.timestamp(), header.ssrc());
        self.received(RtpStamp { sequence, timestamp, ssrc }, now);
        if self.holds_ts {
            bytes = bytes.slice(payload);
        }
        let rtp = Some(RtpStamp { sequence, timestamp, ssrc });
        let track = if self.holds_ts { 0 } else { self.index };
        queue.push_back(Received::Packet(Packet { track, bytes, arrived: now, rtp }));
    }

    fn received(&mut self, stamp: RtpStamp, now: Time) {
        let reception = match &mut self.reception {
            Some(reception) if reception.ssrc() == stamp.ssrc => reception,
            other => other.insert(Reception::new(stamp.ssrc, self.clock_rate)),
        };
        reception.packet(stamp.sequence, stamp.timestamp, now);
        self.negotiation.hear(now, stamp.ssrc);
        if self.report_at.is_none() {
            // The first report comes early, so that the sender sees us.
            self.report_at = Some(now + REPORT_EVERY / 10);
        }
    }

    /// Takes a compound RTCP packet.
    pub(crate) fn control(&mut self, bytes: &[u8], now: Time, queue: &mut VecDeque<Received>) {
        let track = if self.holds_ts { 0 } else { self.index };
        let (reception, negotiation) = (&mut self.reception, &mut self.negotiation);
        let read = rtcp::read(bytes, |report| match report {
            Report::Sender(report) => {
                if let Some(reception) = reception.as_mut().filter(|r| r.ssrc() == report.ssrc) {
                    reception.sender_report(report.ntp, now);
                }
                queue.push_back(Received::SenderReport { track, report, arrived: now });
            }
            Report::Level { message: LevelMessage::Answer(answer), .. } if negotiation.answered(&answer) => {
                let LevelAnswer { level, rates, .. } = answer;
                queue.push_back(Received::Levels { level, rates, arrived: now });
            }
            _ => {}
        });
        self.malformed += u64::from(read.is_err());
    }

    /// This level is wanted from now on.
    pub(crate) fn ask(&mut self, now: Time, level: u8) {
        self.negotiation.ask(now, level);
    }

    /// A key frame is to be asked for.
    pub(crate) fn ask_key_frame(&mut self) {
        self.key_frame.0 = true;
    }

    /// When there is something to report or to ask.
    pub(crate) fn rtcp_at(&self) -> Option<Time> {
        if self.key_frame.0 {
            return Some(Time::ZERO);
        }
        self.report_at.into_iter().chain(self.negotiation.due()).min()
    }

    /// A report or request that is due, if one is; there may be another one behind it.
    pub(crate) fn rtcp(&mut self, now: Time) -> Option<Vec<u8>> {
        if let Some(request) = self.negotiation.poll(now) {
            return Some(LevelMessage::Request(request).emit(self.ssrc, &self.cname));
        }
        if core::mem::take(&mut self.key_frame.0)
            && let Some(reception) = &self.reception
        {
            self.key_frame.1 = self.key_frame.1.wrapping_add(1);
            return Some(key_frame_request(self.ssrc, reception.ssrc(), self.key_frame.1, &self.cname));
        }
        self.report(now)
    }

    fn report(&mut self, now: Time) -> Option<Vec<u8>> {
        self.report_at.filter(|at| *at <= now)?;
        // Between half and one and a half of the mean, RFC 3550 section 6.3.1.
        self.random = mixed(self.random.wrapping_add(0x9E37_79B9_7F4A_7C15));
        self.report_at = Some(now + REPORT_EVERY / 2 + REPORT_EVERY * (self.random as u8).into() / 256);
        let block = self.reception.as_mut()?.report(now);
        Some(rtcp::receiver_report(self.ssrc, &[block], &self.cname))
    }
}

/// The finalizer of SplitMix64: neighbouring seeds give unrelated numbers.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use outflow_rtp::PlainHeader;

    use super::*;

    fn rtp(payload_type: u8, sequence: u16, payload: &[u8]) -> Bytes {
        let header = PlainHeader { marker: false, payload_type, sequence, timestamp: 900, ssrc: 5 };
        [&header.emit()[..], payload].concat().into()
    }

    #[test]
    fn a_transport_stream_is_taken_out_of_its_packets() {
        let (mut track, mut queue) = (RtpTrack::transport_stream(1), VecDeque::new());
        let mut ts = [0; 376];
        ts[0] = 0x47;
        track.media(rtp(96, 7, &ts), Time::ZERO, &mut queue);
        track.media(rtp(96, 8, &ts[1..]), Time::ZERO, &mut queue);
        track.media(Bytes::from_static(b"\x80"), Time::ZERO, &mut queue);
        let Some(Received::Packet(packet)) = queue.pop_front() else { panic!("{queue:?}") };
        assert_eq!(packet.bytes, ts[..]);
        assert_eq!(packet.rtp, Some(RtpStamp { sequence: 7, timestamp: 900, ssrc: 5 }));
        assert!(queue.is_empty());
        assert_eq!(track.malformed, 2);
    }

    #[test]
    fn reports_tell_what_was_lost_and_when_the_sender_spoke() {
        let (mut track, mut queue) = (RtpTrack::transport_stream(1), VecDeque::new());
        let mut ts = [0; 188];
        ts[0] = 0x47;
        assert_eq!(track.rtcp_at(), None, "there is none to report on");
        track.media(rtp(33, 1, &ts), Time::ZERO, &mut queue);
        track.media(rtp(33, 3, &ts), Time::ZERO, &mut queue);
        let sent = rtcp::SenderReport { ssrc: 5, ntp: 1 << 40, rtp: 900, packets: 3, octets: 564 };
        track.control(&rtcp::sender_report(&sent, "s"), Time::ZERO, &mut queue);
        assert!(matches!(queue.back(), Some(Received::SenderReport { report, .. }) if *report == sent));
        let at = track.rtcp_at().unwrap();
        assert_eq!(track.rtcp(Time::ZERO), None);
        let report = track.rtcp(at).unwrap();
        let mut blocks = Vec::new();
        rtcp::read(&report, |told| {
            if let Report::Block { block, .. } = told {
                blocks.push(block);
            }
        })
        .unwrap();
        assert_eq!((blocks[0].ssrc, blocks[0].lost, blocks[0].lsr), (5, 1, 1 << 24));
        assert!(track.rtcp_at().unwrap() > at);
    }
}
