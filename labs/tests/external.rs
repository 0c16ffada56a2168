//! Other programs as elements: what they make of a stream is decoded by players, as the documentation
//! shows it; and what happens when one is killed.

use std::collections::BTreeSet;
use std::net::UdpSocket;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    PATIENCE, Sample, all_play_clean, ends_clean, ffmpeg_rtsp, plays, rtsp_url, scene, wait_for,
};
use serde_json::Value;

const PAGE: &str = include_str!("../../docs/services.md");
const PICTURES: u32 = 50;

/// The examples of the documentation.
fn examples() -> Result<String> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with("Other programs\n"));
    let blocks = section.context("no such section")?.split("\n```toml\n").skip(1);
    let blocks: Vec<_> = blocks.filter_map(|rest| rest.split("\n```").next()).collect();
    let text = blocks.join("\n\n").replace("192.0.2.7", &PLAYER.to_string());
    let h264 = r#""libx264", "-preset", "veryfast", "-tune", "zerolatency""#;
    ensure!(text.contains(h264), "the example codes by other means: {text}");
    let encoders = Program::words("ffmpeg -hide_banner -encoders").finish(PATIENCE)?.stdout;
    Ok(if encoders.contains("libx264 ") { text } else { text.replace(h264, r#""mpeg2video""#) })
}

/// H.264 by RTSP.
fn published(paths: &Paths) -> Result<Running> {
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/live");
    ffmpeg_sends(&Sample::H264Mp4.file()?, &to).within(&paths.source).start()
}

fn http_url(branch: &str) -> String {
    format!("http://{RELAY_OUT}:{HTTP_PORT}/live.ts?branch={branch}")
}

/// Expects players to find pictures of this size at an address, and no others.
fn has_size(paths: &Paths, url: &str, size: &str) -> Result<()> {
    let shown = "-select_streams v -show_entries stream=width,height -of csv=p=0";
    let program = Program::words(&format!("ffprobe -hide_banner -loglevel error {shown} {url}"));
    let found = program.within(&paths.players).finish(PATIENCE)?.stdout;
    // Once for the programme, once for the stream.
    let mut sizes = found.lines().filter(|line| !line.is_empty());
    ensure!(sizes.next() == Some(size) && sizes.all(|other| other == size), "{url}: {found}");
    Ok(())
}

/// What the API says of an element.
fn element(state: &Value, name: &str) -> Value {
    let elements = state["elements"].as_array().into_iter().flatten();
    elements.into_iter().find(|element| element["name"] == name).cloned().unwrap_or_default()
}

/// The program that codes again.
fn coder(relay: &mut Relay) -> Result<Option<Pid>> {
    Ok(relay.process().child("libx264")?.or(relay.process().child("mpeg2video")?))
}

#[test]
fn a_branch_is_coded_again_and_goes_on_when_the_program_was_killed() -> Result<()> {
    let Some(paths) = scene("ffmpeg as an element", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &(listen() + &examples()?))?;
    let _publishing = published(&paths)?;
    relay.wait_up("live")?;
    let over_http = || ffmpeg_decodes(&format!("-i {}", http_url("low")), PICTURES);
    all_play_clean(&paths, &[over_http(), ffmpeg_rtsp("live?branch=low", "tcp", PICTURES)])?;
    for url in [http_url("low"), format!("-rtsp_transport tcp {}", rtsp_url("live?branch=low"))] {
        has_size(&paths, &url, "320,180")?;
    }
    let original = plays(&paths, &ffmpeg_rtsp("live", "udp", 300))?;
    let through_it_all = plays(&paths, &ffmpeg_decodes(&format!("-i {}", http_url("low")), 300))?;
    relay.wait_receivers("live", 3)?;
    let first = coder(&mut relay)?.context("the program runs")?;
    kill(first, Signal::SIGKILL)?;
    let state = relay.wait_stream("live", "told of the fault", |state| {
        element(state, "smaller")["faults"].as_u64() > Some(0)
    })?;
    let written = |state: &Value| element(state, "smaller")["packets_out"].as_u64().unwrap_or(0);
    let before = written(&state);
    let fault = element(&state, "smaller")["fault"].as_str().unwrap_or_default().to_owned();
    ensure!(fault.starts_with("ffmpeg ended: signal: 9"), "{fault}");
    wait_for("another program runs", || Ok(coder(&mut relay)?.is_some_and(|next| next != first)))?;
    // A receiver that joins before it writes begins with what the one before has written, and sees the break.
    relay.wait_stream("live", "coded again", |state| written(state) > before + u64::from(PICTURES))?;
    all_play_clean(&paths, &[over_http(), ffmpeg_rtsp("live?branch=low", "tcp", PICTURES)])?;
    // A receiver from before sees where it broke, and goes on; one of the original does not.
    through_it_all.succeed(PATIENCE)?;
    ends_clean(original)?;
    relay.healthy()
}

#[test]
fn thumbnails_of_a_video_are_images_like_any() -> Result<()> {
    let Some(paths) = scene("thumbnails by ffmpeg", &["ffmpeg"])? else { return Ok(()) };
    let gray = format!(
        "\n[[sinks]]\nstream = \"live\"\nbranch = \"stills\"\nto = \"udp://{PLAYER}:6001\"\nview = \"gray=1\"\n"
    );
    let mut relay = Relay::start(&paths.relay, &(listen() + &examples()? + &gray))?;
    let bind = |port| -> Result<UdpSocket> {
        let socket = paths.players.run(|| UdpSocket::bind((PLAYER, port)))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    };
    let (coloured, gray) = (bind(6000)?, bind(6001)?);
    let _publishing = published(&paths)?;
    let mut buffer = vec![0; 65_536];
    for (socket, head, bytes) in
        [(&coloured, &b"P6\n160 90\n255\n"[..], 160 * 90 * 3), (&gray, b"P5\n160 90\n255\n", 160 * 90)]
    {
        // ffmpeg begins with the same picture for some seconds.
        let mut seen = BTreeSet::new();
        for _ in 0..6 {
            let length = socket.recv(&mut buffer).context("no image comes")?;
            let image = &buffer[..length];
            ensure!(image.starts_with(head) && length == head.len() + bytes, "{length} bytes");
            seen.insert(image.to_vec());
        }
        ensure!(seen.len() > 1, "it is the same picture all the time");
    }
    let state = element(&relay.stream("live")?, "stills");
    ensure!(state["faults"] == 0 && state["packets_out"].as_u64() > Some(0), "{state:#}");
    ensure!(state["packets_out"].as_u64() < state["packets_in"].as_u64().map(|all| all / 10), "{state:#}");
    relay.healthy()
}

#[test]
fn a_branch_is_coded_again_by_gstreamer() -> Result<()> {
    let needs = ["ffmpeg", "ffprobe", "gst-launch-1.0"];
    let Some(paths) = scene("GStreamer as an element", &needs)? else { return Ok(()) };
    let pipeline = "gst-launch-1.0 -q fdsrc ! tsdemux ! h264parse ! avdec_h264 ! videoscale \
                    ! video/x-raw,width=160,height=90 ! x264enc tune=zerolatency key-int-max=25 \
                    ! h264parse config-interval=-1 ! mpegtsmux ! fdsink";
    let command: Vec<_> = pipeline.split_whitespace().collect();
    let services = format!(
        "[streams.live.branches.low]\nservices = [\"to-ts\", {{ element = \"external\", command = {command:?} }}]\n"
    );
    let mut relay = Relay::start(&paths.relay, &(listen() + &services))?;
    let _publishing = published(&paths)?;
    relay.wait_up("live")?;
    all_play_clean(
        &paths,
        &[
            ffmpeg_decodes(&format!("-i {}", http_url("low")), PICTURES),
            ffmpeg_rtsp("live?branch=low", "tcp", PICTURES),
            ffmpeg_rtsp("live?branch=low", "udp", PICTURES),
        ],
    )?;
    has_size(&paths, &http_url("low"), "160,90")?;
    relay.healthy()
}
