//! Services with real programs: branches are decoded by players, views by clients that ask for them, and
//! all of it changes while packets flow.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::net::RELAY_OUT;
use outflow_labs::net::{PLAYER, RELAY_IN};
use outflow_labs::process::Program;
use outflow_labs::programs::{ffmpeg_decodes, ffmpeg_sends};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    PATIENCE, Sample, all_play_clean, ends_clean, ffmpeg_rtsp, plays, scene, wait_for,
};
use outflow_rtp::PlainHeader;
use serde_json::json;

const PICTURES: u32 = 50;
const WATERMARK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/prebuilt/watermark.wasm");
const GRAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/plugins/prebuilt/gray.wasm");

fn configuration() -> String {
    listen()
        + &format!(
            r#"
[streams.live]
source = "push"
[streams.live.elements.thin]
element = "filter"
kinds = ["header", "intra", "data"]
[streams.live.elements.mark]
element = "wasm"
file = "{WATERMARK}"
config = "outflow"
context = "plugins"
[streams.live.branches.keys]
input = "thin"
[streams.live.branches.marked]
input = "mark"
[streams.live.branches.all]
services = ["pass"]
"#
        )
}

fn publisher() -> Result<Program> {
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/live");
    Ok(ffmpeg_sends(&Sample::H264Mp4.file()?, &to))
}

fn over_http(query: &str, pictures: u32) -> Program {
    ffmpeg_decodes(&format!("-i http://{RELAY_OUT}:{HTTP_PORT}/live.ts?{query}"), pictures)
}

#[test]
fn branches_play_to_all_that_ask_for_them() -> Result<()> {
    let Some(paths) = scene("branches in players", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _publishing = publisher()?.within(&paths.source).start()?;
    relay.wait_up("live")?;
    all_play_clean(
        &paths,
        &[
            ffmpeg_rtsp("live?branch=marked", "udp", PICTURES),
            ffmpeg_rtsp("live?branch=all", "tcp", PICTURES),
            ffmpeg_rtsp("live?branch=keys", "tcp", 2),
            over_http("branch=marked", PICTURES),
            over_http("branch=all", PICTURES),
        ],
    )?;
    let state = relay.stream("live")?;
    let elements = state["elements"].as_array().context("elements")?;
    let packets = |name: &str, key: &str| {
        let element = elements.iter().find(|element| element["name"] == name);
        element.and_then(|element| element[key].as_u64()).unwrap_or(0)
    };
    ensure!(packets("thin", "packets_out") < packets("thin", "packets_in") / 2, "{state:#}");
    ensure!(packets("mark", "packets_out") == packets("mark", "packets_in"), "{state:#}");
    ensure!(packets("mark", "packets_in") > 0 && packets("mark", "faults") == 0, "{state:#}");
    let unknown = relay.get("/live.ts?branch=nix").err().context("there is no such branch")?;
    ensure!(format!("{unknown:#}").contains("there are all, keys, marked"), "{unknown:#}");
    relay.healthy()
}

#[test]
fn services_change_while_players_play_and_bad_ones_are_put_back() -> Result<()> {
    let Some(paths) = scene("services changed", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _publishing = publisher()?.within(&paths.source).start()?;
    relay.wait_up("live")?;
    let players = [ffmpeg_rtsp("live?branch=all", "udp", 200), ffmpeg_rtsp("live?branch=all", "tcp", 200)];
    let playing = players.iter().map(|player| plays(&paths, player)).collect::<Result<Vec<_>>>()?;
    relay.wait_receivers("live", 2)?;
    let path = "/api/v1/streams/live/services";
    for round in 0..20 {
        let context = ["a", "b"][round % 2];
        let element = json!({ "element": "pass", "context": context });
        let services = json!({
            "elements": { "here": { "element": "pass" } },
            "branches": { "all": { "input": "here", "services": [element] } },
        });
        relay.put(path, &services)?;
        relay.put(path, &json!({ "branches": { "all": { "services": ["pass"] } } }))?;
    }
    // It cannot work on H.264: those before it come back by themselves.
    let unfit = json!({
        "elements": { "gray": { "element": "wasm", "file": GRAY } },
        "branches": { "all": { "input": "gray" } },
    });
    // Receivers of a branch that carries nothing any more would end: it is looked at without any.
    playing.into_iter().try_for_each(ends_clean)?;
    relay.put(path, &unfit)?;
    let back =
        relay.wait_stream("live", "back with what worked", |state| !state["services_note"].is_null())?;
    let note = back["services_note"].as_str().unwrap_or_default();
    ensure!(note.contains("put back") && note.contains("'gray'"), "{note}");
    let again = plays(&paths, &ffmpeg_rtsp("live?branch=all", "tcp", PICTURES))?;
    ends_clean(again)?;
    let refused = json!({ "branches": { "all": { "services": ["gary"] } } });
    let refused = relay.put(path, &refused).err().context("there is no such element")?;
    ensure!(format!("{refused:#}").contains("did you mean \\\"gray\\\""), "{refused:#}");
    relay.healthy()
}

fn image(width: usize, height: usize) -> Vec<u8> {
    let mut image = format!("P6\n{width} {height}\n255\n").into_bytes();
    image.extend((0..width * height * 3).map(|at| (at % 251) as u8));
    image
}

#[test]
fn images_come_as_their_receivers_want_to_see_them() -> Result<()> {
    let Some(paths) = scene("views of images", &[])? else { return Ok(()) };
    let configuration = listen()
        + &format!(
            "[streams.images]\nsource = \"udp://0.0.0.0:5000?format=ppm\"\n\
             [[sinks]]\nstream = \"images\"\nto = \"udp://{PLAYER}:6000\"\n\
             [[sinks]]\nstream = \"images\"\nto = \"udp://{PLAYER}:6001\"\nname = \"small\"\n\
             view = \"gray=1\"\n"
        );
    let mut relay = Relay::start(&paths.relay, &configuration)?;
    let bind = |port| paths.players.run(|| UdpSocket::bind((PLAYER, port)));
    let (whole, small) = (bind(6000)?, bind(6001)?);
    let source = paths.source.run(|| UdpSocket::bind("0.0.0.0:0"))?;
    for socket in [&whole, &small] {
        socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    }
    let sent = image(160, 120);
    let arrives = |socket: &UdpSocket, head: &[u8]| -> Result<bool> {
        source.send_to(&sent, (RELAY_IN, 5000))?;
        let mut buffer = vec![0; 65_536];
        let length = socket.recv(&mut buffer).unwrap_or(0);
        Ok(buffer[..length].starts_with(head))
    };
    wait_for("the image as it is", || arrives(&whole, b"P6\n160 120\n"))?;
    wait_for("the image without colour", || arrives(&small, b"P5\n160 120\n"))?;
    let state = relay.wait_receivers("images", 2)?;
    let receivers = state["receivers"].as_array().context("receivers")?;
    let id = receivers.iter().find(|one| one["name"] == "small").context("the sink")?["id"].clone();
    relay.patch(&format!("/api/v1/receivers/{id}"), &json!({ "view": "part=80x60+0+0&size=40x30" }))?;
    wait_for("a part of it, smaller", || arrives(&small, b"P6\n40 30\n"))?;
    relay.healthy()
}

/// A frame of raw video (RFC 4175), so large that it takes long to make it smaller.
const WIDTH: usize = 3840;
const HEIGHT: usize = 2160;
/// Lines in a datagram.
const LINES: usize = 5;

/// A packet of a frame that is one colour: its lines from `from` on.
fn raw_video(timestamp: u32, sequence: u16, from: usize) -> Vec<u8> {
    let marker = from + LINES >= HEIGHT;
    let header = PlainHeader { marker, payload_type: 96, sequence, timestamp, ssrc: 7 };
    let mut packet = [&header.emit()[..], &[0, 0]].concat();
    for line in from..from + LINES {
        let more = if line + 1 < from + LINES { 0x8000 } else { 0 };
        for value in [(WIDTH * 3) as u16, line as u16, more] {
            packet.extend(value.to_be_bytes());
        }
    }
    packet.resize(packet.len() + LINES * WIDTH * 3, 99);
    packet
}

/// A stream of such frames, of which an element of the relay's own makes smaller ones; and one that is passed on, by the
/// same worker.
fn slow_beside_another(sdp: &Path) -> Result<String> {
    let shape = format!("sampling=RGB;width={WIDTH};height={HEIGHT};depth=8;colorimetry=BT601-5");
    let description = format!(
        "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 0.0.0.0\nt=0 0\nm=video 5010 RTP/AVP 96\n\
         a=rtpmap:96 raw/90000\na=fmtp:96 {shape}\n"
    );
    std::fs::write(sdp, description)?;
    let configuration = format!(
        r#"
[limits]
workers = 1
[streams.slow]
source = "rtp://0.0.0.0:5010"
sdp = "{}"
source_timeout = "60 s"
[streams.slow.elements.half]
element = "shrink"
factor = 2
memory = "gather"
[streams.slow.branches.small]
input = "half"
[[sinks]]
stream = "slow"
branch = "small"
to = "rtp://{PLAYER}:7000"
[streams.other]
source = "udp://0.0.0.0:5000?format=data"
source_timeout = "60 s"
[[sinks]]
stream = "other"
to = "udp://{PLAYER}:6000"
"#,
        sdp.display()
    );
    Ok(listen() + &configuration)
}

#[test]
fn an_element_whose_turn_is_too_long_leaves_its_worker_to_the_other_streams() -> Result<()> {
    let Some(paths) = scene("an element that takes long", &[])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut relay = Relay::start(&paths.relay, &slow_beside_another(&folder.path().join("slow.sdp"))?)?;
    let player = paths.players.run(|| UdpSocket::bind((PLAYER, 6000)))?;
    player.set_read_timeout(Some(PATIENCE))?;
    let source = paths.source.run(|| UdpSocket::bind("0.0.0.0:0"))?;
    let (mut sequence, mut numbers) = (0_u16, 0_u32..);
    // A frame, and between its packets those of the other stream, each of which comes.
    let mut frame = |timestamp: u32| -> Result<()> {
        for from in (0..HEIGHT).step_by(LINES) {
            source.send_to(&raw_video(timestamp, sequence, from), (RELAY_IN, 5010))?;
            sequence = sequence.wrapping_add(1);
            let number = numbers.next().unwrap_or_default();
            source.send_to(&number.to_be_bytes(), (RELAY_IN, 5000))?;
            let mut bytes = [0; 4];
            player.recv(&mut bytes).with_context(|| format!("packet {number} of the other stream"))?;
            ensure!(u32::from_be_bytes(bytes) == number, "{bytes:?} instead of {number}");
        }
        Ok(())
    };
    let half = || Ok::<_, anyhow::Error>(relay.stream("slow")?["elements"][0].clone());
    let mut timestamp = 0;
    wait_for("the element is moved", || {
        timestamp += 90_000;
        frame(timestamp)?;
        Ok(half()?["context"] == "half")
    })?;
    let rules = relay.json("/api/v1/rules")?;
    let decisions = rules["decisions"].as_array().context("decisions")?;
    let moved = decisions.last().context("a rule moved it")?;
    ensure!(moved["rule"] == "(own context: long turns)" && moved["failed"].is_null(), "{rules:#}");
    let why = moved["why"].as_str().unwrap_or_default();
    ensure!(why.starts_with("turns of more than 20 ms: "), "it was not one turn that was enough: {why}");
    let before = half()?["long_turns"].as_u64();
    wait_for("it works in its context", || {
        timestamp += 90_000;
        frame(timestamp)?;
        Ok(half()?["long_turns"].as_u64() > before)
    })?;
    ensure!(half()?["context"] == "half", "{:#}", half()?);
    relay.healthy()
}
