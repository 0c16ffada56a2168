//! The reader against what ffmpeg makes and ffprobe says of it.

#![allow(clippy::disallowed_methods, reason = "tests drive real programs")]

mod ts_support;

use std::collections::BTreeSet;

use outflow_media::{Kind, Tag};
use outflow_ts::{DATAGRAM_BYTES, TsReader};
use ts_support::{clip, decode, has, probe};

const X264: &[&str] = &["-c:v", "libx264", "-preset", "veryfast", "-g", "25"];
const AAC: &[&str] = &["-c:a", "aac"];

/// The tags of all datagrams, and the reader behind them.
fn tags(stream: &[u8], bytes: usize) -> (Vec<Tag>, TsReader) {
    let mut reader = TsReader::default();
    let tags = stream.chunks(bytes).map(|d| reader.read(d).expect("whole packets")).collect();
    (tags, reader)
}

/// Frames and key frames are those that ffprobe finds, however the stream is cut.
fn frames_are_those_of_ffprobe(what: &str, stream: &[u8]) {
    let packets = probe(stream, "v:0", "flags");
    let keys: BTreeSet<_> =
        (1u32..).zip(&packets).filter(|(_, fields)| fields[0].starts_with('K')).map(|(n, _)| n).collect();
    for bytes in [188, DATAGRAM_BYTES] {
        let (tags, reader) = tags(stream, bytes);
        assert_eq!((reader.continuity_errors(), reader.transport_errors()), (0, 0), "{what}");
        assert!(tags.is_sorted_by_key(|tag| tag.frame), "{what}");
        let last = tags.last().map_or(0, |tag| tag.frame);
        assert_eq!(last as usize, packets.len(), "{what}: frames, in datagrams of {bytes}");
        let told: BTreeSet<_> = tags.iter().filter(|tag| tag.key).map(|tag| tag.frame).collect();
        assert_eq!(told, keys, "{what}: key frames, in datagrams of {bytes}");
        for key in &keys {
            let first =
                tags.iter().find(|t| t.frame == *key && t.kind != Kind::Data).expect("it has a datagram");
            assert!(first.first, "{what}: key frame {key} begins");
        }
    }
}

/// From every key frame on, with the preamble before it, ffmpeg decodes without a word.
fn receivers_can_join_at_key_frames(what: &str, stream: &[u8]) {
    let mut reader = TsReader::default();
    let mut start = None;
    let mut joined = 0;
    for (index, datagram) in stream.chunks(DATAGRAM_BYTES).enumerate() {
        let tag = reader.read(datagram).expect("whole packets");
        if tag.first {
            start = Some(index);
        }
        let Some(at) = start.filter(|_| tag.key) else { continue };
        start = None;
        let preamble = reader.preamble().expect("the tables came");
        decode(&[&preamble[..], &stream[at * DATAGRAM_BYTES..]].concat(), what);
        joined += 1;
    }
    assert!(joined > 2, "{what}: {joined} key frames");
}

#[test]
fn h264() {
    if !has("ffmpeg") {
        return;
    }
    let stream = clip("25", &[X264, &["-bf", "2"], AAC].concat());
    frames_are_those_of_ffprobe("H.264", &stream);
    receivers_can_join_at_key_frames("H.264", &stream);
    let (tags, reader) = tags(&stream, 188);
    assert_eq!(reader.programme().expect("its tables").codec_names(), ["H.264", "AAC"]);
    for kind in [Kind::Intra, Kind::Predicted, Kind::Bidirectional, Kind::Data] {
        assert!(tags.iter().any(|tag| tag.kind == kind), "{kind:?}");
    }
}

#[test]
fn h264_with_open_groups_and_with_slices() {
    if !has("ffmpeg") {
        return;
    }
    let open = ["-bf", "3", "-x264-params", "open-gop=1:keyint=25"];
    frames_are_those_of_ffprobe("open groups", &clip("25", &[X264, &open, AAC].concat()));
    let slices = ["-bf", "2", "-x264-params", "slices=4"];
    frames_are_those_of_ffprobe("slices", &clip("25", &[X264, &slices].concat()));
}

#[test]
fn h265() {
    if !has("ffmpeg") {
        return;
    }
    let coding = ["-c:v", "libx265", "-preset", "ultrafast", "-g", "25"];
    for parameters in ["log-level=none:bframes=3:open-gop=0", "log-level=none:bframes=3:open-gop=1"] {
        let stream = clip("25", &[&coding[..], &["-x265-params", parameters], AAC].concat());
        frames_are_those_of_ffprobe(parameters, &stream);
    }
    let stream = clip("25", &[&coding[..], &["-x265-params", "log-level=none:open-gop=0"], AAC].concat());
    receivers_can_join_at_key_frames("H.265", &stream);
}

#[test]
fn mpeg2_video() {
    if !has("ffmpeg") {
        return;
    }
    let coding = ["-c:v", "mpeg2video", "-q:v", "4", "-g", "12", "-bf", "2", "-c:a", "mp2"];
    let stream = clip("25", &[&coding[..], &["-flags", "+cgop", "-sc_threshold", "1000000000"]].concat());
    frames_are_those_of_ffprobe("MPEG-2", &stream);
    receivers_can_join_at_key_frames("MPEG-2", &stream);
    frames_are_those_of_ffprobe("MPEG-2 with open groups", &clip("30000/1001", &coding));
}

#[test]
fn sound_alone() {
    if !has("ffmpeg") {
        return;
    }
    let stream = clip("25", &["-map", "1:a", "-c:a", "libopus"]);
    let (tags, reader) = tags(&stream, 188);
    assert_eq!(reader.programme().expect("its tables").codec_names(), ["Opus"]);
    // ffmpeg puts several frames of Opus into a PES packet.
    let starts: Vec<_> = tags.iter().filter(|tag| tag.first).collect();
    assert!(starts.len() > 30, "{}", starts.len());
    assert!((1..).zip(&starts).all(|(number, tag)| tag.frame == number && tag.key && tag.kind == Kind::Data));
}
