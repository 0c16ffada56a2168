use outflow_media::{AccessUnit, Codec, Track};

use super::*;
use crate::packet::Header;
use crate::{DATAGRAM_BYTES, TsMux, TsOut};

const VIDEO: [u8; 8] = [0, 0, 0, 1, 9, 0xf0, 0, 0];

fn tracks() -> [Track; 2] {
    [Track::h264(), Track { codec: Codec::Opus, channels: 2, ..Track::mp2t() }]
}

fn unit(track: usize, time: i64, bytes: usize) -> AccessUnit {
    let data = match track {
        // A delimiter, so that nothing is put in, and a slice.
        0 => [&VIDEO[..6], &[0, 0, 1, 0x41], &vec![0x55; bytes]].concat(),
        _ => vec![0x55; bytes],
    };
    AccessUnit { track, pts: time + 3_600, dts: time, key: false, data: data.into() }
}

/// A transport stream of these, in datagrams of `datagram` bytes.
fn stream(units: &[AccessUnit], datagram: usize) -> Vec<Vec<u8>> {
    let (mut mux, mut out) = (TsMux::new(&tracks()).expect("both fit"), TsOut::default());
    let mut bytes = Vec::new();
    for unit in units {
        mux.push(unit, &mut out).expect("it fits");
        while let Some(datagram) = out.next_datagram() {
            bytes.extend_from_slice(&datagram);
        }
    }
    bytes.chunks(datagram).map(<[u8]>::to_vec).collect()
}

fn demux() -> TsDemux {
    TsDemux::new([Coding::H264, Coding::Audio("Opus")])
}

fn pushed(demux: &mut TsDemux, datagrams: &[Vec<u8>]) -> Vec<Pes> {
    let mut all = Vec::new();
    datagrams.iter().for_each(|datagram| demux.push(datagram, &mut |pes| all.push(pes)));
    all
}

fn said(all: &[Pes]) -> Vec<(usize, Option<u64>, usize, bool)> {
    all.iter().map(|pes| (pes.stream, pes.pts, pes.data.len(), pes.is_behind_gap)).collect()
}

#[test]
fn what_was_put_in_comes_out() {
    let units = [unit(0, 0, 5_000), unit(1, 900, 200), unit(0, 3_600, 90), unit(1, 2_700, 300)];
    for datagram in [PACKET_BYTES, DATAGRAM_BYTES, 1 << 20] {
        let mut demux = demux();
        let all = pushed(&mut demux, &stream(&units, datagram));
        assert_eq!(all.len(), 4, "{datagram}");
        let of = |stream: usize| all.iter().filter(move |pes| pes.stream == stream);
        let video: Vec<_> = of(0).map(|pes| (pes.pts, pes.dts, &pes.data)).collect();
        let expected =
            |at: usize| (Some(3_600 + units[at].dts as u64), Some(units[at].dts as u64), &units[at].data);
        assert_eq!(video, [expected(0), expected(2)]);
        // Behind the header that says how long it is.
        assert!(of(1).zip([&units[1], &units[3]]).all(|(pes, unit)| pes.data.ends_with(&unit.data)));
        assert_eq!(demux.dropped(), PesDropped::default());
    }
}

#[test]
fn what_is_filled_up_is_complete_before_the_next_begins() {
    let one = stream(&[unit(0, 0, 5_000)], DATAGRAM_BYTES);
    assert_eq!(pushed(&mut demux(), &one).len(), 1);
}

/// Packets of video, each payload with what fills it up.
fn packets(payloads: &[(&[u8], bool)]) -> Vec<Vec<u8>> {
    let first = stream(&[unit(0, 0, 10)], 1 << 20).concat();
    let mut packets = vec![first];
    let mut parsed = packets[0].chunks(PACKET_BYTES).filter_map(|p| Packet::new_checked(p).ok());
    let mut last = parsed.rfind(|packet| packet.pid() == 0x100).expect("video").continuity();
    for (payload, unit_start) in payloads {
        last = (last + 1) & 0x0f;
        let header = Header { pid: 0x100, unit_start: *unit_start, continuity: last, ..Header::default() };
        let mut out = BytesMut::new();
        header.emit(&mut out, &mut &payload[..]);
        packets.push(out.to_vec());
    }
    packets
}

fn begins(pts: u64, bytes: usize) -> Vec<u8> {
    let mut out = BytesMut::new();
    PesHeader::emit(0xe0, pts, pts, None, &mut out).expect("it fits");
    out.resize(bytes, 0x55);
    out.to_vec()
}

#[test]
fn a_stream_that_goes_on_behind_an_end_that_showed_is_waited_for() {
    let (one, two, three) = (begins(5, 100), begins(6, 100), begins(7, 184));
    let more = [0x55; 50];
    let packets = packets(&[(&one, true), (&more, false), (&two, true), (&more, false), (&three, true)]);
    let all = pushed(&mut demux(), &packets);
    assert_eq!(
        said(&all)[1..],
        // The first was believed to be complete; the second is complete once the third begins.
        [(0, Some(5), 86, false), (0, None, 50, false), (0, Some(6), 136, false)]
    );
}

#[test]
fn what_something_is_missing_of_is_dropped_and_the_next_says_so() {
    let units = [unit(0, 0, 2_000), unit(0, 3_600, 2_000), unit(0, 7_200, 2_000)];
    let mut datagrams = stream(&units, PACKET_BYTES);
    let second = datagrams.iter().position(|packet| {
        let packet = Packet::new_checked(packet).expect("a packet");
        packet.unit_start() && PesHeader::parse(packet.payload()).is_ok_and(|pes| pes.dts == Some(3_600))
    });
    datagrams.remove(second.expect("it is there") + 2);
    let mut demux = demux();
    let all = pushed(&mut demux, &datagrams);
    assert_eq!(said(&all), [(0, Some(3_600), 2_010, false), (0, Some(10_800), 2_010, true)]);
    assert_eq!(demux.dropped(), PesDropped { incomplete: 1, ..PesDropped::default() });
}

#[test]
fn tables_that_came_before_are_taken_from_what_a_receiver_begins_with() {
    let datagrams = stream(&[unit(0, 0, 500), unit(0, 3_600, 500)], PACKET_BYTES);
    let is_video = |packet: &&Vec<u8>| Packet::new_checked(packet).is_ok_and(|packet| packet.pid() == 0x100);
    let (video, tables): (Vec<_>, Vec<_>) = datagrams.iter().partition(is_video);
    let video: Vec<_> = video.into_iter().cloned().collect();
    let mut demux = demux();
    assert_eq!(pushed(&mut demux, &video), []);
    demux.begin(&tables.into_iter().flatten().copied().collect::<Vec<_>>());
    assert_eq!(demux.programme().map(|programme| programme.streams.len()), Some(2));
    assert_eq!(pushed(&mut demux, &video).len(), 2);
}

#[test]
fn a_break_is_a_gap_and_no_more_is_collected_than_may_be() {
    let datagrams = stream(&[unit(0, 0, 500), unit(0, 3_600, 500)], PACKET_BYTES);
    let mut demux = demux();
    pushed(&mut demux, &datagrams[..datagrams.len() - 2]);
    demux.break_off();
    let again = pushed(&mut demux, &datagrams);
    assert!(again[0].is_behind_gap && !again[1].is_behind_gap, "{:?}", said(&again));
    assert_eq!(demux.dropped().incomplete, 1);

    let full = [0x55; 184];
    let start = begins(9, 184);
    let endless: Vec<(&[u8], bool)> = core::iter::once((&start[..], true))
        .chain((0..PES_COLLECTED_BYTES_MAX / 184 + 8).map(|_| (&full[..], false)))
        .chain([(&start[..], true), (&start[..], true)])
        .collect();
    let mut demux = self::demux();
    let all = pushed(&mut demux, &packets(&endless));
    assert_eq!(demux.dropped(), PesDropped { too_large: 1, ..PesDropped::default() });
    assert_eq!(said(&all).last(), Some(&(0, Some(9), 170, true)));
}
