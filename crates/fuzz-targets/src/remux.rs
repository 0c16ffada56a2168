//! RTP tracks into a transport stream.

use bytes::Bytes;
use outflow_media::{Codec, Time, Track};
use outflow_ts::packet::Packet;
use outflow_ts::pes::PesHeader;
use outflow_ts::{PACKET_BYTES, TsReader};
use outflow_units::{FromRtp, ToTs};

use crate::packets::packets;

/// In front of each packet stand its track and how many milliseconds later than the one before it
/// arrived. A track beyond the last one makes it a sender report.
pub(crate) fn remux(data: &[u8]) {
    let tracks = tracks();
    let mut to = ToTs::new(&tracks).expect("codecs that can be carried");
    let mut from = FromRtp::new(&tracks, |track| to.carries(track));
    let mut reader = TsReader::default();
    let mut now = Time::ZERO;
    for chunk in packets(data) {
        let &[track, later, ref packet @ ..] = chunk else { continue };
        now = Time::from_millis(now.as_millis() + u64::from(later) * u64::from(later));
        let count = tracks.len() as u8;
        if track < count {
            let mut checked = |datagram: Bytes| {
                reader.read(&datagram).expect("a transport stream");
                datagram.chunks(PACKET_BYTES).for_each(check);
            };
            let packet = Bytes::copy_from_slice(packet);
            from.push(track, &packet, now, &mut |unit| to.push(&unit, &mut checked));
        } else if let &[a, b, c, d, e, f, g, h, ref rest @ ..] = packet {
            let ntp = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let rtp = rest.iter().take(4).fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            from.sender_report(track % count, ntp, rtp, now);
        }
    }
    assert_eq!(reader.continuity_errors(), 0);
}

fn check(bytes: &[u8]) {
    let packet = Packet::new_checked(bytes).expect("a packet");
    if let Ok(header) = PesHeader::parse(packet.payload())
        && packet.unit_start()
    {
        let (presented, decoded) = (header.pts.expect("a time"), header.decoded_at().expect("a time"));
        let ahead = outflow_ts::clock::pts_distance(decoded, presented);
        assert!((0..1 << 32).contains(&ahead), "decoded {ahead} before it is presented");
    }
}

fn tracks() -> Vec<Track> {
    let config = Bytes::from_static(&[0x11, 0x90]);
    let codecs = [
        (Codec::H264 { sps: None, pps: None }, 90_000),
        (Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 }, 48_000),
        (Codec::H265 { vps: None, sps: None, pps: None }, 90_000),
        (Codec::Opus, 48_000),
        (Codec::MpegVideo, 90_000),
        (Codec::MpegAudio, 90_000),
        (Codec::Other { video: true }, 90_000),
    ];
    let track = |(codec, clock_rate)| Track {
        codec,
        payload_type: 96,
        clock_rate,
        channels: 2,
        fmtp: String::new(),
        encoding: String::new(),
        extensions: Vec::new(),
    };
    codecs.into_iter().map(track).collect()
}
