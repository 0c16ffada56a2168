//! Payloads of RTP: what packets mean, and access units out of them.

use bytes::Bytes;
use outflow_media::limits::{PARAMETER_SET_BYTES_MAX, UNIT_BYTES_MAX};
use outflow_media::payload::RtpReader;
use outflow_media::payload::depacketize::Depacketizer;
use outflow_media::{Codec, Kind, Track};

use crate::packets::packets;

pub(crate) fn h264(data: &[u8]) {
    let (sps, pps) = (Bytes::from_static(&[0x67, 1]), Bytes::from_static(&[0x68, 2]));
    read(Codec::H264 { sps: Some(sps), pps: Some(pps) }, 90_000, "", data);
}

pub(crate) fn h265(data: &[u8]) {
    for fmtp in ["", "sprop-max-don-diff=1"] {
        read(Codec::H265 { vps: None, sps: None, pps: None }, 90_000, fmtp, data);
    }
}

pub(crate) fn mpeg_video(data: &[u8]) {
    read(Codec::MpegVideo, 90_000, "", data);
}

pub(crate) fn mpeg_audio(data: &[u8]) {
    read(Codec::MpegAudio, 90_000, "", data);
}

pub(crate) fn opus(data: &[u8]) {
    read(Codec::Opus, 48_000, "", data);
}

/// The first two bytes choose the lengths of the header fields.
pub(crate) fn aac(data: &[u8]) {
    let &[size, index, ref rest @ ..] = data else { return };
    let (size_length, index_length, index_delta_length) = (size % 17, index % 17, index / 17);
    let config = Bytes::from_static(&[0x11, 0x90]);
    let codec = Codec::Aac { config, size_length, index_length, index_delta_length };
    read(codec, 48_000, "", rest);
}

fn read(codec: Codec, clock_rate: u32, fmtp: &str, data: &[u8]) {
    let track = Track {
        codec,
        payload_type: 96,
        clock_rate,
        channels: 0,
        fmtp: fmtp.to_owned(),
        encoding: String::new(),
        extensions: Vec::new(),
    };
    let mut reader = RtpReader::new(0, &track);
    let mut depacketizer = Depacketizer::new(&track).expect("a codec that can be taken apart");
    for packet in packets(data) {
        if let Ok(tag) = reader.read(packet) {
            assert!(tag.layer < tag.layers.max(1) && tag.layers < 128);
            assert!(tag.opens || !tag.key);
            assert!(!tag.key || tag.needs.is_nothing());
            assert!(tag.kind != Kind::Data || tag.key);
        }
        depacketizer.handle(Bytes::copy_from_slice(packet), |unit| {
            assert!(unit.data.len() <= UNIT_BYTES_MAX + PARAMETER_SET_BYTES_MAX);
        });
    }
    depacketizer.flush(drop);
}
