//! Elementary streams of a transport stream, as RTP.

use bytes::Bytes;
use outflow_media::codec::aac::ADTS_MAX_FRAME;
use outflow_media::{Codec, Time, Track};
use outflow_rtp::limits::PAYLOAD_BYTES_MAX;
use outflow_rtp::payload::RtpReader;
use outflow_rtp::{HEADER, RtpHeader};
use outflow_ts::{Coding, DATAGRAM_BYTES, programme_in};
use outflow_units::{FromTs, ToRtp};

/// Datagrams of seven packets, 10 ms one behind the other.
pub(crate) fn demux(data: &[u8]) {
    let tracks = tracks();
    let audio = ["Opus", "AAC", "MPEG audio"].map(Coding::Audio);
    let mut from = FromTs::new([Coding::H264, Coding::H265].into_iter().chain(audio));
    let mut to = ToRtp::new(&tracks, 7);
    let numbered = (0..).zip(&tracks);
    let mut readers: Vec<_> = numbered.map(|(number, track)| RtpReader::new(number, track)).collect();
    let mut last = [None; 3];
    for (number, datagram) in (0..).zip(data.chunks(DATAGRAM_BYTES)) {
        from.push(datagram, Time::from_millis(number * 10), &mut |unit, is_behind_gap| {
            assert!(unit.pts >= unit.dts, "decoded after it is presented");
            // The others are coded again: the target "sound".
            if unit.track >= tracks.len() {
                assert!(unit.data.len() <= ADTS_MAX_FRAME, "a frame that is too long");
                return;
            }
            if is_behind_gap {
                to.skip(unit.track);
            }
            let is_whole = tracks[unit.track].codec == Codec::Opus;
            to.push(&unit, &mut |packet: Bytes| {
                let header = RtpHeader::new_checked(&packet).expect("RTP");
                assert!(is_whole || packet.len() <= HEADER + PAYLOAD_BYTES_MAX, "a payload that is too long");
                let before = last[unit.track].replace(header.sequence());
                let step = before.map_or(1, |before: u16| header.sequence().wrapping_sub(before));
                assert_ne!(step, 0, "no number is given twice");
                // What is in them is the peer's; that must not be believed.
                let _ = readers[unit.track].read(&packet);
            });
        });
    }
    from.break_off();
    let _ = programme_in(data);
}

fn tracks() -> [Track; 3] {
    let (vps, sps, pps) = (None, None, None);
    let h265 = Track { codec: Codec::H265 { vps, sps, pps }, ..Track::h264() };
    [Track::h264(), h265, Track { codec: Codec::Opus, clock_rate: 48_000, ..Track::h264() }]
}
