//! What can be said of a stream by looking at its packets. No I/O, no clock.

mod frames;
mod stamps;
mod summary;

pub use summary::{Summary, TrackSummary};

use core::time::Duration;

use outflow_media::{Format, Malformed, Tag, Time};
use outflow_rtp::payload::RtpReader;
use outflow_rtp::{Placement, Reception};
use outflow_ts::TsReader;

use crate::{Packet, Received};
use frames::Frames;
use stamps::{Intervals, PcrJitter};

/// Looks at the packets of one stream.
#[derive(Debug)]
pub struct Measure {
    connecting_at: Time,
    reader: Reader,
    main: u8,
    frames: Frames,
    tracks: Vec<Loss>,
    pcr: PcrJitter,
    key_intervals: Intervals,
    packets: u64,
    bytes: u64,
    malformed: u64,
    sender_reports: u64,
    first_at: Option<Time>,
    last_at: Option<Time>,
    longest_gap: Duration,
    first_key_at: Option<Time>,
    first_decodable_at: Option<Time>,
}

/// Tells what packets mean.
#[derive(Debug)]
enum Reader {
    Ts(Box<TsReader>),
    Rtp(Vec<RtpReader>),
}

/// What RTP's numbers say of a track.
#[derive(Debug)]
struct Loss {
    encoding: String,
    clock_rate: u32,
    packets: u64,
    reception: Option<Reception>,
    /// Of sources that the present one replaced.
    lost_before: u64,
    expected_before: u64,
}

impl Measure {
    /// For a stream of this format; `connecting_at` is what times are counted from.
    pub fn new(format: &Format, connecting_at: Time) -> Self {
        let (reader, tracks) = match format {
            Format::Ts => (Reader::Ts(Box::default()), vec![Loss::new("MP2T", 90_000)]),
            // A client is never given these; were it, there would be nothing to measure.
            Format::Images | Format::Data => (Reader::Rtp(Vec::new()), Vec::new()),
            Format::Rtp(tracks) => {
                let reader = |(i, track)| RtpReader::new(i, track);
                let readers = (0..=u8::MAX).zip(tracks).map(reader).collect();
                (Reader::Rtp(readers), tracks.iter().map(|t| Loss::new(&t.encoding, t.clock_rate)).collect())
            }
        };
        Measure {
            connecting_at,
            reader,
            main: format.main_track(),
            frames: Frames::new(*format == Format::Ts),
            tracks,
            pcr: PcrJitter::default(),
            key_intervals: Intervals::default(),
            packets: 0,
            bytes: 0,
            malformed: 0,
            sender_reports: 0,
            first_at: None,
            last_at: None,
            longest_gap: Duration::ZERO,
            first_key_at: None,
            first_decodable_at: None,
        }
    }

    /// Something was received.
    pub fn received(&mut self, received: &Received) {
        match received {
            Received::Packet(packet) => self.packet(packet),
            Received::SenderReport { .. } => self.sender_reports += 1,
            Received::Levels { .. } => {}
        }
    }

    fn packet(&mut self, packet: &Packet) {
        let now = packet.arrived;
        self.packets += 1;
        self.bytes += packet.bytes.len() as u64;
        self.first_at.get_or_insert(now);
        if let Some(last) = self.last_at.replace(now) {
            self.longest_gap = self.longest_gap.max(now.since(last));
        }
        let Some(track) = self.tracks.get_mut(usize::from(packet.track)) else { return };
        track.packets += 1;
        let missing = packet.rtp.is_some_and(|rtp| track.numbers(rtp, now));
        let (tag, broken) = match self.read(packet) {
            Ok(read) => read,
            Err(_) => {
                self.malformed += 1;
                return;
            }
        };
        if tag.track != self.main {
            return;
        }
        let seen = self.frames.packet(&tag, missing || broken);
        if seen.key {
            self.first_key_at.get_or_insert(now);
            self.key_intervals.at(self.stamp(packet));
        }
        if seen.decodable {
            self.first_decodable_at.get_or_insert(now);
        }
    }

    /// The packet's tag, and whether continuity counters show that something is missing.
    fn read(&mut self, packet: &Packet) -> Result<(Tag, bool), Malformed> {
        match &mut self.reader {
            Reader::Ts(reader) => {
                let errors = reader.continuity_errors();
                let tag = reader.read(&packet.bytes)?;
                if let Some(pcr) = reader.pcr() {
                    self.pcr.at(pcr, packet.arrived);
                }
                Ok((tag, reader.continuity_errors() > errors))
            }
            Reader::Rtp(readers) => {
                let malformed = Malformed { format: "RTP", offset: 0, reason: "of no track" };
                let reader = readers.get_mut(usize::from(packet.track)).ok_or(malformed)?;
                Ok((reader.read(&packet.bytes)?, false))
            }
        }
    }

    /// Where the packet stands on the stream's own clock.
    fn stamp(&self, packet: &Packet) -> Option<Duration> {
        match (&self.reader, packet.rtp) {
            (Reader::Ts(reader), _) => reader.pcr().map(stamps::of_pcr),
            (Reader::Rtp(_), Some(rtp)) => {
                let rate = self.tracks.get(usize::from(packet.track))?.clock_rate;
                stamps::of_rtp(rtp.timestamp, rate)
            }
            (Reader::Rtp(_), None) => None,
        }
    }

    /// Bits a second from the first packet to `now`.
    pub fn rate_bps(&self, now: Time) -> u64 {
        let nanos = self.first_at.map_or(0, |first| now.since(first).as_nanos());
        (u128::from(self.bytes) * 8_000_000_000).checked_div(nanos).map_or(0, |rate| rate as u64)
    }

    /// What was found until `now`.
    pub fn summary(&self, now: Time) -> Summary {
        let since = |at: Option<Time>| at.map(|at| milliseconds(at.since(self.connecting_at)));
        let main = self.tracks.get(usize::from(self.main));
        let (is_ts, continuity_errors) = match &self.reader {
            Reader::Ts(reader) => (true, reader.continuity_errors()),
            Reader::Rtp(_) => (false, 0),
        };
        let by_rtp = self.tracks.iter().any(|track| track.reception.is_some());
        let lost = if by_rtp { self.tracks.iter().map(Loss::lost).sum() } else { continuity_errors };
        let expected: u64 = if by_rtp {
            self.tracks.iter().map(Loss::expected).sum()
        } else {
            self.bytes / 188 + continuity_errors
        };
        let jitter = main.and_then(Loss::jitter).unwrap_or_else(|| self.pcr.jitter());
        Summary {
            format: if is_ts { "mpeg-ts" } else { "rtp" },
            duration_s: self.first_at.map_or(0.0, |first| now.since(first).as_secs_f64()),
            packets: self.packets,
            bytes: self.bytes,
            rate_bps: self.rate_bps(now),
            lost,
            loss: if expected == 0 { 0.0 } else { lost as f64 / expected as f64 },
            jitter_ms: milliseconds(jitter),
            longest_gap_ms: milliseconds(self.longest_gap),
            first_packet_ms: since(self.first_at),
            first_key_ms: since(self.first_key_at),
            first_decodable_ms: since(self.first_decodable_at),
            frames: self.frames.all,
            decodable_frames: self.frames.decodable,
            key_frames: self.frames.keys,
            key_interval_ms: self.key_intervals.mean().map(milliseconds),
            continuity_errors,
            malformed: self.malformed,
            sender_reports: self.sender_reports,
            tracks: self.tracks.iter().map(Loss::summary).collect(),
        }
    }
}

impl Loss {
    fn new(encoding: &str, clock_rate: u32) -> Self {
        let encoding = encoding.to_owned();
        Loss { encoding, clock_rate, packets: 0, reception: None, lost_before: 0, expected_before: 0 }
    }

    /// Returns whether packets are missing in front of this one.
    fn numbers(&mut self, rtp: crate::RtpStamp, now: Time) -> bool {
        let (lost, expected) = (self.lost(), self.expected());
        let reception = match &mut self.reception {
            Some(reception) if reception.ssrc() == rtp.ssrc => reception,
            other => {
                let fresh = Reception::new(rtp.ssrc, self.clock_rate);
                (self.lost_before, self.expected_before) = (lost, expected);
                other.insert(fresh)
            }
        };
        match reception.packet(rtp.sequence, rtp.timestamp, now) {
            Placement::Next { lost } => lost > 0,
            Placement::Restart => true,
            Placement::Late | Placement::Stray => false,
        }
    }

    fn lost(&self) -> u64 {
        let now = self.reception.as_ref().map_or(0, |r| u64::try_from(r.lost()).unwrap_or(0));
        self.lost_before + now
    }

    fn expected(&self) -> u64 {
        self.expected_before + self.reception.as_ref().map_or(0, Reception::expected)
    }

    fn jitter(&self) -> Option<Duration> {
        self.reception.as_ref().map(Reception::jitter)
    }

    fn summary(&self) -> TrackSummary {
        TrackSummary {
            encoding: self.encoding.clone(),
            packets: self.packets,
            lost: self.lost(),
            jitter_ms: milliseconds(self.jitter().unwrap_or_default()),
        }
    }
}

/// With three decimals: more would say more than is known.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use outflow_media::{Codec, Track};

    use super::*;
    use crate::RtpStamp;

    fn format() -> Format {
        let codec = Codec::H264 { sps: None, pps: None };
        let (fmtp, encoding) = (String::new(), "H264".to_owned());
        Format::Rtp(vec![Track {
            codec,
            payload_type: 96,
            clock_rate: 90_000,
            channels: 0,
            fmtp,
            encoding,
            extensions: Vec::new(),
        }])
    }

    /// One packet a frame, 40 ms apart: an IDR picture every tenth, else P pictures.
    fn packet(number: u16) -> Packet {
        let payload: &[u8] =
            if number.is_multiple_of(10) { &[0x65, 0x88, 0x80] } else { &[0x41, 0x9a, 0x80] };
        let (sequence, timestamp, ssrc) = (number, u32::from(number) * 3600, 9);
        let header = outflow_rtp::PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc };
        Packet {
            track: 0,
            bytes: [&header.emit()[..], payload].concat().into(),
            arrived: Time::from_millis(100 + u64::from(number) * 40),
            rtp: Some(RtpStamp { sequence, timestamp, ssrc }),
        }
    }

    fn measured(numbers: impl Iterator<Item = u16>) -> Summary {
        let mut measure = Measure::new(&format(), Time::from_millis(50));
        let mut last = Time::ZERO;
        for number in numbers {
            let packet = packet(number);
            last = packet.arrived;
            measure.received(&Received::Packet(packet));
        }
        measure.summary(last)
    }

    #[test]
    fn a_clean_stream_is_told_as_such() {
        let summary = measured(0..100);
        assert_eq!((summary.packets, summary.lost, summary.malformed), (100, 0, 0));
        assert_eq!((summary.frames, summary.decodable_frames, summary.key_frames), (100, 100, 10));
        assert_eq!(summary.key_interval_ms, Some(400.0));
        assert_eq!(summary.first_packet_ms, Some(50.0));
        assert_eq!(summary.first_decodable_ms, Some(50.0));
        assert_eq!(summary.longest_gap_ms, 40.0);
        assert_eq!(summary.jitter_ms, 0.0);
        assert_eq!(summary.rate_bps, 100 * 15 * 8 * 1000 / (99 * 40));
    }

    #[test]
    fn loss_takes_the_frames_up_to_the_next_key_frame() {
        let summary = measured((3..40).filter(|n| *n != 25));
        assert_eq!((summary.lost, summary.frames), (1, 36));
        // 10 to 24 and 30 to 39: there was no key frame before 10.
        assert_eq!(summary.decodable_frames, 25);
        assert_eq!(summary.first_key_ms, Some(50.0 + 400.0));
        assert_eq!(summary.tracks[0].lost, 1);
        assert!((summary.loss - 1.0 / 37.0).abs() < 1e-9);
    }

    #[test]
    fn a_summary_of_nothing_is_all_zeros_and_nulls() {
        let summary = Measure::new(&Format::Ts, Time::ZERO).summary(Time::from_millis(9));
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["first_packet_ms"], serde_json::Value::Null);
        assert_eq!((json["packets"].as_u64(), json["loss"].as_f64()), (Some(0), Some(0.0)));
    }
}
