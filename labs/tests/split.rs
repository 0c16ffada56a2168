//! A stream that two workers serve, because it has more receivers than one is to have.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::media::{Sender, Shape};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN};
use outflow_labs::process::processors;
use outflow_labs::programs::ffmpeg_sends;
use outflow_labs::receive::{Crowd, How, Meter, Receiver, Target};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    Sample, all_play_clean, ffmpeg_http, ffmpeg_rtsp, gst_rtsp_h264, scene, skipped, wait_for,
};
use serde_json::json;

const STREAM: Shape = Shape::of_rate(2_000_000);
const PICTURES: u32 = 50;
/// Receivers of a stream that one worker serves before the other helps.
const SPLIT: usize = 4;
const CONFIGURED: usize = 3;

fn configuration() -> String {
    let mut text = listen() + &format!("[limits]\nworkers = 2\nsplit = {SPLIT}\n");
    text += "[streams.live]\nsource = \"udp://0.0.0.0:5000\"\nsource_timeout = \"1 s\"\n";
    for (port, scheme) in [(7000, "udp"), (7010, "udp"), (7020, "rtp")] {
        text += &format!("[[sinks]]\nstream = \"live\"\nto = \"{scheme}://{PLAYER}:{port}\"\n");
    }
    text
}

/// Whether a second worker has been asked to help.
fn is_split(relay: &mut Relay<'_>) -> bool {
    let process = relay.process();
    (process.stdout() + &process.stderr()).contains("served by one more worker")
}

/// Three receivers that the configuration names, then three of each kind that asks, then two that
/// the API adds: with both workers there are receivers of every kind.
fn crowd(paths: &Paths, relay: &Relay<'_>) -> Result<Crowd> {
    let open = |how| paths.players.run(|| Receiver::open(how, &Target::new("live")));
    let pushed = [How::Udp(7000), How::Udp(7010), How::Rtp(7020), How::Udp(7030), How::Rtp(7040)];
    let mut receivers = pushed.map(open).into_iter().collect::<Result<Vec<_>>>()?;
    for _ in 0..3 {
        for how in [How::Http, How::RtspTcp, How::RtspUdp] {
            receivers.push(open(how)?);
        }
    }
    for (port, scheme) in [(7030, "udp"), (7040, "rtp")] {
        relay.post("/api/v1/streams/live/sinks", &json!({ "to": format!("{scheme}://{PLAYER}:{port}") }))?;
    }
    let count = receivers.len();
    let crowd = Crowd::start(receivers, Duration::from_millis(5))?;
    relay.wait_receivers("live", count)?;
    Ok(crowd)
}

/// Waits until everyone has got something since the last look. Returns what, at each look meanwhile.
fn all_receive(crowd: &Crowd) -> Result<Vec<Vec<Meter>>> {
    let mut looks: Vec<Vec<Meter>> = Vec::new();
    wait_for("all receive", || {
        looks.push(crowd.split()?.meters);
        let receives = |number: usize| looks.iter().any(|meters| meters[number].bytes > 0);
        Ok((0..looks[0].len()).all(receives))
    })?;
    Ok(looks)
}

/// Everyone has got all that was sent, in order, for about a second.
fn no_receiver_notices(crowd: &Crowd, sender: &Sender) -> Result<()> {
    let before = sender.sent();
    wait_for("a second more was sent", || Ok(sender.sent() > before + 190))?;
    crowd.split()?.all_unharmed()
}

#[test]
fn receivers_of_all_kinds_do_not_notice_which_worker_serves_them() -> Result<()> {
    let Some(paths) = scene("a stream on two workers", &[])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let sender = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    relay.wait_up("live")?;
    ensure!(!is_split(&mut relay), "one worker is enough for three receivers");
    let crowd = crowd(&paths, &relay)?;
    ensure!(is_split(&mut relay), "the other worker did not help");
    let mut meters = all_receive(&crowd)?.pop().context("it was looked")?;
    let all = meters.len();
    // The configured ones were there before anyone listened.
    for (number, meter) in meters.drain(CONFIGURED..).enumerate() {
        // The end of the picture before may share a datagram with the key frame's beginning.
        let at_key = meter.first.is_some_and(|first| first.key || first.last);
        ensure!(at_key, "receiver {number} began with {:?}", meter.first);
    }
    no_receiver_notices(&crowd, &sender)?;

    // A receiver comes to each worker, and goes.
    let passing = paths.players.run(|| Receiver::open_many(2, How::RtspTcp, &Target::new("live")))?;
    relay.wait_receivers("live", all + passing.len())?;
    drop(passing);
    relay.wait_receivers("live", all)?;
    no_receiver_notices(&crowd, &sender)?;

    // The configuration changes; what it says of the stream holds for both.
    let more = configuration().replace("source_timeout", "ring = \"2 MB\"\nsource_timeout");
    relay.reload(&format!("{more}[streams.other]\n"))?;
    relay.wait_stream("live", "with a smaller ring", |state| state["ring_bytes_max"] == 2_000_000)?;
    no_receiver_notices(&crowd, &sender)?;

    // The source goes away and comes back.
    drop(sender);
    relay.wait_stream("live", "announced as gone", |state| state["source"]["up"] == false)?;
    crowd.split()?;
    let _again = Sender::start(&paths.source, (RELAY_IN, 5000).into(), STREAM)?;
    for (number, meter) in all_receive(&crowd)?.iter().flat_map(|meters| meters.iter().enumerate()) {
        ensure!(meter.ended.is_none(), "receiver {number} was cut: {:?}", meter.ended);
        // The markers begin again, the numbers of RTP go on.
        let rtp = meter.rtp_lost + meter.rtp_reordered;
        ensure!(rtp == 0, "receiver {number} noticed: {}", meter.summary());
    }
    relay.healthy()
}

#[test]
fn real_players_are_served_by_the_worker_that_helps() -> Result<()> {
    let needs = ["ffmpeg", "gst-launch-1.0"];
    let Some(paths) = scene("real players on a second worker", &needs)? else { return Ok(()) };
    let configuration =
        listen() + &format!("[limits]\nworkers = 2\nsplit = {SPLIT}\n[streams.live]\nsource = \"push\"\n");
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let to_rtsp = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/live");
    let _publishing = ffmpeg_sends(&Sample::H264Mp4.file()?, &to_rtsp).within(&paths.source).start()?;
    relay.wait_up("live")?;
    let here = paths.players.run(|| Receiver::open_many(SPLIT, How::RtspTcp, &Target::new("live")))?;
    let _here = Crowd::start(here, Duration::ZERO)?;
    relay.wait_receivers("live", SPLIT)?;
    let players = [
        ffmpeg_http("live", PICTURES),
        ffmpeg_rtsp("live", "udp", PICTURES),
        ffmpeg_rtsp("live", "tcp", PICTURES),
        gst_rtsp_h264("live", "udp", PICTURES),
    ];
    all_play_clean(&paths, &players)?;
    ensure!(is_split(&mut relay), "the other worker did not help");
    relay.healthy()
}

#[test]
fn pinned_workers_have_a_processor_each_and_everything_else_the_others() -> Result<()> {
    let Some(paths) = scene("pinned workers", &[])? else { return Ok(()) };
    if processors() < 2 {
        skipped("pinned workers", "there is only one processor");
        return Ok(());
    }
    let limits = "[limits]\nworkers = 1\npin_workers = true\n";
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/prebuilt/watermark.wasm");
    let services = format!(
        "[streams.live.elements.mark]\nelement = \"wasm\"\nfile = \"{plugin}\"\n\
         [streams.live.branches.marked]\ninput = \"mark\"\n"
    );
    let text = listen() + limits + "[streams.live]\nsource = \"demo://\"\n" + &services;
    let mut relay = Relay::start_as(&paths.relay, &text, |program| program.on_any_cpu())?;
    relay.wait_up("live")?;
    let (workers, others): (Vec<_>, Vec<_>) =
        relay.process().threads()?.into_iter().partition(|(name, _)| name.starts_with("worker-"));
    ensure!(workers.len() == 1 && workers[0].1.len() == 1, "{workers:?}");
    ensure!(others.len() > 1, "there are other threads: {others:?}");
    // Threads' names have fifteen bytes.
    let has_context = others.iter().any(|(name, _)| name.starts_with("context-plug-in"));
    ensure!(has_context, "the plug-in has no thread of its own: {others:?}");
    for (name, processors) in &others {
        ensure!(processors.is_disjoint(&workers[0].1), "{name} may run on {processors:?}");
    }
    Ok(())
}
