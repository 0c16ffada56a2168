//! What goes out is decoded by ffmpeg and GStreamer, whatever way it goes.

use anyhow::Result;
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::Program;
use outflow_labs::programs::{clip, ffmpeg_decodes, ffmpeg_sends, gst_decodes};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    all_play_clean, ends_clean, ffmpeg_http, ffmpeg_rtp_ts, ffmpeg_rtsp, gst_rtsp_h264, gst_rtsp_ts,
    http_url, plays, scene, wait_bound, wait_joined,
};
use serde_json::json;

const PICTURES: u32 = 50;
const DECODE_TS: &str = "tsdemux ! h264parse ! avdec_h264";

fn configuration() -> String {
    listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n"
}

fn sink(to: &str) -> String {
    format!("[[sinks]]\nstream = \"live\"\nto = \"{to}\"\n")
}

/// The clip as a transport stream over UDP.
fn publisher() -> Program {
    ffmpeg_sends(&clip(), &format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316"))
}

fn gst_plays(source: &str) -> Program {
    gst_decodes(&format!("{source} ! {DECODE_TS}"), PICTURES)
}

const RTP_TS: &str = "caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=MP2T,payload=33 \
                      ! rtpjitterbuffer ! rtpmp2tdepay";

#[test]
fn rtsp_and_http() -> Result<()> {
    let Some(paths) = scene("RTSP and HTTP out", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _publishing = publisher().within(&paths.source).start()?;
    relay.wait_up("live")?;
    let players = [
        ffmpeg_rtsp("live", "udp", PICTURES),
        ffmpeg_rtsp("live", "tcp", PICTURES),
        ffmpeg_http("live", PICTURES),
        gst_rtsp_ts("live", "udp", PICTURES),
        gst_rtsp_ts("live", "tcp", PICTURES),
        gst_plays(&format!("souphttpsrc is-live=true location={}", http_url("live"))),
    ];
    all_play_clean(&paths, &players)?;
    relay.healthy()
}

/// Players wait for packets at these ports, and are members of these groups, each with their number; then the stream
/// begins.
fn pushed_to(
    paths: &Paths,
    sinks: &[String],
    players: &[(Program, u16)],
    groups: &[(&str, u32)],
) -> Result<()> {
    let configuration = configuration() + &sinks.iter().map(|to| sink(to)).collect::<String>();
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let mut playing = Vec::new();
    for (player, port) in players {
        let mut player = plays(paths, player)?;
        wait_bound(&mut player, *port)?;
        playing.push(player);
    }
    for (group, members) in groups {
        playing.iter_mut().try_for_each(|player| wait_joined(player, group.parse()?, *members))?;
    }
    let _publishing = publisher().within(&paths.source).start()?;
    playing.into_iter().try_for_each(ends_clean)?;
    relay.healthy()
}

#[test]
fn udp_and_rtp_to_configured_addresses() -> Result<()> {
    let Some(paths) = scene("UDP and RTP push", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sinks = [("udp", 6000), ("udp", 6002), ("rtp", 6004), ("rtp", 6008)];
    let sinks = sinks.map(|(scheme, port)| format!("{scheme}://{PLAYER}:{port}"));
    let players = [
        (ffmpeg_decodes("-i udp://0.0.0.0:6000", PICTURES), 6000),
        (gst_plays("udpsrc port=6002"), 6002),
        (ffmpeg_rtp_ts(folder.path(), "0.0.0.0", 6004, PICTURES)?, 6004),
        (gst_plays(&format!("udpsrc port=6008 {RTP_TS}")), 6008),
    ];
    pushed_to(&paths, &sinks, &players, &[])
}

#[test]
fn multicast_as_transport_stream_and_as_rtp() -> Result<()> {
    let Some(paths) = scene("multicast out", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sinks =
        ["udp://239.2.2.2:6000", "rtp://239.2.2.3:6004"].map(|to| format!("{to}?ttl=4&interface=out0"));
    let gst_source =
        |group: &str, port: u16| format!("udpsrc address={group} port={port} multicast-iface=eth0");
    let players = [
        (ffmpeg_decodes(&format!("-i udp://239.2.2.2:6000?localaddr={PLAYER}"), PICTURES), 6000),
        (gst_plays(&gst_source("239.2.2.2", 6000)), 6000),
        (ffmpeg_rtp_ts(folder.path(), "239.2.2.3/4", 6004, PICTURES)?, 6004),
        (gst_plays(&format!("{} {RTP_TS}", gst_source("239.2.2.3", 6004))), 6004),
    ];
    pushed_to(&paths, &sinks, &players, &[("239.2.2.2", 2), ("239.2.2.3", 2)])
}

#[test]
fn a_receiver_added_by_the_api_begins_at_a_key_frame_and_can_be_removed() -> Result<()> {
    let Some(paths) = scene("receivers by API", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _publishing = publisher().within(&paths.source).start()?;
    relay.wait_up("live")?;
    let mut player = plays(&paths, &ffmpeg_decodes("-i udp://0.0.0.0:6000", PICTURES))?;
    wait_bound(&mut player, 6000)?;
    relay.post("/api/v1/streams/live/sinks", &json!({ "to": format!("udp://{PLAYER}:6000") }))?;
    let state = relay.wait_receivers("live", 1)?;
    ends_clean(player)?;
    relay.delete(&format!("/api/v1/receivers/{}", state["receivers"][0]["id"]))?;
    relay.wait_receivers("live", 0)?;
    relay.healthy()
}

#[test]
fn rtp_tracks_by_rtsp_and_pushed_to_port_pairs() -> Result<()> {
    let Some(paths) = scene("RTP tracks out", &["ffmpeg", "gst-launch-1.0"])? else { return Ok(()) };
    let pushed = listen() + "[streams.live]\nsource = \"push\"\n" + &sink(&format!("rtp://{PLAYER}:6030"));
    let mut relay = Relay::start(&paths.relay, &pushed)?;
    let at_port = "udpsrc port=6030 caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=H264 \
                   ! rtpjitterbuffer ! rtph264depay ! h264parse ! avdec_h264";
    let mut at_port = plays(&paths, &gst_decodes(at_port, PICTURES))?;
    wait_bound(&mut at_port, 6030)?;
    // From a transport stream, so that the parameter sets are within the stream.
    let to = format!("-an -f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/live");
    let _publishing = ffmpeg_sends(&clip(), &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let players = [
        ffmpeg_rtsp("live", "udp", PICTURES),
        ffmpeg_rtsp("live", "tcp", PICTURES),
        gst_rtsp_h264("live", "udp", PICTURES),
        gst_rtsp_h264("live", "tcp", PICTURES),
    ];
    all_play_clean(&paths, &players)?;
    ends_clean(at_port)?;
    relay.healthy()
}
