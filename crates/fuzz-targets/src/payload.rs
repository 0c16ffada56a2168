//! Payloads of RTP: what packets mean, and access units out of them.

use bytes::Bytes;
use outflow_media::limits::PARAMETER_SET_BYTES_MAX;
use outflow_media::{Codec, ExtensionKind, ExtensionMap, Kind, Track};
use outflow_rtp::RtpHeader;
use outflow_rtp::dependency::{Descriptor, Structure};
use outflow_rtp::frame_marking::FrameMarking;
use outflow_rtp::limits::UNIT_BYTES_MAX;
use outflow_rtp::payload::depacketize::Depacketizer;
use outflow_rtp::payload::{RtpReader, vp8 as vp8_payload, vp9 as vp9_payload};

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

/// The identifier of the header extension that the seeds have.
const EXTENSION: u8 = 5;

/// With and without the dependency descriptor. What is read of that is what is written.
pub(crate) fn av1(data: &[u8]) {
    let mut known: Option<Structure> = None;
    for packet in packets(data).filter_map(|packet| RtpHeader::new_checked(packet).ok()) {
        let Some(value) = packet.extension(EXTENSION) else { continue };
        let Ok(Some(descriptor)) = Descriptor::parse(value, known.as_ref()) else { continue };
        known = descriptor.structure.as_deref().cloned().or(known);
        let structure = known.as_ref().expect("it was needed");
        let mut wire = Vec::new();
        descriptor.emit(structure, &mut wire).expect("it has the template");
        assert_eq!(Descriptor::parse(&wire, Some(structure)), Ok(Some(descriptor)));
    }
    tags(Codec::Av1, ExtensionKind::DependencyDescriptor, data);
    tags(Codec::Av1, ExtensionKind::Other(String::new()), data);
}

/// What is read of descriptors is what is written.
pub(crate) fn vp9(data: &[u8]) {
    for packet in packets(data).filter_map(|packet| RtpHeader::new_checked(packet).ok()) {
        let Ok((descriptor, rest)) = vp9_payload::Descriptor::parse(packet.payload()) else { continue };
        let mut wire = Vec::new();
        descriptor.emit(&mut wire);
        wire.extend(rest);
        assert_eq!(vp9_payload::Descriptor::parse(&wire), Ok((descriptor, rest)));
    }
    tags(Codec::Vp9, ExtensionKind::Other(String::new()), data);
}

/// What is read of descriptors is what is written.
pub(crate) fn vp8(data: &[u8]) {
    for packet in packets(data).filter_map(|packet| RtpHeader::new_checked(packet).ok()) {
        let Ok((descriptor, rest)) = vp8_payload::Descriptor::parse(packet.payload()) else { continue };
        let mut wire = Vec::new();
        descriptor.emit(&mut wire);
        wire.extend(rest);
        assert_eq!(vp8_payload::Descriptor::parse(&wire), Ok((descriptor, rest)));
    }
    tags(Codec::Vp8, ExtensionKind::Other(String::new()), data);
}

/// What is read of markings is what is written.
pub(crate) fn frame_marking(data: &[u8]) {
    for packet in packets(data).filter_map(|packet| RtpHeader::new_checked(packet).ok()) {
        let Some(Ok(marking)) = packet.extension(EXTENSION).map(FrameMarking::parse) else { continue };
        let mut wire = Vec::new();
        marking.emit(&mut wire);
        assert_eq!(FrameMarking::parse(&wire), Ok(marking));
    }
    tags(Codec::Srtp { video: true }, ExtensionKind::FrameMarking, data);
}

/// The tags of packets that describe themselves.
fn tags(codec: Codec, kind: ExtensionKind, data: &[u8]) {
    let map = ExtensionMap { id: EXTENSION, kind, direction: String::new(), attributes: String::new() };
    let mut reader = RtpReader::new(0, &Track { codec, extensions: vec![map], ..Track::mp2t() });
    for packet in packets(data) {
        if let Ok(tag) = reader.read(packet) {
            assert!(tag.layer < tag.layers && tag.layers < 128);
            assert!(tag.opens || !tag.key);
            assert!(!tag.key || tag.needs.is_nothing());
        }
    }
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
            assert!(!tag.key || tag.needs.is_nothing());
            assert!(tag.kind != Kind::Data || tag.key);
        }
        depacketizer.handle(Bytes::copy_from_slice(packet), |unit| {
            assert!(unit.data.len() <= UNIT_BYTES_MAX + PARAMETER_SET_BYTES_MAX);
        });
    }
    depacketizer.flush(drop);
}
