//! Simulcast: three encodings of one picture are the levels of a stream, and real players change between them.

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{Paths, RELAY_IN};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{ffmpeg, ffmpeg_decodes};
use outflow_labs::relay::{RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    all_play_clean, ends_clean, ffmpeg_rtsp, http_url, plays, rtsp_url, scene, wait_for,
};
use serde_json::{Value, json};

/// The renditions by name, and how wide their pictures are.
const RENDITIONS: [(&str, u32); 3] = [("high", 640), ("middle", 320), ("low", 160)];
const PER_SECOND: usize = 25;
/// Half a second to a key frame.
const PICTURES: &str = "-re -f lavfi -i testsrc2=size=640x360:rate=25 -f lavfi -i sine=sample_rate=48000";
const H264: &str = "-c:v libx264 -preset ultrafast -tune zerolatency -g 12 -c:a aac -b:a 64k";

fn configuration(source: impl Fn(usize) -> String) -> String {
    let stream = |(index, (name, _)): (usize, &(&str, u32))| {
        format!("[streams.{name}]\nsource = \"{}\"\nsource_timeout = \"500 ms\"\n", source(index))
    };
    let streams: String = RENDITIONS.iter().enumerate().map(stream).collect();
    listen() + &streams + "[streams.cam]\nsource = [\"high\", \"middle\", \"low\"]\n"
}

/// An encoder of one rendition. What a decoder needs to know beforehand is only said in the description.
fn published(paths: &Paths, index: usize) -> Result<Running> {
    let (name, width) = RENDITIONS[index];
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/{name}");
    ffmpeg(&format!("{PICTURES} -vf scale={width}:-2 {H264} {to}")).within(&paths.source).start()
}

/// The same as a transport stream.
fn sent(paths: &Paths, index: usize) -> Result<Running> {
    let (_, width) = RENDITIONS[index];
    let to = format!("-f mpegts udp://{RELAY_IN}:{}?pkt_size=1316", 5000 + index);
    ffmpeg(&format!("{PICTURES} -vf scale={width}:-2 {H264} {to}")).within(&paths.source).start()
}

/// A relay with all three renditions.
fn all_up<'p>(
    paths: &'p Paths,
    configuration: &str,
    encode: impl Fn(&Paths, usize) -> Result<Running>,
) -> Result<(Relay<'p>, Vec<Running>)> {
    let relay = Relay::start(&paths.relay, configuration)?;
    let encoders = (0..RENDITIONS.len()).map(|index| encode(paths, index)).collect::<Result<Vec<_>>>()?;
    for (name, _) in RENDITIONS {
        relay.wait_up(name)?;
    }
    wait_for("all renditions", || Ok(relay.stream("cam")?["source"]["format"] == "3 of 3 renditions"))?;
    Ok((relay, encoders))
}

/// ffprobe showing how wide each picture is, as soon as it has it.
fn widths(input: &str) -> Program {
    let show = "ffprobe -hide_banner -loglevel error -select_streams v -show_entries frame=width -of csv=p=0";
    Program::words(&format!("stdbuf -oL {show} {input}"))
}

/// Waits until such a program has shown pictures of these widths, in this order and no others, and of the last
/// one a second of them.
fn has_shown(playing: &Running, expected: &[u32]) -> Result<()> {
    let shown = || -> Result<Vec<u32>> {
        let text = playing.stdout();
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|text| !text.is_empty());
        numbers.map(|text| Ok(text.parse()?)).collect()
    };
    let mut widths = Vec::new();
    wait_for(&format!("{expected:?} are shown"), || {
        widths = shown()?;
        let newest = widths.iter().rev().take_while(|width| expected.last() == Some(width)).count();
        widths.dedup();
        Ok(widths == expected && newest >= PER_SECOND)
    })
    .with_context(|| format!("{widths:?} were shown by {}", playing.account()))?;
    ensure!(playing.stderr().trim().is_empty(), "{}", playing.account());
    Ok(())
}

/// The path of the player of the stream, in the API.
fn player(relay: &Relay) -> Result<String> {
    let mut id = None;
    wait_for("the player", || {
        let receivers = relay.json("/api/v1/receivers?stream=cam")?;
        id = receivers.as_array().and_then(|all| all.first()?["id"].as_u64());
        Ok(id.is_some())
    })?;
    Ok(format!("/api/v1/receivers/{}", id.context("the player")?))
}

fn there_is_no_player(relay: &Relay) -> Result<()> {
    wait_for("the player to leave", || Ok(relay.json("/api/v1/receivers?stream=cam")? == json!([])))
}

/// A player by each of these ways is taken through all levels, and shows what it is told to.
fn players_change(paths: &Paths, relay: &Relay, inputs: &[String]) -> Result<()> {
    for input in inputs {
        there_is_no_player(relay)?;
        let playing = widths(input).within(&paths.players).start()?;
        let (path, mut shown) = (player(relay)?, vec![640]);
        for (level, width) in [(3, 160), (1, 640), (2, 320)] {
            has_shown(&playing, &shown).or_else(|error| told(relay, error))?;
            relay.patch(&path, &json!({ "level": level }))?;
            shown.push(width);
        }
        has_shown(&playing, &shown).or_else(|error| told(relay, error))?;
    }
    Ok(())
}

/// What a relay says of the stream and of its players, along with an error.
fn told(relay: &Relay, error: anyhow::Error) -> Result<()> {
    let (stream, players) = (relay.stream("cam")?, relay.json("/api/v1/receivers?stream=cam")?);
    Err(error.context(format!("the relay says {stream:#}, and of players {players:#}")))
}

fn by_rtsp(transport: &str) -> String {
    format!("-rtsp_transport {transport} {}", rtsp_url("cam"))
}

#[test]
fn every_rendition_plays_and_players_change_between_them() -> Result<()> {
    let Some(paths) = scene("renditions", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    // Where the kernel can send to players by UDP, it does.
    let text = configuration(|_| "push".to_owned()) + "[fanout]\nudp = \"tc\"\n";
    let (mut relay, _encoders) = all_up(&paths, &text, published)?;
    for (level, (_, width)) in (1..).zip(RENDITIONS) {
        let url = format!("-rtsp_transport tcp {}?level={level}", rtsp_url("cam"));
        has_shown(&widths(&url).within(&paths.players).start()?, &[width])?;
        there_is_no_player(&relay)?;
    }
    let players =
        [ffmpeg_rtsp("cam?level=2", "udp", 50), ffmpeg_rtsp("cam?level=3", "tcp", 50), http_level(2, 50)];
    all_play_clean(&paths, &players)?;
    let rates: Vec<u64> = serde_json::from_value(relay.stream("cam")?["levels"].clone())?;
    ensure!(rates.len() == 3 && rates[0] > rates[1] && rates[1] > rates[2] && rates[2] > 0, "{rates:?}");
    players_change(&paths, &relay, &[by_rtsp("udp"), by_rtsp("tcp"), http_url("cam")])?;
    relay.healthy()
}

fn http_level(level: u8, pictures: u32) -> Program {
    ffmpeg_decodes(&format!("-i {}?level={level}", http_url("cam")), pictures)
}

#[test]
fn renditions_of_transport_streams_play_and_change() -> Result<()> {
    let Some(paths) = scene("renditions of MPEG-TS", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let source = |index| format!("udp://0.0.0.0:{}", 5000 + index);
    let (mut relay, _encoders) = all_up(&paths, &configuration(source), sent)?;
    all_play_clean(&paths, &[http_level(1, 50), http_level(3, 50), ffmpeg_rtsp("cam?level=2", "udp", 50)])?;
    players_change(&paths, &relay, &[http_url("cam"), by_rtsp("udp")])?;
    relay.healthy()
}

#[test]
fn one_that_loses_its_rendition_is_served_by_the_next_until_it_is_back() -> Result<()> {
    let Some(paths) = scene("renditions that go away", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let (mut relay, mut encoders) = all_up(&paths, &configuration(|_| "push".to_owned()), published)?;
    let playing = widths(&by_rtsp("tcp")).within(&paths.players).start()?;
    has_shown(&playing, &[640])?;
    drop(encoders.remove(0));
    let there = |relay: &Relay, count: u32| -> Result<bool> {
        Ok(relay.stream("cam")?["source"]["format"] == format!("{count} of 3 renditions"))
    };
    wait_for("the first to be missed", || there(&relay, 2))?;
    has_shown(&playing, &[640, 320])?;
    encoders.push(published(&paths, 0)?);
    wait_for("it to be back", || there(&relay, 3))?;
    has_shown(&playing, &[640, 320, 640])?;
    relay.healthy()
}

#[test]
fn players_do_not_notice_which_worker_serves_them() -> Result<()> {
    let Some(paths) = scene("renditions on two workers", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let text = configuration(|_| "push".to_owned()) + "[limits]\nworkers = 2\nsplit = 1\n";
    let (mut relay, _encoders) = all_up(&paths, &text, published)?;
    let first = plays(&paths, &ffmpeg_rtsp("cam", "tcp", 175))?;
    let path = player(&relay)?;
    let second = widths(&by_rtsp("udp")).within(&paths.players).start()?;
    let mut other = None;
    wait_for("the second player", || {
        let receivers = relay.json("/api/v1/receivers?stream=cam")?;
        let is_other = |receiver: &&Value| !path.ends_with(&format!("/{}", receiver["id"]));
        other = receivers.as_array().and_then(|all| all.iter().find(is_other)?["id"].as_u64());
        Ok(other.is_some())
    })?;
    has_shown(&second, &[640])?;
    relay.patch(&format!("/api/v1/receivers/{}", other.context("another")?), &json!({ "level": 3 }))?;
    has_shown(&second, &[640, 160])?;
    let process = relay.process();
    ensure!((process.stdout() + &process.stderr()).contains("served by one more worker"), "none helped");
    ends_clean(first)?;
    relay.healthy()
}
