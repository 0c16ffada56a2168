//! What does not concern a receiver, it does not notice: reloads, other receivers' deaths, and even
//! its source going away and coming back.

use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::programs::{clip, ffmpeg_sends};
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{Sample, ffmpeg_http, ffmpeg_rtsp, plays, scene, wait_for};
use serde_json::json;

const STREAM: Shape = Shape::of_rate(2_000_000);
const PUSHED: u16 = 25;
const EACH: usize = 25;

fn configuration() -> String {
    let mut text = listen() + "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nring = \"8 MB\"\n";
    for port in (7000..).take(usize::from(PUSHED)) {
        text += &format!("[[sinks]]\nstream = \"live\"\nto = \"udp://{PLAYER}:{port}\"\n");
    }
    text
}

/// A hundred receivers of the stream, a quarter of each kind, all of them receiving.
fn crowd(paths: &Paths, relay: &Relay<'_>) -> Result<Crowd> {
    let receivers = paths.players.run(|| -> Result<Vec<Receiver>> {
        let target = Target::new("live");
        let pushed = (7000..7000 + PUSHED).map(|port| Receiver::open(How::Udp(port), &target));
        let mut receivers = pushed.collect::<Result<Vec<_>>>()?;
        for how in [How::Http, How::RtspTcp, How::RtspUdp] {
            receivers.extend(Receiver::open_many(EACH, how, &target)?);
        }
        Ok(receivers)
    })?;
    let count = receivers.len();
    let crowd = Crowd::start(receivers, Duration::from_millis(5))?;
    relay.wait_receivers("live", count)?;
    wait_for("every receiver receives", || {
        Ok(crowd.split()?.meters.iter().all(|meter| meter.first.is_some()))
    })?;
    Ok(crowd)
}

#[test]
fn a_hundred_receivers_lose_nothing_while_the_configuration_changes() -> Result<()> {
    let Some(paths) = scene("reload", &[])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    let crowd = crowd(&paths, &relay)?;

    // By SIGHUP: another stream and another sink come.
    let more = "[streams.other]\nsource = \"push\"\n[[sinks]]\nstream = \"live\"\n";
    relay.reload(&format!("{}{more}to = \"udp://{PLAYER}:7900\"\n", configuration()))?;
    wait_for("the new stream is there", || Ok(relay.stream("other").is_ok()))?;
    // By the API: they go again.
    std::fs::write(relay.configuration_file(), configuration())?;
    relay.post("/api/v1/reload", &json!({}))?;
    wait_for("the new stream is gone", || Ok(relay.stream("other").is_err()))?;
    // A configuration that cannot be is refused as a whole.
    std::fs::write(relay.configuration_file(), "[streams.live]\nsource = \"push\"\nrign = \"8 MB\"\n")?;
    let refusal = relay.post("/api/v1/reload", &json!({})).expect_err("an unknown key");
    ensure!(format!("{refusal:#}").contains("rign"), "the error does not name the key: {refusal:#}");

    let before = sender.sent();
    wait_for("a second more was sent", || Ok(sender.sent() > before + 190))?;
    crowd.split()?.all_unharmed()?;
    relay.healthy()
}

#[test]
fn receivers_stay_when_the_publisher_dies_and_comes_back() -> Result<()> {
    let Some(paths) = scene("publisher restart", &["ffmpeg"])? else { return Ok(()) };
    let pushed = listen() + "[streams.live]\nsource = \"push\"\nsource_timeout = \"1 s\"\n";
    let udp =
        format!("{}[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nsource_timeout = \"1 s\"\n", listen());
    let to_rtsp = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/live");
    let to_udp = format!("-f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    let cases = [
        (pushed, ffmpeg_sends(&Sample::H264Mp4.file()?, &to_rtsp), &[How::RtspTcp, How::RtspUdp][..]),
        (udp, ffmpeg_sends(&clip(), &to_udp), &[How::Http, How::RtspTcp, How::RtspUdp][..]),
    ];
    for (configuration, publisher, hows) in cases {
        let publisher = publisher.within(&paths.source);
        let mut relay = Relay::start(&paths.relay, &configuration)?;
        let publishing = publisher.start()?;
        relay.wait_up("live")?;
        let receivers = paths.players.run(|| {
            hows.iter().map(|how| Receiver::open(*how, &Target::new("live"))).collect::<Result<Vec<_>>>()
        })?;
        let crowd = Crowd::start(receivers, Duration::ZERO)?;
        let all_receive = || Ok(crowd.split()?.meters.iter().all(|meter| meter.bytes > 0));
        wait_for("all receive", all_receive)?;

        publishing.signal(Signal::SIGKILL)?;
        drop(publishing);
        relay.wait_stream("live", "announced as gone", |state| state["source"]["up"] == false)?;
        crowd.split()?;
        let _again = publisher.start()?;
        relay.wait_stream("live", "back", |state| state["source"]["up"] == true)?;
        wait_for("all receive again", all_receive)?;
        let ended: Vec<_> = crowd.split()?.meters.into_iter().filter_map(|meter| meter.ended).collect();
        ensure!(ended.is_empty(), "receivers were cut: {ended:?}");
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn receivers_that_die_disturb_none() -> Result<()> {
    let Some(paths) = scene("kill -9 of receivers", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    let crowd = crowd(&paths, &relay)?;
    let all = usize::from(PUSHED) + 3 * EACH;

    let doomed =
        [ffmpeg_http("live", 9999), ffmpeg_rtsp("live", "tcp", 9999), ffmpeg_rtsp("live", "udp", 9999)];
    let doomed = doomed.iter().map(|program| plays(&paths, program)).collect::<Result<Vec<_>>>()?;
    relay.wait_receivers("live", all + doomed.len())?;
    doomed.iter().try_for_each(|player| player.signal(Signal::SIGKILL))?;
    relay.wait_receivers("live", all)?;
    let before = sender.sent();
    wait_for("a second more was sent", || Ok(sender.sent() > before + 190))?;
    crowd.split()?.all_unharmed()?;
    relay.healthy()
}

#[test]
fn a_receiver_that_stops_reading_is_dropped_in_the_end_and_hurts_none() -> Result<()> {
    let Some(paths) = scene("hopeless receiver", &["ffmpeg"])? else { return Ok(()) };
    let hopeless = "ring = \"1 MB\"\nhopeless_after = \"2 s\"\n";
    let configuration = configuration().replace("ring = \"8 MB\"\n", hopeless);
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    // Faster, so that what the kernel buffers for a stopped receiver is soon full.
    let _sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), Shape::of_rate(6_000_000))?;
    relay.wait_up("live")?;
    let crowd = crowd(&paths, &relay)?;
    let all = usize::from(PUSHED) + 3 * EACH;

    let stopped = [ffmpeg_http("live", 99_999), ffmpeg_rtsp("live", "tcp", 99_999)];
    let stopped = stopped.iter().map(|program| plays(&paths, program)).collect::<Result<Vec<_>>>()?;
    relay.wait_receivers("live", all + stopped.len())?;
    crowd.split()?;
    stopped.iter().try_for_each(|player| player.signal(Signal::SIGSTOP))?;
    relay.wait_receivers("live", all)?;
    crowd.split()?.all_unharmed()?;
    let state = relay.stream("live")?;
    let drops = state["out_drops"].as_object().map_or(0, serde_json::Map::len);
    ensure!(drops > 0, "what the stopped receivers missed is not counted: {}", state["out_drops"]);
    relay.healthy()
}
