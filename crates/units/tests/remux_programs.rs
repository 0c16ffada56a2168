//! What ffmpeg and GStreamer send as RTP, made into a transport stream, is decoded by ffmpeg without
//! a word.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests drive real programs")]

#[path = "../../rtp/tests/rtp_support/mod.rs"]
mod rtp_support;

use std::process::{Command, Stdio};

use bytes::Bytes;
use outflow_media::Track;
use outflow_rtp::rtcp::Report;
use outflow_rtp::{rtcp, sdp};
use outflow_units::{FromRtp, ToTs};
use rtp_support::{Ports, Received, has_ffmpeg, receive, run, send};

/// Three seconds of picture and sound, played in real time.
const INPUTS: &[&str] = &[
    "-re",
    "-f",
    "lavfi",
    "-i",
    "testsrc2=size=320x240:rate=25:duration=3",
    "-re",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:sample_rate=48000:duration=3",
];

fn remux(tracks: &[Track], received: &[Received]) -> Vec<u8> {
    let mut to = ToTs::new(tracks).expect("codecs that a transport stream can carry");
    let mut from = FromRtp::new(tracks, |track| to.carries(track));
    let mut stream = Vec::new();
    for datagram in received {
        if datagram.control {
            let told = rtcp::read(&datagram.data, |report| {
                if let Report::Sender(report) = report {
                    from.sender_report(datagram.track, report.ntp, report.rtp, datagram.at);
                }
            });
            told.expect("RTCP of ffmpeg");
            continue;
        }
        let mut made = |bytes: Bytes| {
            assert!(bytes.len().is_multiple_of(188) && bytes.len() <= 7 * 188);
            stream.extend_from_slice(&bytes);
        };
        from.push(datagram.track, &datagram.data, datagram.at, &mut |unit| to.push(&unit, &mut made));
    }
    assert_eq!((from.dropped(), to.refused()), Default::default());
    stream
}

/// Packets of each stream, as codec name and count.
fn counted(stream: &[u8]) -> Vec<(String, u32)> {
    let entries = "stream=codec_name,nb_read_packets";
    let arguments = ["-v", "warning", "-count_packets", "-show_entries", entries, "-of", "csv=p=0", "-"];
    let (table, errors) = run("ffprobe", &arguments, stream);
    assert_eq!(errors, "", "ffprobe");
    let rows = table.lines().filter(|line| !line.is_empty());
    let mut counted: Vec<_> = rows
        .map(|row| {
            let (name, count) = row.split_once(',').expect("two columns");
            (name.to_owned(), count.trim_end_matches(',').parse().expect("a number"))
        })
        .collect();
    counted.sort();
    counted.dedup();
    counted
}

/// Sends, remuxes, and decodes; gives the packets of each stream.
fn check(codecs: &[&[&str]]) -> Vec<(String, u32)> {
    let (tracks, received) = send(INPUTS, codecs);
    decode(&remux(&tracks, &received))
}

/// Decodes; gives the packets of each stream.
fn decode(stream: &[u8]) -> Vec<(String, u32)> {
    let arguments = ["-v", "warning", "-f", "mpegts", "-i", "-", "-map", "0", "-f", "null", "-"];
    let (_, errors) = run("ffmpeg", &arguments, stream);
    assert_eq!(errors, "", "ffmpeg");
    counted(stream)
}

fn names(counted: &[(String, u32)]) -> Vec<&str> {
    counted.iter().map(|(name, _)| name.as_str()).collect()
}

const AAC: &[&str] = &["-map", "1:a", "-ac", "2", "-c:a", "aac"];
const X264: &[&str] = &["-map", "0:v", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast"];

#[test]
fn h264_with_b_frames_and_aac() {
    if !has_ffmpeg() {
        return;
    }
    let video = [X264, &["-g", "25", "-bf", "3", "-x264-params", "b-pyramid=normal:b-adapt=0"]].concat();
    let counted = check(&[&video, AAC]);
    assert_eq!(names(&counted), ["aac", "h264"]);
    // The last frame may wait for a packet that does not come any more.
    assert!(counted[1].1 >= 74 && counted[0].1 >= 138, "{counted:?}");
}

#[test]
fn h264_with_open_groups() {
    if !has_ffmpeg() {
        return;
    }
    let video = [X264, &["-g", "12", "-bf", "2", "-x264-params", "open-gop=1:b-adapt=0"]].concat();
    assert_eq!(names(&check(&[&video])), ["h264"]);
}

#[test]
fn h265_and_opus() {
    if !has_ffmpeg() {
        return;
    }
    let parameters = ["-x265-params", "log-level=none:bframes=3"];
    let video = ["-map", "0:v", "-pix_fmt", "yuv420p", "-c:v", "libx265", "-preset", "ultrafast", "-g", "25"];
    let video = [&video[..], &parameters].concat();
    let audio = ["-map", "1:a", "-ac", "2", "-c:a", "libopus"];
    let counted = check(&[&video, &audio]);
    assert_eq!(names(&counted), ["hevc", "opus"]);
    assert!(counted[0].1 >= 74 && counted[1].1 >= 148, "{counted:?}");
}

#[test]
fn mpeg2_and_mpeg_audio() {
    if !has_ffmpeg() {
        return;
    }
    let video = ["-map", "0:v", "-pix_fmt", "yuv420p", "-c:v", "mpeg2video", "-g", "12", "-bf", "2"];
    let audio = ["-map", "1:a", "-ac", "2", "-c:a", "mp2", "-b:a", "384k"];
    let counted = check(&[&video, &audio]);
    assert_eq!(names(&counted), ["mp2", "mpeg2video"]);
    assert!(counted[1].1 >= 74 && counted[0].1 >= 123, "{counted:?}");
}

#[test]
fn sound_alone() {
    if !has_ffmpeg() {
        return;
    }
    assert_eq!(names(&check(&[AAC])), ["aac"]);
}

/// What GStreamer sends: one branch of a pipeline for each of `branches`, which end in a payloader,
/// with the lines that describe its media.
fn check_gstreamer(branches: &[(&str, &str)]) -> Option<Vec<(String, u32)>> {
    if !has_ffmpeg() {
        return None;
    }
    let ports: Vec<Ports> = branches.iter().map(|_| Ports::bind()).collect();
    let mut command = Command::new("gst-launch-1.0");
    let mut described = String::new();
    command.arg("-q");
    for ((branch, media), ports) in branches.iter().zip(&ports) {
        let sink = format!("{branch} ! udpsink host=127.0.0.1 port={}", ports.port());
        command.args(sink.split_whitespace());
        described += media;
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut gstreamer) = command.spawn() else {
        outflow_skip::skipped("remux of what GStreamer sends", "gst-launch-1.0 is missing");
        return None;
    };
    let received = receive(&mut gstreamer, &ports);
    let output = gstreamer.wait_with_output().expect("it ended");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("no element") {
        outflow_skip::skipped("remux of what GStreamer sends", errors.trim());
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let description = sdp::parse(described.as_bytes()).expect("a description");
    let tracks: Vec<Track> = description.media.into_iter().map(|media| media.track).collect();
    Some(decode(&remux(&tracks, &received)))
}

const GST_PICTURE: &str = "videotestsrc is-live=true num-buffers=75 pattern=ball \
    ! video/x-raw,format=I420,width=320,height=240,framerate=25/1";
const GST_SOUND: &str = "audiotestsrc is-live=true num-buffers=140 samplesperbuffer=1024 \
    ! audio/x-raw,rate=48000,channels=2";

#[test]
fn h264_and_aac_of_gstreamer() {
    let video = format!(
        "{GST_PICTURE} ! x264enc key-int-max=25 bframes=2 bitrate=500 speed-preset=veryfast \
         ! rtph264pay pt=96 aggregate-mode=zero-latency config-interval=-1 mtu=700"
    );
    let audio = format!("{GST_SOUND} ! avenc_aac ! rtpmp4gpay pt=97 mtu=400");
    let counted = check_gstreamer(&[
        (&video, "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"),
        (
            &audio,
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/48000/2\r\na=fmtp:97 mode=AAC-hbr;\
             sizelength=13;indexlength=3;indexdeltalength=3;config=1190\r\n",
        ),
    ]);
    if let Some(counted) = counted {
        assert_eq!(names(&counted), ["aac", "h264"]);
        assert!(counted[0].1 >= 138 && counted[1].1 >= 74, "{counted:?}");
    }
}

#[test]
fn h265_and_opus_of_gstreamer() {
    let video = format!(
        "{GST_PICTURE} ! x265enc key-int-max=25 speed-preset=ultrafast log-level=none \
         ! rtph265pay pt=96 aggregate-mode=zero-latency config-interval=-1 mtu=700"
    );
    let audio = format!("{GST_SOUND} ! opusenc ! rtpopuspay pt=97");
    let counted = check_gstreamer(&[
        (&video, "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\n"),
        (&audio, "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 OPUS/48000/2\r\n"),
    ]);
    if let Some(counted) = counted {
        assert_eq!(names(&counted), ["hevc", "opus"]);
        assert!(counted[0].1 >= 74 && counted[1].1 >= 140, "{counted:?}");
    }
}

#[test]
fn fragmented_mpeg_audio_of_gstreamer() {
    let audio = format!("{GST_SOUND} ! twolamemp2enc bitrate=192 ! mpegaudioparse ! rtpmpapay mtu=400");
    if let Some(counted) = check_gstreamer(&[(&audio, "m=audio 0 RTP/AVP 14\r\n")]) {
        assert_eq!(names(&counted), ["mp2"]);
        assert!(counted[0].1 >= 120, "{counted:?}");
    }
}
