//! What the multiplexer makes, as ffmpeg, ffprobe and GStreamer see it. The access units are those
//! of clips that ffmpeg made, taken out of their transport stream.

#![allow(clippy::disallowed_methods, reason = "tests drive real programs")]

mod ts_support;

use bytes::Bytes;
use outflow_media::{AccessUnit, Codec, Track};
use outflow_ts::packet::Packet;
use outflow_ts::pes::PesHeader;
use outflow_ts::{PACKET_BYTES, TsMux, TsOut};
use ts_support::{clip, decode, has, probe, run};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;

fn track(codec: Codec, encoding: &str) -> Track {
    Track {
        codec,
        payload_type: 96,
        clock_rate: 90_000,
        channels: 1,
        fmtp: String::new(),
        encoding: encoding.to_owned(),
        extensions: Vec::new(),
    }
}

/// A frame: its times, and its bytes.
type Frame = (u64, u64, Vec<u8>);

/// The PES packets on a PID.
fn pes_packets(stream: &[u8], pid: u16) -> Vec<Frame> {
    let mut found: Vec<Frame> = Vec::new();
    for bytes in stream.chunks_exact(PACKET_BYTES) {
        let packet = Packet::new_checked(bytes).expect("a packet");
        if packet.pid() != pid {
            continue;
        }
        let mut payload = packet.payload();
        if packet.unit_start() {
            let header = PesHeader::parse(payload).expect("a PES packet");
            let (pts, dts) = (header.pts.expect("a time"), header.decoded_at().expect("a time"));
            found.push((pts, dts, Vec::new()));
            payload = &payload[header.header_bytes..];
        }
        found.last_mut().expect("it begins with a PES packet").2.extend_from_slice(payload);
    }
    found
}

/// The frames of PES packets with several of them. `split` gives the bytes of a frame that are to
/// be left out, and its end.
fn frames(packets: Vec<Frame>, ticks: u64, split: fn(&[u8]) -> (usize, usize)) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (mut time, _, data) in packets {
        let mut rest = &data[..];
        while !rest.is_empty() {
            let (start, end) = split(rest);
            frames.push((time, time, rest[start..end].to_vec()));
            rest = &rest[end..];
            time += ticks;
        }
    }
    frames
}

fn adts(data: &[u8]) -> (usize, usize) {
    (7, usize::from(data[3] & 3) << 11 | usize::from(data[4]) << 3 | usize::from(data[5] >> 5))
}

fn opus(data: &[u8]) -> (usize, usize) {
    let mut size = 0;
    let mut at = 2;
    // What is to be trimmed at the start and at the end may follow the size.
    let extra = 2 * (usize::from(data[1] >> 4 & 1) + usize::from(data[1] >> 3 & 1));
    loop {
        size += usize::from(data[at]);
        at += 1;
        if data[at - 1] != 255 {
            return (at + extra, at + extra + size);
        }
    }
}

/// The NAL units of a byte stream, without start codes.
fn nal_units(data: &[u8]) -> Vec<&[u8]> {
    let codes = data.windows(3).enumerate().filter(|(_, window)| *window == [0, 0, 1]);
    let starts: Vec<_> = codes.map(|(at, _)| at + 3).collect();
    let ends = starts.iter().skip(1).map(|start| start - 3).chain([data.len()]);
    let units = starts.iter().zip(ends).map(|(start, end)| &data[*start..end]);
    let trimmed = |unit: &'_ [u8]| unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    units.map(|unit| &unit[..trimmed(unit)]).collect()
}

/// The first unit whose header is this one.
fn unit(data: &[u8], header: u8) -> Option<Bytes> {
    nal_units(data).into_iter().find(|unit| unit[0] == header).map(Bytes::copy_from_slice)
}

/// A frame without the units whose header `leave_out` says so of.
fn without(frame: &Frame, leave_out: fn(u8) -> bool) -> Frame {
    let units = nal_units(&frame.2).into_iter().filter(|unit| !leave_out(unit[0]));
    (frame.0, frame.1, units.flat_map(|unit| [&[0, 0, 1], unit].concat()).collect())
}

/// Multiplexes picture and sound in the order of their decoding times.
fn mux(tracks: &[Track], video: &[Frame], audio: &[Frame], is_key: fn(&[u8]) -> bool) -> Vec<u8> {
    let video = video.iter().map(|frame| (0, is_key(&frame.2), frame));
    let audio = audio.iter().map(|frame| (1, true, frame));
    let mut all: Vec<_> = video.chain(audio).collect();
    all.sort_by_key(|(_, _, frame)| frame.1);
    let (mut mux, mut out) = (TsMux::new(tracks).expect("it can be carried"), TsOut::default());
    let mut stream = Vec::new();
    for (track, key, (pts, dts, data)) in all {
        let (pts, dts, data) = (pts.cast_signed(), dts.cast_signed(), Bytes::copy_from_slice(data));
        mux.push(&AccessUnit { track, pts, dts, key, data }, &mut out).expect("it can be carried");
        while let Some(datagram) = out.next_datagram() {
            stream.extend_from_slice(&datagram);
        }
    }
    stream
}

/// ffmpeg, ffprobe and GStreamer decode it without a word, and nothing is missing.
fn check(what: &str, stream: &[u8], video: &[Frame], audio: &[Frame]) {
    decode(stream, what);
    let times = |frames: &[Frame]| -> Vec<_> {
        frames.iter().map(|(pts, dts, _)| vec![pts.to_string(), dts.to_string()]).collect()
    };
    assert_eq!(probe(stream, "v:0", "pts,dts"), times(video), "{what}: times of the picture");
    assert_eq!(probe(stream, "a:0", "pts,dts").len(), audio.len(), "{what}: frames of sound");
    if has("gst-launch-1.0") {
        let pipeline = "fdsrc fd=0 ! tsdemux name=demux demux. ! queue ! decodebin ! fakesink \
                        demux. ! queue ! decodebin ! fakesink";
        let arguments: Vec<_> = ["-q"].into_iter().chain(pipeline.split_whitespace()).collect();
        let (_, errors) = run("gst-launch-1.0", &arguments, stream);
        assert!(!errors.contains("WARN") && !errors.contains("ERROR"), "{what}: {errors}");
    }
}

#[test]
fn h264_and_aac() {
    if !has("ffmpeg") {
        return;
    }
    let coding = ["-c:v", "libx264", "-preset", "veryfast", "-g", "25", "-bf", "2", "-c:a", "aac"];
    let original = clip("25", &coding);
    let whole = pes_packets(&original, VIDEO);
    // As with RTP whose description has the parameter sets.
    let described = Codec::H264 { sps: unit(&whole[0].2, 0x67), pps: unit(&whole[0].2, 0x68) };
    let config = Bytes::from_static(&[0x11, 0x88]);
    let aac = Codec::Aac { config, size_length: 13, index_length: 3, index_delta_length: 3 };
    let tracks = [track(described, "H264"), track(aac, "mpeg4-generic")];
    let video: Vec<_> =
        whole.iter().map(|frame| without(frame, |header| matches!(header & 31, 7..=9))).collect();
    let audio = frames(pes_packets(&original, AUDIO), 1_920, adts);
    let stream = mux(&tracks, &video, &audio, |data| unit(data, 0x65).is_some());
    check("H.264 and AAC", &stream, &video, &audio);
}

#[test]
fn h265_and_opus() {
    if !has("ffmpeg") {
        return;
    }
    let coding = ["-c:v", "libx265", "-preset", "ultrafast", "-c:a", "libopus"];
    let parameters = "log-level=none:bframes=3:open-gop=0:keyint=25";
    let original = clip("25", &[&coding[..], &["-x265-params", parameters]].concat());
    let whole = pes_packets(&original, VIDEO);
    let set = |header| unit(&whole[0].2, header);
    let described = Codec::H265 { vps: set(0x40), sps: set(0x42), pps: set(0x44) };
    let tracks = [track(described, "H265"), track(Codec::Opus, "opus")];
    let bare = |frame| without(frame, |header| matches!(header >> 1, 32..=35));
    let video: Vec<_> = whole.iter().map(bare).collect();
    let audio = frames(pes_packets(&original, AUDIO), 1_800, opus);
    let is_key = |data: &[u8]| nal_units(data).iter().any(|unit| matches!(unit[0] >> 1, 16..=21));
    let stream = mux(&tracks, &video, &audio, is_key);
    check("H.265 and Opus", &stream, &video, &audio);
}

#[test]
fn mpeg2_video_and_mpeg_audio() {
    if !has("ffmpeg") {
        return;
    }
    let coding = ["-c:v", "mpeg2video", "-q:v", "4", "-g", "12", "-bf", "2", "-c:a", "mp2"];
    let original = clip("25", &coding);
    let tracks = [track(Codec::MpegVideo, "MPV"), track(Codec::MpegAudio, "MPA")];
    let video = pes_packets(&original, VIDEO);
    let length = |data: &[u8]| (0, outflow_media::codec::mpeg_audio::frame_length(data).expect("a frame"));
    let audio = frames(pes_packets(&original, AUDIO), 2_160, length);
    let stream = mux(&tracks, &video, &audio, |data| unit(data, 0xb3).is_some());
    check("MPEG-2 and MPEG audio", &stream, &video, &audio);
}
