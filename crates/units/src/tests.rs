//! Formats in a row.

mod ts_to_rtp;

use bytes::Bytes;
use outflow_media::{Codec, Time, Track};
use outflow_rtp::PlainHeader;
use outflow_rtp::payload::depacketize::Dropped;
use outflow_ts::UnsupportedCodec;
use outflow_ts::packet::Packet;
use outflow_ts::pes::PesHeader;

use crate::times::{USUAL_DEPTH, h264_depth, h265_depth, parameter_depth};
use crate::{FromRtp, ToTs};

/// The two in a row.
#[derive(Debug)]
struct RtpToTs {
    from: FromRtp,
    to: ToTs,
}

impl RtpToTs {
    fn new(tracks: &[Track]) -> Result<Self, UnsupportedCodec> {
        let to = ToTs::new(tracks)?;
        Ok(RtpToTs { from: FromRtp::new(tracks, |track| to.carries(track)), to })
    }

    fn push(&mut self, track: u8, packet: &Bytes, arrived: Time, out: &mut impl FnMut(Bytes)) {
        self.from.push(track, packet, arrived, &mut |unit| self.to.push(&unit, out));
    }

    fn sender_report(&mut self, track: u8, ntp: u64, rtp: u32, now: Time) {
        self.from.sender_report(track, ntp, rtp, now);
    }

    fn dropped(&self) -> Dropped {
        let dropped = self.from.dropped();
        Dropped { malformed: dropped.malformed + self.to.refused(), ..dropped }
    }
}

fn track(codec: Codec, clock_rate: u32) -> Track {
    Track {
        codec,
        payload_type: 96,
        clock_rate,
        channels: 2,
        fmtp: String::new(),
        encoding: String::new(),
        extensions: Vec::new(),
    }
}

fn video() -> Track {
    track(Codec::H264 { sps: None, pps: None }, 90_000)
}

fn opus() -> Track {
    track(Codec::Opus, 48_000)
}

fn packet(sequence: u16, timestamp: u32, payload: &[u8]) -> Bytes {
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 1 };
    Bytes::from([&header.emit()[..], payload].concat())
}

/// PID, PTS and DTS of the PES packets in a stream.
fn stamps(stream: &[u8]) -> Vec<(u16, u64, u64)> {
    let packets = stream.chunks(188).map(|bytes| Packet::new_checked(bytes).unwrap());
    packets
        .filter(|packet| packet.unit_start())
        .filter_map(|packet| {
            let header = PesHeader::parse(packet.payload()).ok()?;
            Some((packet.pid(), header.pts?, header.decoded_at()?))
        })
        .collect()
}

const IDR: [u8; 3] = [0x65, 0x88, 0x84];
const P: [u8; 3] = [0x41, 0x9a, 0x24];
const B: [u8; 3] = [0x01, 0x9e, 0x41];

#[test]
fn decoding_times_are_made_for_b_frames() {
    let mut remux = RtpToTs::new(&[video()]).unwrap();
    let mut stream = Vec::new();
    let units: [(u32, &[u8]); 6] =
        [(0, &IDR), (10_800, &P), (3_600, &B), (7_200, &B), (21_600, &P), (14_400, &B)];
    for (sequence, (timestamp, unit)) in (1..).zip(units) {
        let arrived = Time::from_millis(u64::from(sequence) * 40);
        let packet = packet(sequence, timestamp, unit);
        remux.push(0, &packet, arrived, &mut |bytes: Bytes| stream.extend_from_slice(&bytes));
    }
    let stamps = stamps(&stream);
    assert_eq!(stamps.len(), 6);
    let presented: Vec<u64> = stamps.iter().map(|s| s.1 - stamps[0].1).collect();
    assert_eq!(presented, [0, 10_800, 3_600, 7_200, 21_600, 14_400]);
    assert!(stamps.iter().all(|s| s.2 <= s.1), "{stamps:?}");
    assert!(stamps.windows(2).all(|pair| pair[0].2 < pair[1].2), "{stamps:?}");
}

#[test]
fn tracks_are_brought_together_by_sender_reports() {
    let mut remux = RtpToTs::new(&[video(), opus()]).unwrap();
    let mut stream = Vec::new();
    // Sound arrives 60 ms behind the picture of the same moment.
    for i in 0..20u16 {
        let at = u64::from(i) * 20;
        for (track, timestamp, payload, late) in [(0, 1800, &P[..], 0), (1, 960, b"opus", 60)] {
            let arrived = Time::from_millis(at + late);
            let packet = packet(i, u32::from(i) * timestamp, payload);
            remux.push(track, &packet, arrived, &mut |bytes: Bytes| stream.extend_from_slice(&bytes));
        }
        if i == 4 {
            remux.sender_report(0, 77 << 32, 0, Time::from_millis(at));
            remux.sender_report(1, 77 << 32, 0, Time::from_millis(at));
        }
    }
    let stamps = stamps(&stream);
    let of = |pid: u16| stamps.iter().filter(move |s| s.0 == pid).map(|s| s.1).collect::<Vec<_>>();
    let (picture, sound) = (of(0x100), of(0x101));
    assert_eq!((picture.len(), sound.len()), (20, 20));
    assert_eq!(sound[0] - picture[0], 60 * 90);
    assert_eq!(sound[19], picture[19]);
    // Not at once: players' clocks are coarser.
    assert!(sound.windows(2).all(|pair| pair[0] + 900 <= pair[1]), "{sound:?}");
}

#[test]
fn a_source_that_begins_again_goes_on_in_time() {
    let mut remux = RtpToTs::new(&[opus()]).unwrap();
    let mut stream = Vec::new();
    for (sequence, timestamp, millis) in [(1, 960, 0), (2, 1920, 20), (40_000, 9_999_999, 1_000)] {
        let packet = packet(sequence, timestamp, b"opus");
        let arrived = Time::from_millis(millis);
        remux.push(0, &packet, arrived, &mut |bytes: Bytes| stream.extend_from_slice(&bytes));
    }
    let times: Vec<u64> = stamps(&stream).iter().map(|s| s.1).collect();
    assert_eq!(times[2] - times[0], 90_000);
}

#[test]
fn the_depth_is_read_from_parameter_sets() {
    assert_eq!(parameter_depth(&[0, 0, 0, 1, 0x67, 66, 0, 30], h264_depth), 0);
    assert_eq!(parameter_depth(&[0, 0, 0, 1, 0x65, 0x88], h264_depth), USUAL_DEPTH);
    // As x264 writes it with two B frames and no pyramid, behind other units.
    let set = [
        0x67, 0x64, 0, 0x0d, 0xac, 0xd1, 0x01, 0x41, 0xfb, 0x01, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 3, 0x20,
        0xf1, 0x42, 0x91, 0x20,
    ];
    let unit = [&[0, 0, 0, 1, 0x06, 5, 1, 0x80, 0, 0, 0, 1][..], &set, &[0, 0, 0, 1, 0x65]].concat();
    assert_eq!(parameter_depth(&unit, h264_depth), 1);
    assert_eq!(parameter_depth(&[], h265_depth), USUAL_DEPTH);
}

#[test]
fn what_cannot_be_carried_is_passed_over_or_refused() {
    let unknown = track(Codec::Other { video: true }, 90_000);
    assert!(RtpToTs::new(std::slice::from_ref(&unknown)).is_err());
    let mut remux = RtpToTs::new(&[unknown, opus()]).unwrap();
    let mut count = 0;
    for track in [0, 1, 2, 255] {
        remux.push(track, &packet(1, 0, b"opus"), Time::ZERO, &mut |_: Bytes| count += 1);
        remux.sender_report(track, 1, 1, Time::ZERO);
    }
    assert_eq!((count, remux.dropped()), (1, Dropped::default()));
    remux.push(1, &Bytes::from_static(b"x"), Time::ZERO, &mut |_: Bytes| count += 1);
    assert_eq!(remux.dropped().malformed, 1);
}

#[test]
fn units_have_times_that_do_not_wrap() {
    let mut from = FromRtp::new(&[opus()], |_| true);
    let mut times = Vec::new();
    // Timestamps of RTP wrap after a day; what leaps is put where it arrives, a week later.
    let week = 7 * 86_400;
    for (sequence, timestamp, seconds) in [(1, u32::MAX - 959, 0), (2, 0, 0), (3, 7, week)] {
        let packet = packet(sequence, timestamp, b"opus");
        from.push(0, &packet, Time::from_millis(seconds * 1_000), &mut |unit| {
            assert_eq!((unit.track, unit.key, unit.pts), (0, true, unit.dts));
            times.push(unit.pts);
        });
    }
    let since = |index: usize| times[index] - times[0];
    assert_eq!((since(1), since(2)), (1_800, 90_000 * week.cast_signed()));
}
