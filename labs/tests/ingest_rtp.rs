//! RTP comes in as an SDP file describes it; players decode it.

use std::path::Path;

use anyhow::Result;
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::Program;
use outflow_labs::programs::{ffmpeg, gst};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{Sample, all_play_clean, ffmpeg_rtsp, gst_rtsp_h264, scene, wait_for};

const PICTURES: u32 = 50;

fn configuration(sdp: &Path) -> String {
    let sdp = sdp.display();
    format!("{}[streams.live]\nsource = \"rtp://0.0.0.0:5010\"\nsdp = \"{sdp}\"\n", listen())
}

/// ffmpeg sends video (and sound) to port pairs and writes the SDP file that says so.
fn ffmpeg_comes_through(paths: &Paths, sample: Sample, with_sound: bool, players: &[Program]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("live.sdp");
    let file = sample.file()?;
    let sound =
        if with_sound { format!("-map 0:a -c copy -f rtp rtp://{RELAY_IN}:5012") } else { String::new() };
    let line = format!(
        "-re -stream_loop -1 -i {} -map 0:v -c copy -f rtp rtp://{RELAY_IN}:5010 {sound} -sdp_file {}",
        file.display(),
        sdp.display()
    );
    let mut publishing = ffmpeg(&line).within(&paths.source).start()?;
    wait_for("ffmpeg has described its stream", || {
        anyhow::ensure!(publishing.alive(), "it ended: {}", publishing.account());
        Ok(std::fs::read_to_string(&sdp).is_ok_and(|text| text.ends_with('\n')))
    })?;
    let mut relay = Relay::start(&paths.relay, &configuration(&sdp))?;
    relay.wait_up("live")?;
    all_play_clean(paths, players)?;
    relay.healthy()
}

#[test]
fn h264_and_aac() -> Result<()> {
    let Some(paths) = scene("H.264 and AAC by SDP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let players = [
        ffmpeg_rtsp("live", "tcp", PICTURES),
        ffmpeg_rtsp("live", "udp", PICTURES),
        gst_rtsp_h264("live", "tcp", PICTURES),
    ];
    ffmpeg_comes_through(&paths, Sample::H264Mp4, true, &players)
}

#[test]
fn h265_and_aac() -> Result<()> {
    let Some(paths) = scene("H.265 and AAC by SDP", &["ffmpeg"])? else { return Ok(()) };
    let players = [ffmpeg_rtsp("live", "tcp", PICTURES), ffmpeg_rtsp("live", "udp", PICTURES)];
    ffmpeg_comes_through(&paths, Sample::H265Mp4, true, &players)
}

#[test]
fn h264_and_opus() -> Result<()> {
    let Some(paths) = scene("H.264 and Opus by SDP", &["ffmpeg"])? else { return Ok(()) };
    let players = [ffmpeg_rtsp("live", "tcp", PICTURES), ffmpeg_rtsp("live", "udp", PICTURES)];
    ffmpeg_comes_through(&paths, Sample::OpusMkv, true, &players)
}

#[test]
fn mpeg2_video_and_mpeg_audio() -> Result<()> {
    let Some(paths) = scene("MPEG-2 by SDP", &["ffmpeg"])? else { return Ok(()) };
    let players = [ffmpeg_rtsp("live", "tcp", PICTURES)];
    ffmpeg_comes_through(&paths, Sample::Mpeg2Ts, true, &players)
}

#[test]
fn h264_of_gstreamer() -> Result<()> {
    let Some(paths) = scene("H.264 of GStreamer by SDP", &["ffmpeg", "gst-launch-1.0"])? else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("live.sdp");
    let text = "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=live\nc=IN IP4 0.0.0.0\nt=0 0\nm=video 5010 RTP/AVP 96\n\
                a=rtpmap:96 H264/90000\na=fmtp:96 packetization-mode=1\n";
    std::fs::write(&sdp, text)?;
    let line = format!(
        "videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1 \
         ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 \
         ! h264parse ! rtph264pay pt=96 config-interval=-1 mtu=1200 ! udpsink host={RELAY_IN} port=5010"
    );
    let mut relay = Relay::start(&paths.relay, &configuration(&sdp))?;
    let _publishing = gst(&line).within(&paths.source).start()?;
    relay.wait_up("live")?;
    all_play_clean(&paths, &[ffmpeg_rtsp("live", "tcp", PICTURES), ffmpeg_rtsp("live", "udp", PICTURES)])?;
    relay.healthy()
}
