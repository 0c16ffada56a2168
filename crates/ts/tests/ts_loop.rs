//! A looped clip, as ffmpeg and ffprobe see it.

#![allow(clippy::disallowed_methods, reason = "tests drive real programs")]

mod ts_support;

use bytes::{Bytes, BytesMut};
use outflow_ts::{TsLoop, TsReader};
use ts_support::{clip, decode, has, probe};

/// Three rounds of a clip and a bit.
fn rounds(clip: &[u8]) -> Vec<u8> {
    let mut player = TsLoop::new(Bytes::copy_from_slice(clip)).expect("it can be looped");
    let mut out = BytesMut::new();
    while out.len() < 3 * clip.len() {
        player.next(&mut out);
    }
    out.to_vec()
}

/// Decoding times of a stream, in ticks of 90 kHz.
fn decoding_times(stream: &[u8], selector: &str) -> Vec<i64> {
    let number = |fields: Vec<String>| fields[0].parse().expect("a number");
    probe(stream, selector, "dts").into_iter().map(number).collect()
}

/// Nothing shows that the clip was looped, but that there is three times as much of it.
fn check(what: &str, clip: &[u8], spacing: std::ops::RangeInclusive<i64>) {
    let stream = rounds(clip);
    decode(&stream, what);
    let mut reader = TsReader::default();
    for packet in stream.chunks(188) {
        reader.read(packet).expect("a packet");
    }
    assert_eq!(reader.continuity_errors(), 0, "{what}");
    let video = decoding_times(&stream, "v:0");
    assert_eq!(video.len(), 3 * decoding_times(clip, "v:0").len(), "{what}");
    for pair in video.windows(2) {
        assert!(spacing.contains(&(pair[1] - pair[0])), "{what}: from {} to {}", pair[0], pair[1]);
    }
    let audio = decoding_times(&stream, "a:0");
    assert!(audio.is_sorted_by(|a, b| a < b), "{what}: sound goes back");
}

#[test]
fn the_demo_clip() {
    if has("ffmpeg") {
        check("demo", include_bytes!("../../../assets/demo.ts"), 3600..=3600);
        check("live", include_bytes!("../../../assets/live.ts"), 3600..=3600);
    }
}

#[test]
fn clips_of_every_codec() {
    if !has("ffmpeg") {
        return;
    }
    let h264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "3", "-c:a", "aac"];
    check("H.264", &clip("25", &h264), 3600..=3600);
    let h265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:open-gop=0"];
    check("H.265", &clip("30000/1001", &[&h265[..], &["-c:a", "mp2"]].concat()), 3003..=3003);
    let mpeg2 = ["-c:v", "mpeg2video", "-q:v", "4", "-g", "12", "-bf", "2", "-c:a", "mp2"];
    let mpeg2 = [&mpeg2[..], &["-flags", "+cgop", "-sc_threshold", "1000000000"]].concat();
    // 3753.75 ticks a frame.
    check("MPEG-2", &clip("24000/1001", &mpeg2), 3753..=3754);
}
