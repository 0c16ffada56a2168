//! A receiver that joins gets a key frame first, whenever it joins and whatever way it takes.

use std::time::Duration;

use anyhow::{Result, ensure};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::programs::{clip, ffmpeg_sends, ffprobe_packets};
use outflow_labs::receive::{Crowd, How, Meter, Receiver, Target};
use outflow_labs::relay::{Relay, listen};
use outflow_labs::scene::{PATIENCE, http_url, rtsp_url, scene, wait_for};
use serde_json::json;

/// Between two joins: they fall into all parts of the second from key frame to key frame.
const APART: Duration = Duration::from_millis(230);
const JOINS: usize = 5;

fn configuration() -> String {
    listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\n"
}

/// A stream that has run for a while: more than a group of pictures.
fn running(paths: &Paths) -> Result<(Relay<'_>, Sender)> {
    let relay = Relay::start(&paths.relay, &configuration())?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), Shape::of_rate(2_000_000))?;
    relay.wait_up("live")?;
    wait_for("a group of pictures was sent", || Ok(sender.sent() > 400))?;
    Ok((relay, sender))
}

/// What a receiver had got when its first key frame was complete.
fn first_picture(crowd: &Crowd) -> Result<Meter> {
    let mut meter = None;
    wait_for("a key frame is complete", || {
        meter = crowd.split()?.meters.pop();
        Ok(meter.as_ref().is_some_and(|meter| meter.first_whole.is_some()))
    })?;
    Ok(meter.unwrap_or_default())
}

fn begins_at_key(meter: &Meter) -> bool {
    // The end of the picture before may share the first datagram with the key frame's beginning:
    // then the key frame is complete all the same, and it is the very next one.
    meter.first_whole.is_some() && meter.first.is_some_and(|first| first.key || first.last)
}

#[test]
fn the_first_picture_is_a_key_frame() -> Result<()> {
    let Some(paths) = scene("join", &[])? else { return Ok(()) };
    let (mut relay, _sender) = running(&paths)?;
    for how in [How::Http, How::RtspTcp, How::RtspUdp] {
        for _ in 0..JOINS {
            std::thread::sleep(APART);
            let receiver = paths.players.run(|| Receiver::open(how, &Target::new("live")))?;
            let meter = first_picture(&Crowd::start(vec![receiver], Duration::ZERO)?)?;
            ensure!(begins_at_key(&meter), "{how:?} began with {:?}", meter.first);
        }
    }
    relay.healthy()
}

#[test]
fn so_it_is_for_receivers_that_the_api_adds() -> Result<()> {
    let Some(paths) = scene("join by API", &[])? else { return Ok(()) };
    let (mut relay, _sender) = running(&paths)?;
    for (port, scheme) in (7000..).step_by(10).zip(["udp", "rtp", "udp", "rtp"]) {
        let how = if scheme == "udp" { How::Udp(port) } else { How::Rtp(port) };
        let receiver = paths.players.run(|| Receiver::open(how, &Target::new("live")))?;
        let crowd = Crowd::start(vec![receiver], Duration::ZERO)?;
        let to = format!("{scheme}://{PLAYER}:{port}");
        relay.post("/api/v1/streams/live/sinks", &json!({ "to": to }))?;
        let meter = first_picture(&crowd)?;
        ensure!(begins_at_key(&meter), "{to} began with {:?}", meter.first);
    }
    relay.healthy()
}

#[test]
fn ffprobe_sees_a_key_frame_first() -> Result<()> {
    let Some(paths) = scene("join with ffprobe", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let to = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    let _publishing = ffmpeg_sends(&clip(), &to).within(&paths.source).start()?;
    relay.wait_up("live")?;
    for input in [http_url("live"), format!("-rtsp_transport tcp {}", rtsp_url("live"))] {
        for _ in 0..2 {
            std::thread::sleep(APART);
            let listed = ffprobe_packets(&input, 5).within(&paths.players).finish(PATIENCE)?;
            let first = listed.stdout.lines().next().unwrap_or_default();
            ensure!(first.starts_with('K'), "{input}: the first packet is {first:?} of {:?}", listed.stdout);
        }
    }
    relay.healthy()
}

#[test]
fn a_receiver_may_come_before_the_source() -> Result<()> {
    let Some(paths) = scene("receiver before source", &[])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let receiver = std::thread::scope(|scope| {
        let opening = scope.spawn(|| paths.players.run(|| Receiver::open(How::Http, &Target::new("live"))));
        std::thread::sleep(APART);
        let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), Shape::of_rate(2_000_000))?;
        let receiver = opening.join().expect("it does not panic")?;
        let meter = first_picture(&Crowd::start(vec![receiver], Duration::ZERO)?)?;
        drop(sender);
        anyhow::Ok(meter)
    })?;
    ensure!(begins_at_key(&receiver), "it began with {:?}", receiver.first);
    relay.healthy()
}
