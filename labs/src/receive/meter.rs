//! What one receiver got, and what it missed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::figures::Delays;
use crate::media::{Continuity, Marker, TS_PACKET};

/// Of RTP's clock for video and transport streams.
const TICKS_PER_SECOND: u32 = 90_000;

/// Counts of one receiver over a period.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    /// Bytes of media, transport or RTP headers included.
    pub bytes: u64,
    /// Datagrams of the synthetic source, by their markers.
    pub datagrams: u64,
    /// Numbers missing among them.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub reordered: u64,
    /// RTP packets.
    pub rtp: u64,
    /// RTP sequence numbers missing, on all tracks.
    pub rtp_lost: u64,
    /// RTP packets that came after a later one.
    pub rtp_reordered: u64,
    /// RTP packets that came again, directly behind each other.
    pub rtp_repeated: u64,
    /// Places where RTP did not run on: the number is not the next, the source (SSRC) is another, or the time is
    /// earlier than that of the packet before, or later by a second more than it took to come (by a clock of 90 kHz).
    pub rtp_breaks: u64,
    /// Continuity of the transport stream.
    pub continuity: Continuity,
    /// The first marker ever seen.
    pub first: Option<Marker>,
    /// When the first key frame was complete, its tables before it: nanoseconds since 1970.
    pub first_whole: Option<u64>,
    /// Why nothing more comes, if so.
    pub ended: Option<String>,
    last: Option<u32>,
    /// When the last packet came, and the longest time between two: nanoseconds since 1970.
    arrived: Option<u64>,
    gap: u64,
    tracks: BTreeMap<u8, Newest>,
    tables: bool,
}

/// The newest RTP packet of a track.
#[derive(Debug, Clone, Copy)]
struct Newest {
    header: Rtp,
    arrived: u64,
}

impl Newest {
    /// Whether what comes next goes on where this one ended.
    fn runs_on(&self, next: &Newest) -> bool {
        let ticks = next.header.time.wrapping_sub(self.header.time);
        let nanos = next.arrived.saturating_sub(self.arrived);
        let most =
            u64::from(TICKS_PER_SECOND) + nanos.saturating_mul(TICKS_PER_SECOND.into()) / 1_000_000_000;
        next.header.sequence == self.header.sequence.wrapping_add(1)
            && next.header.source == self.header.source
            && u64::from(ticks) <= most
    }
}

impl Meter {
    /// Takes whole transport packets that arrived at this time.
    pub(super) fn transport(&mut self, bytes: &[u8], arrived: u64, delays: &mut Delays) {
        self.bytes += bytes.len() as u64;
        self.came(arrived);
        self.continuity.push(bytes);
        for packet in bytes.chunks_exact(TS_PACKET) {
            self.tables |= packet[1] & 0x1F == 0 && packet[2] == 0;
            if let Some(marker) = Marker::parse(packet) {
                self.marked(marker, arrived, delays);
            }
        }
    }

    fn came(&mut self, arrived: u64) {
        let last = self.arrived.replace(arrived).unwrap_or(arrived);
        self.gap = self.gap.max(arrived.saturating_sub(last));
    }

    fn marked(&mut self, marker: Marker, arrived: u64, delays: &mut Delays) {
        let first = *self.first.get_or_insert(marker);
        if self.first_whole.is_none() && marker.last && marker.key && self.tables && self.lost == 0 {
            // A join may begin with the end of the picture before, when both share a datagram.
            let joined_at_key = first.frame == marker.frame || first.frame + 1 == marker.frame;
            self.first_whole = joined_at_key.then_some(arrived);
        }
        let delay = || arrived.saturating_sub(marker.sent_nanos) / 1_000;
        match self.last {
            Some(last) if last == marker.datagram => return,
            Some(last) if marker.datagram < last => {
                self.reordered += 1;
                return;
            }
            Some(last) => self.lost += u64::from(marker.datagram - last - 1),
            None => {}
        }
        self.last = Some(marker.datagram);
        self.datagrams += 1;
        delays.saturating_record(delay());
    }

    /// Takes an RTP packet of a track (or interleaved channel); transport streams in it are read.
    pub(super) fn rtp(&mut self, track: u8, packet: &[u8], arrived: u64, delays: &mut Delays) {
        let Some((header, payload)) = parse_rtp(packet) else {
            self.continuity.malformed += 1;
            return;
        };
        self.rtp += 1;
        let next = Newest { header, arrived };
        if let Some(last) = self.tracks.insert(track, next) {
            self.rtp_breaks += u64::from(!last.runs_on(&next));
            match header.sequence.wrapping_sub(last.header.sequence) {
                0 => self.rtp_repeated += 1,
                ahead @ 1..0x8000 => self.rtp_lost += u64::from(ahead - 1),
                _ => {
                    self.rtp_reordered += 1;
                    self.tracks.insert(track, last);
                }
            }
        }
        if payload.len().is_multiple_of(TS_PACKET) && payload.first() == Some(&0x47) {
            self.transport(payload, arrived, delays);
        } else {
            self.bytes += packet.len() as u64;
            self.came(arrived);
        }
    }

    /// The longest time for which nothing came, up to now: nanoseconds since 1970. One that began before is whole.
    pub fn longest_gap(&self, now: u64) -> Duration {
        let silent = self.arrived.map_or(0, |arrived| now.saturating_sub(arrived));
        Duration::from_nanos(self.gap.max(silent))
    }

    /// The number of the newest datagram that ever came.
    pub fn newest(&self) -> Option<u32> {
        self.last
    }

    /// Whether nothing is missing, out of order, or there twice.
    pub fn perfect(&self) -> bool {
        self.lost + self.reordered + self.rtp_lost + self.rtp_reordered + self.rtp_repeated == 0
            && self.continuity.gaps + self.continuity.malformed == 0
    }

    /// What is missing, out of order, or there twice, for an error.
    pub fn summary(&self) -> String {
        format!(
            "{} datagrams ({} lost, {} out of order), {} RTP ({} lost, {} out of order, {} twice), \
             TS: {} gaps, {} malformed",
            self.datagrams,
            self.lost,
            self.reordered,
            self.rtp,
            self.rtp_lost,
            self.rtp_reordered,
            self.rtp_repeated,
            self.continuity.gaps,
            self.continuity.malformed
        )
    }

    /// The same of a receiver that has asked again: what a session counts by itself begins again.
    pub(super) fn of_new_session(&self) -> Self {
        let continuity = self.continuity.of_new_session();
        Self { ended: None, tracks: BTreeMap::new(), continuity, ..self.clone() }
    }

    /// The counts since the last split; what comes next is still compared with what came last.
    pub(super) fn split(&mut self) -> Self {
        let period = self.clone();
        *self = Self {
            first: self.first,
            first_whole: self.first_whole,
            ended: self.ended.clone(),
            last: self.last,
            arrived: self.arrived,
            tracks: std::mem::take(&mut self.tracks),
            tables: self.tables,
            continuity: self.continuity.split(),
            ..Self::default()
        };
        period
    }
}

/// What a packet says of its place in a stream.
#[derive(Debug, Clone, Copy)]
struct Rtp {
    sequence: u16,
    time: u32,
    /// SSRC.
    source: u32,
}

/// An RTP packet's place, and its payload (RFC 3550, section 5.1).
fn parse_rtp(packet: &[u8]) -> Option<(Rtp, &[u8])> {
    let [first, _, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3, ..] = *packet else { return None };
    if first >> 6 != 2 {
        return None;
    }
    let mut header = 12 + 4 * usize::from(first & 0x0F);
    if first & 0x10 != 0 {
        let length = packet.get(header + 2..header + 4)?;
        header += 4 + 4 * usize::from(u16::from_be_bytes([length[0], length[1]]));
    }
    let padding = if first & 0x20 != 0 { usize::from(*packet.last()?) } else { 0 };
    let payload = packet.get(header..packet.len().checked_sub(padding)?)?;
    let header = Rtp {
        sequence: u16::from_be_bytes([s0, s1]),
        time: u32::from_be_bytes([t0, t1, t2, t3]),
        source: u32::from_be_bytes([i0, i1, i2, i3]),
    };
    Some((header, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::delays;
    use crate::media::{Shape, Synthetic};

    #[test]
    fn what_is_missing_is_counted_and_the_first_key_frame_found() {
        let mut stream = Synthetic::new(Shape::of_rate(1_000_000));
        let (mut meter, mut delays) = (Meter::default(), delays());
        for number in 0..100 {
            let datagram = stream.next_datagram(1_000_000);
            if number != 50 && number != 51 {
                meter.transport(datagram, 3_000_000, &mut delays);
            }
        }
        assert_eq!((meter.datagrams, meter.lost, meter.reordered), (98, 2, 0));
        assert_eq!(meter.first_whole, Some(3_000_000));
        assert!(delays.value_at_quantile(0.5).abs_diff(2_000) <= 20);
        assert!(!meter.perfect());
        meter.split();
        meter.transport(stream.next_datagram(0), 0, &mut delays);
        assert!(meter.perfect());
        assert_eq!(meter.newest(), Some(100));
        let datagram = stream.next_datagram(0).to_vec();
        meter.transport(&datagram, 0, &mut delays);
        meter.transport(&datagram, 0, &mut delays);
        assert!(!meter.perfect(), "it came twice");
    }

    #[test]
    fn the_longest_gap_is_known_also_one_that_goes_on() {
        let mut stream = Synthetic::new(Shape::of_rate(1_000_000));
        let (mut meter, mut delays) = (Meter::default(), delays());
        assert_eq!(meter.longest_gap(9).as_nanos(), 0, "nothing has come yet");
        for at in [100, 110, 140, 150] {
            meter.transport(stream.next_datagram(0), at, &mut delays);
        }
        assert_eq!((meter.longest_gap(160).as_nanos(), meter.longest_gap(190).as_nanos()), (30, 40));
        meter.split();
        assert_eq!(meter.longest_gap(155).as_nanos(), 5);
        meter.rtp(0, &[0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], 200, &mut delays);
        assert_eq!(meter.longest_gap(201).as_nanos(), 50);
    }

    #[test]
    fn in_a_new_session_what_the_source_numbers_is_still_missed_and_what_the_session_numbers_is_not() {
        let mut stream = Synthetic::new(Shape::of_rate(1_000_000));
        let (mut meter, mut delays) = (Meter::default(), delays());
        let rtp = |sequence: u8, datagram: &[u8]| {
            [&[0x80, 33, 0, sequence, 0, 0, 0, 0, 0, 0, 0, 0][..], datagram].concat()
        };
        meter.rtp(0, &rtp(1, stream.next_datagram(0)), 100, &mut delays);
        meter.ended = Some("the relay is gone".to_owned());
        stream.next_datagram(0);
        let mut meter = meter.of_new_session();
        meter.rtp(0, &rtp(77, stream.next_datagram(0)), 700, &mut delays);
        assert_eq!((meter.lost, meter.rtp_lost, meter.ended.clone()), (1, 0, None));
        assert_eq!(meter.longest_gap(700).as_nanos(), 600, "nothing came for this long");
    }

    #[test]
    fn rtp_sequence_numbers_wrap_and_are_missed() {
        let (mut meter, mut delays) = (Meter::default(), delays());
        for sequence in [65534u16, 65535, 0, 2, 1, 3, 3] {
            let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
            packet[2..4].copy_from_slice(&sequence.to_be_bytes());
            meter.rtp(0, &packet, 0, &mut delays);
        }
        assert_eq!((meter.rtp, meter.rtp_lost, meter.rtp_reordered, meter.rtp_repeated), (7, 1, 1, 1));
        meter.rtp(0, &[0x80, 96, 0], 0, &mut delays);
        assert_eq!(meter.continuity.malformed, 1);
    }

    #[test]
    fn rtp_that_does_not_run_on_is_told_by_numbers_times_and_source() {
        const SECOND: u64 = 1_000_000_000;
        let (mut meter, mut delays) = (Meter::default(), delays());
        let mut take = |sequence: u16, time: u32, source: u8, arrived: u64| {
            let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, source, 9];
            packet[2..4].copy_from_slice(&sequence.to_be_bytes());
            packet[4..8].copy_from_slice(&time.to_be_bytes());
            meter.rtp(0, &packet, arrived, &mut delays);
            std::mem::take(&mut meter.rtp_breaks)
        };
        // Times and numbers wrap; what was held up comes at once.
        assert_eq!(take(65534, 0xFFFF_FF00, 1, 0), 0, "it may begin anywhere");
        assert_eq!(take(65535, 0xFFFF_FF00, 1, 0), 0, "of one picture");
        assert_eq!(take(0, 3600, 1, 9 * SECOND), 0);
        assert_eq!(take(1, 7200, 1, 9 * SECOND), 0);
        assert_eq!(take(3, 10_800, 1, 9 * SECOND), 1, "one is missing");
        assert_eq!(take(4, 14_400, 2, 9 * SECOND), 1, "another source");
        assert_eq!(take(5, 14_399, 2, 9 * SECOND), 1, "an earlier time");
        assert_eq!(take(6, 14_399 + 180_000, 2, 10 * SECOND), 0);
        assert_eq!(take(7, 14_399 + 280_000, 2, 10 * SECOND), 1, "a time more than a second later");
    }
}
