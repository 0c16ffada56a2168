//! RTSP comes in, published to the relay and pulled by it; players decode it.

use anyhow::{Result, ensure};
use outflow_labs::net::{Paths, RELAY_IN, SOURCE};
use outflow_labs::process::Program;
use outflow_labs::programs::{ffmpeg_sends, gst};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{Sample, all_play_clean, ffmpeg_http, ffmpeg_rtsp, gst_rtsp_h264, scene, wait_for};

const PICTURES: u32 = 50;

fn pushed() -> String {
    listen() + "[streams.live]\nsource = \"push\"\n"
}

fn publish_url() -> String {
    format!("rtsp://{RELAY_IN}:{RTSP_PORT}/live")
}

fn comes_through(paths: &Paths, publisher: &Program, players: &[Program]) -> Result<()> {
    let mut relay = Relay::start(&paths.relay, &pushed())?;
    let _publishing = publisher.clone().within(&paths.source).start()?;
    relay.wait_up("live")?;
    all_play_clean(paths, players)?;
    relay.healthy()
}

#[test]
fn ffmpeg_publishes_over_tcp() -> Result<()> {
    let Some(paths) = scene("RTSP publish over TCP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = format!("-f rtsp -rtsp_transport tcp {}", publish_url());
    let publisher = ffmpeg_sends(&Sample::H264Mp4.file()?, &to);
    let players = [
        ffmpeg_rtsp("live", "udp", PICTURES),
        ffmpeg_http("live", PICTURES),
        gst_rtsp_h264("live", "tcp", PICTURES),
    ];
    comes_through(&paths, &publisher, &players)
}

#[test]
fn ffmpeg_publishes_over_udp() -> Result<()> {
    let Some(paths) = scene("RTSP publish over UDP", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let to = format!("-f rtsp -rtsp_transport udp {}", publish_url());
    let publisher = ffmpeg_sends(&Sample::H264Mp4.file()?, &to);
    let players = [ffmpeg_rtsp("live", "tcp", PICTURES), gst_rtsp_h264("live", "udp", PICTURES)];
    comes_through(&paths, &publisher, &players)
}

#[test]
fn ffmpeg_publishes_h265() -> Result<()> {
    let Some(paths) = scene("RTSP publish of H.265", &["ffmpeg"])? else { return Ok(()) };
    let to = format!("-f rtsp -rtsp_transport tcp {}", publish_url());
    let publisher = ffmpeg_sends(&Sample::H265Mp4.file()?, &to);
    comes_through(&paths, &publisher, &[ffmpeg_rtsp("live", "udp", PICTURES), ffmpeg_http("live", PICTURES)])
}

#[test]
fn gstreamer_publishes_over_tcp_and_udp() -> Result<()> {
    let Some(paths) = scene("rtspclientsink", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    for protocols in ["tcp", "udp"] {
        let publisher = gst(&format!(
            "rtspclientsink name=out protocols={protocols} location={} \
             videotestsrc is-live=true ! video/x-raw,width=320,height=180,framerate=25/1 \
             ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 \
             ! h264parse config-interval=-1 ! out. \
             audiotestsrc is-live=true ! avenc_aac ! aacparse ! out.",
            publish_url()
        ));
        comes_through(&paths, &publisher, &[ffmpeg_rtsp("live", "tcp", PICTURES)])?;
    }
    Ok(())
}

/// Another relay is the camera: it wants a password.
fn camera(paths: &Paths) -> Result<Relay<'_>> {
    let configuration = listen() + "[access]\nplay = [\"s3cret\"]\n[streams.eye]\nsource = \"demo://\"\n";
    let camera = Relay::start(&paths.source, &configuration)?;
    camera.wait_up("eye")?;
    Ok(camera)
}

fn pulled(password: &str) -> String {
    let url = format!("rtsp://viewer:{password}@{SOURCE}:{RTSP_PORT}/eye");
    format!("{}[streams.live]\nsource = \"{url}\"\n", listen())
}

#[test]
fn a_camera_with_digest_authentication_is_pulled() -> Result<()> {
    let Some(paths) = scene("RTSP pull", &["ffmpeg"])? else { return Ok(()) };
    let mut camera = camera(&paths)?;
    let mut relay = Relay::start(&paths.relay, &pulled("s3cret"))?;
    relay.wait_up("live")?;
    all_play_clean(&paths, &[ffmpeg_rtsp("live", "tcp", PICTURES), ffmpeg_http("live", PICTURES)])?;
    let shown = relay.stream("live")?.to_string() + &relay.get("/metrics")?;
    ensure!(!shown.contains("s3cret"), "the password is shown");
    camera.healthy()?;
    relay.healthy()
}

#[test]
fn a_wrong_password_is_refused_and_mended_by_a_reload() -> Result<()> {
    let Some(paths) = scene("RTSP pull", &["ffmpeg"])? else { return Ok(()) };
    let camera = camera(&paths)?;
    let mut relay = Relay::start(&paths.relay, &pulled("guess"))?;
    wait_for("the refusal is logged", || {
        let log = relay.process().stdout() + &relay.process().stderr();
        Ok(log.contains("401") || log.to_lowercase().contains("password"))
    })?;
    assert_eq!(relay.stream("live")?["source"]["up"], false);
    relay.reload(&pulled("s3cret"))?;
    relay.wait_up("live")?;
    drop(camera);
    relay.wait_stream("live", "down", |state| state["source"]["up"] == false)?;
    relay.healthy()
}
