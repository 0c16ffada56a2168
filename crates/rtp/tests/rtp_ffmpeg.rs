//! What ffmpeg sends as RTP, read packet by packet and put together again.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests drive real programs")]

mod rtp_support;

use std::collections::BTreeMap;
use std::process::Command;

use outflow_media::{Kind, Tag};
use outflow_rtp::payload::RtpReader;
use outflow_rtp::payload::depacketize::{Depacketizer, Dropped};
use outflow_rtp::{Placement, Reception, RtpHeader};
use rtp_support::{has_ffmpeg, run, send};

const PICTURE: &[&str] =
    &["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=2", "-pix_fmt", "yuv420p"];

/// NAL units of a byte stream, without delimiters.
fn nal_units(stream: &[u8], is_delimiter: fn(u8) -> bool) -> Vec<Vec<u8>> {
    let mut starts: Vec<usize> =
        (0..stream.len().saturating_sub(2)).filter(|at| stream[*at..*at + 3] == [0, 0, 1]).collect();
    starts.push(stream.len());
    let units = starts.windows(2).map(|pair| {
        let unit = &stream[pair[0] + 3..pair[1]];
        let end = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        unit[..end].to_vec()
    });
    units.filter(|unit| !is_delimiter(unit[0])).collect()
}

/// Encodes a file, sends it as RTP, and checks that the same NAL units come out.
fn check_nal_units(codec: &[&str], format: &str, is_delimiter: fn(u8) -> bool) -> Vec<Tag> {
    let name = format!("outflow-{}-{}.{format}", std::process::id(), codec.len());
    let file = std::env::temp_dir().join(name);
    let path = file.to_str().expect("a temporary folder with a plain name");
    let encode = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-y"])
        .args(PICTURE)
        .args(codec)
        .args(["-f", format, path])
        .status();
    assert!(encode.expect("ffmpeg runs").success());
    let input = ["-re", "-fflags", "+genpts", "-r", "25", "-f", format, "-i", path];
    let (tracks, received) = send(&input, &[&["-c", "copy"]]);
    let original = std::fs::read(&file).expect("the file");
    std::fs::remove_file(&file).expect("it is ours");

    let mut reader = RtpReader::new(0, &tracks[0]);
    let mut depacketizer = Depacketizer::new(&tracks[0]).expect("a known codec");
    let mut reception: Option<Reception> = None;
    let (mut stream, mut tags) = (Vec::new(), Vec::new());
    for datagram in received.into_iter().filter(|d| d.track == 0 && !d.control) {
        let header = RtpHeader::new_checked(&datagram.data).expect("RTP");
        let reception = reception.get_or_insert_with(|| Reception::new(header.ssrc(), 90_000));
        let placed = reception.packet(header.sequence(), header.timestamp(), datagram.at);
        assert_eq!(placed, Placement::Next { lost: 0 });
        tags.push(reader.read(&datagram.data).expect("a payload that can be read"));
        depacketizer.handle(datagram.data, |unit| stream.extend_from_slice(&unit.data));
    }
    depacketizer.flush(|unit| stream.extend_from_slice(&unit.data));
    assert_eq!(depacketizer.dropped(), Dropped::default());
    let (sent, got) = (nal_units(&original, is_delimiter), nal_units(&stream, is_delimiter));
    assert_eq!(got.len(), sent.len());
    assert!(got == sent, "the NAL units are not the same");
    let (_, errors) = run("ffmpeg", &["-v", "warning", "-f", format, "-i", "-", "-f", "null", "-"], &stream);
    assert_eq!(errors, "");
    tags
}

/// The kind of each frame, as its last packet tells it; every frame has one first and one last
/// packet.
fn kinds(tags: &[Tag]) -> Vec<(Kind, bool)> {
    let mut frames: BTreeMap<u32, Vec<&Tag>> = BTreeMap::new();
    tags.iter().for_each(|tag| frames.entry(tag.frame).or_default().push(tag));
    let numbers: Vec<u32> = frames.keys().copied().collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let kind = |tags: &Vec<&Tag>| {
        assert!(tags[0].first && tags.iter().filter(|tag| tag.first).count() == 1);
        assert!(tags[tags.len() - 1].last && tags.iter().filter(|tag| tag.last).count() == 1);
        let last = tags[tags.len() - 1];
        (last.kind, last.key)
    };
    frames.values().map(kind).collect()
}

fn count(kinds: &[(Kind, bool)], kind: Kind) -> usize {
    kinds.iter().filter(|(k, _)| *k == kind).count()
}

#[test]
fn h264_comes_out_as_it_went_in() {
    if !has_ffmpeg() {
        return;
    }
    let fixed = "b-adapt=0:b-pyramid=none:scenecut=0:aud=1";
    let codec = ["-c:v", "libx264", "-g", "25", "-bf", "2", "-x264-params", fixed];
    let kinds = kinds(&check_nal_units(&codec, "h264", |byte| byte & 31 == 9));
    assert_eq!(kinds.len(), 50);
    assert_eq!(kinds.iter().filter(|(_, key)| *key).count(), 2);
    assert_eq!(count(&kinds, Kind::Intra), 2);
    // Each group of 25: I, then P b b, eight times.
    assert_eq!((count(&kinds, Kind::Predicted), count(&kinds, Kind::Bidirectional)), (16, 32));
}

#[test]
fn h264_with_several_slices_and_open_groups_comes_out_as_it_went_in() {
    if !has_ffmpeg() {
        return;
    }
    let fixed = "b-adapt=0:open-gop=1:slices=4:scenecut=0";
    let codec = ["-c:v", "libx264", "-g", "12", "-bf", "3", "-x264-params", fixed, "-b:v", "2M"];
    let kinds = kinds(&check_nal_units(&codec, "h264", |byte| byte & 31 == 9));
    assert_eq!(kinds.len(), 50);
    assert!(kinds.iter().filter(|(_, key)| *key).count() >= 4, "recovery points are key: {kinds:?}");
}

#[test]
fn h265_comes_out_as_it_went_in() {
    if !has_ffmpeg() {
        return;
    }
    let fixed =
        "log-level=none:keyint=25:min-keyint=25:scenecut=0:b-adapt=0:bframes=2:open-gop=0:b-pyramid=0";
    let codec = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", fixed];
    let kinds = kinds(&check_nal_units(&codec, "hevc", |byte| byte >> 1 & 63 == 35));
    assert_eq!(kinds.len(), 50);
    assert_eq!(kinds.iter().filter(|(_, key)| *key).count(), 2);
    assert_eq!((count(&kinds, Kind::Predicted), count(&kinds, Kind::Bidirectional)), (16, 32));
}

/// Encodes, sends as RTP, and gives the tags of what came. ffmpeg cannot send all of these otherwise.
fn tags(codec: &[&str]) -> Vec<Tag> {
    let input = ["-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=2"];
    let output = [codec, &["-pix_fmt", "yuv420p", "-strict", "experimental"]].concat();
    let (tracks, received) = send(&input, &[&output]);
    let mut reader = RtpReader::new(0, &tracks[0]);
    let media = received.into_iter().filter(|datagram| !datagram.control);
    media.map(|datagram| reader.read(&datagram.data).expect("a payload that can be read")).collect()
}

#[test]
fn frames_of_vp8_and_vp9_are_told() {
    if !has_ffmpeg() {
        return;
    }
    for encoder in ["libvpx", "libvpx-vp9"] {
        let live = ["-deadline", "realtime", "-lag-in-frames", "0", "-auto-alt-ref", "0"];
        let codec = [&["-c:v", encoder, "-g", "25", "-cpu-used", "8", "-b:v", "1M"][..], &live].concat();
        let tags = tags(&codec);
        let kinds = kinds(&tags);
        assert_eq!((kinds.len(), count(&kinds, Kind::Intra)), (50, 2), "{encoder}");
        let keys: Vec<_> = (0..).zip(&kinds).filter(|(_, (_, key))| *key).map(|(at, _)| at).collect();
        assert_eq!(keys, [0, 25], "{encoder}");
        assert!(tags.iter().all(|tag| tag.layer == 0 && tag.layers == 1), "{encoder}");
    }
}
