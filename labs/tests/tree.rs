//! Trees of relays: a stream that is asked for comes from the relay that has it, at the level that is wanted, by way
//! of others; and it goes on when one of these dies.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT, SOURCE};
use outflow_labs::process::{Program, Running};
use outflow_labs::programs::{clip, ffmpeg, ffmpeg_decodes, ffmpeg_sends, missing};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, binary, listen};
use outflow_labs::scene::{PATIENCE, scene, skipped, wait_for};
use serde_json::Value;

const PORT: u16 = 7000;

/// The origin is in the middle, and passes packets between the two others on.
fn joined(paths: &Paths) -> Result<()> {
    paths.relay.sysctl("net.ipv4.ip_forward", "1")?;
    paths.source.ip(&["route", "add", "10.66.2.0/24", "via", &RELAY_IN.to_string()])?;
    paths.players.ip(&["route", "add", "10.66.1.0/24", "via", &RELAY_OUT.to_string()])?;
    Ok(())
}

/// A relay of a tree, with what else stands in its `[tree]` and after that.
/// All but the origin are near each other, so that each stays with the parent that it begins with.
fn of_tree(name: &str, address: Ipv4Addr, more: &str) -> String {
    let east = if name == "origin" { 0 } else { 3000 };
    listen()
        + &format!("poc = \"0.0.0.0:{PORT}\"\n[poc]\nencryption = \"off\"\n")
        + &format!(
            "[tree]\nname = \"{name}\"\naddress = \"{address}:{PORT}\"\nlocation = [{east}, 0]\n{more}"
        )
}

fn parents(addresses: &[Ipv4Addr]) -> String {
    let all: Vec<_> = addresses.iter().map(|address| format!("\"{address}:{PORT}\"")).collect();
    format!("parents = [{}]\n", all.join(", "))
}

fn publishes(paths: &Paths, stream: &str) -> Result<Running> {
    let to = format!("-f mpegts -method PUT http://127.0.0.1:{HTTP_PORT}/{stream}.ts");
    ffmpeg_sends(&clip(), &to).within(&paths.relay).start()
}

fn http(stream: &str) -> String {
    format!("-i http://127.0.0.1:{HTTP_PORT}/{stream}.ts")
}

/// `outflow tree`, asked of the relay in this namespace.
fn tree(paths: &Paths, words: &str) -> Result<String> {
    let line = format!("{} tree http://127.0.0.1:{HTTP_PORT} {words}", binary()?.display());
    Ok(Program::words(&line).within(&paths.players).finish(PATIENCE)?.stdout)
}

/// The line of a relay, and how far it is indented.
fn line(tree: &str, relay: &str) -> Option<(usize, String)> {
    let line = tree.lines().find(|line| line.trim_start().starts_with(&format!("{relay}: ")))?;
    Some((line.len() - line.trim_start().len(), line.to_owned()))
}

/// The first receiver of a stream that is not configured.
fn first_receiver(relay: &Relay<'_>, stream: &str) -> Result<Value> {
    wait_for("the stream to be there", || Ok(names(relay)?.iter().any(|name| name == stream)))?;
    Ok(relay.wait_receivers(stream, 1)?["receivers"][0]["id"].clone())
}

fn names(relay: &Relay<'_>) -> Result<Vec<String>> {
    let streams = relay.json("/api/v1/streams")?;
    let streams = streams.as_array().context("streams")?;
    Ok(streams.iter().filter_map(|stream| stream["name"].as_str().map(str::to_owned)).collect())
}

#[test]
fn a_stream_comes_from_relay_to_relay_while_somebody_wants_it() -> Result<()> {
    let Some(paths) = scene("a tree of three relays", &["ffmpeg"])? else { return Ok(()) };
    joined(&paths)?;
    let source = "token = \"among-relays\"\n[streams.live]\nsource = \"push\"\n[access]\nplay = [\"none\"]\n";
    let below = |address| format!("{}token = \"among-relays\"\n", parents(&[address]));
    let mut origin = Relay::start(&paths.relay, &of_tree("origin", RELAY_IN, source))?;
    let mut region = Relay::start(&paths.source, &of_tree("region", SOURCE, &below(RELAY_IN)))?;
    let mut edge = Relay::start(&paths.players, &of_tree("edge", PLAYER, &below(SOURCE)))?;
    let _publishing = publishes(&paths, "live")?;
    origin.wait_up("live")?;
    for play in [http("live"), format!("-rtsp_transport tcp -i rtsp://127.0.0.1:{RTSP_PORT}/live")] {
        ffmpeg_decodes(&play, 50).within(&paths.players).finish(PATIENCE)?;
    }
    let player = ffmpeg_decodes(&http("live"), 100_000).within(&paths.players).start()?;
    first_receiver(&edge, "live")?;
    let shown = tree(&paths, "")?;
    let depths = ["origin", "region", "edge"].map(|relay| line(&shown, relay).map(|(depth, _)| depth));
    ensure!(depths == [Some(2), Some(4), Some(6)], "{shown}");
    let drawn = tree(&paths, "--dot --stream live")?;
    for edge in ["\"origin\" -> \"region\"", "\"region\" -> \"edge\""] {
        ensure!(drawn.contains(edge), "no {edge} in {drawn}");
    }
    let none = ffmpeg(&format!("-v error {} -f null -", http("nothing"))).within(&paths.players).start()?;
    ensure!(none.succeed(PATIENCE).is_err(), "none has such a stream");
    drop(player);
    wait_for("the stream to be let go", || Ok(names(&edge)?.is_empty() && names(&region)?.is_empty()))?;
    wait_for("none to receive it", || Ok(origin.stream("live")?["receivers"] == Value::Array(Vec::new())))?;
    for relay in [&mut origin, &mut region, &mut edge] {
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn a_parent_that_dies_is_replaced_and_receivers_stay() -> Result<()> {
    let Some(paths) = scene("a parent that dies", &["ffmpeg"])? else { return Ok(()) };
    joined(&paths)?;
    let origin = of_tree("origin", RELAY_IN, "[streams.live]\nsource = \"push\"\n");
    let mut origin = Relay::start(&paths.relay, &origin)?;
    let region = Relay::start(&paths.source, &of_tree("region", SOURCE, &parents(&[RELAY_IN])))?;
    let edge = of_tree("edge", PLAYER, &parents(&[SOURCE, RELAY_OUT]));
    let mut edge = Relay::start(&paths.players, &edge)?;
    let _publishing = publishes(&paths, "live")?;
    origin.wait_up("live")?;
    let _player = ffmpeg_decodes(&http("live"), 100_000).within(&paths.players).start()?;
    let receiver = first_receiver(&edge, "live")?;
    ensure!(tree(&paths, "")?.contains("    region: "), "the region is between");
    let packets =
        |edge: &Relay<'_>| edge.stream("live").map(|s| s["source"]["packets"].as_u64().unwrap_or(0));
    drop(region);
    wait_for("the origin to be the parent", || {
        Ok(line(&tree(&paths, "")?, "edge").is_some_and(|(depth, _)| depth == 4))
    })?;
    let before = packets(&edge)?;
    wait_for("packets to come", || Ok(packets(&edge)? > before + 100))?;
    let after = edge.stream("live")?["receivers"][0]["id"].clone();
    ensure!(receiver == after, "the receiver was {receiver}, and is {after}");
    origin.healthy()?;
    edge.healthy()
}

/// Starts a player that says what each of `count` pictures was.
fn pictures(paths: &Paths, url: &str, count: u32) -> Result<Running> {
    let line = format!(
        "ffprobe -v error -select_streams v -show_entries packet=data_hash -show_data_hash MD5 -of csv=p=0 \
         -read_intervals %+#{count} {url}"
    );
    Program::words(&line).within(&paths.players).start()
}

#[test]
fn when_a_parent_dies_no_picture_is_repeated() -> Result<()> {
    let what = "pictures when a parent dies";
    let Some(paths) = scene(what, &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    joined(&paths)?;
    let origin = "[streams.ts]\nsource = \"push\"\n[streams.rtp]\nsource = \"push\"\n";
    let mut origin = Relay::start(&paths.relay, &of_tree("origin", RELAY_IN, origin))?;
    let region = Relay::start(&paths.source, &of_tree("region", SOURCE, &parents(&[RELAY_IN])))?;
    let edge = of_tree("edge", PLAYER, &parents(&[SOURCE, RELAY_OUT]));
    let mut edge = Relay::start(&paths.players, &edge)?;
    let encoder = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -c:v libx264 -preset veryfast -g 100 -bf 2 \
                   -sc_threshold 0";
    let ways = [
        format!("-f mpegts -method PUT http://127.0.0.1:{HTTP_PORT}/ts.ts"),
        format!("-f rtsp -rtsp_transport tcp rtsp://127.0.0.1:{RTSP_PORT}/rtp"),
    ];
    let encodes = |to: &String| ffmpeg(&format!("{encoder} {to}")).within(&paths.relay).start();
    let _encoding = ways.iter().map(encodes).collect::<Result<Vec<_>>>()?;
    let names = ["ts", "rtp"];
    names.iter().try_for_each(|name| origin.wait_up(name).map(drop))?;
    let urls = [
        format!("http://127.0.0.1:{HTTP_PORT}/ts.ts"),
        format!("-rtsp_transport tcp rtsp://127.0.0.1:{RTSP_PORT}/rtp"),
    ];
    let players = urls.iter().map(|url| pictures(&paths, url, 250)).collect::<Result<Vec<_>>>()?;
    names.iter().try_for_each(|name| first_receiver(&edge, name).map(drop))?;
    ensure!(tree(&paths, "")?.contains("    region: "), "the region is between");
    // Some pictures, so that there is something to be repeated.
    let packets =
        |name: &str| Ok::<_, anyhow::Error>(edge.stream(name)?["source"]["packets"].as_u64().unwrap_or(0));
    wait_for("some packets", || Ok(packets("ts")? > 100 && packets("rtp")? > 50))?;
    drop(region);
    for (name, player) in names.iter().zip(players) {
        let said = player.succeed(PATIENCE)?.stdout;
        let all: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let unlike: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        ensure!(all.len() >= 250, "{name}: only {} pictures came", all.len());
        ensure!(all.len() == unlike.len(), "{name}: {} pictures came twice", all.len() - unlike.len());
        let peer = edge.stream(name)?["source"]["peer"].to_string();
        ensure!(peer.contains("origin"), "{name} is said to come from {peer}");
    }
    origin.healthy()?;
    edge.healthy()
}

#[test]
fn relays_ask_for_the_best_level_that_is_wanted_below() -> Result<()> {
    let Some(paths) = scene("levels in a tree", &["ffmpeg"])? else { return Ok(()) };
    joined(&paths)?;
    let hold = "hold = \"500 ms\"\n";
    let origin = of_tree("origin", RELAY_IN, "[streams.cam]\nsource = \"push\"\n");
    let mut origin = Relay::start(&paths.relay, &origin)?;
    let mut region = Relay::start(&paths.source, &of_tree("region", SOURCE, &(parents(&[RELAY_IN]) + hold)))?;
    let mut edge = Relay::start(&paths.players, &of_tree("edge", PLAYER, &(parents(&[SOURCE]) + hold)))?;
    let pictures = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 25 -bf 3 -sc_threshold 0 -c:v libx264 \
                    -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
    let to = format!("-f rtsp -rtsp_transport tcp rtsp://127.0.0.1:{RTSP_PORT}/cam");
    let _encoding = ffmpeg(&format!("{pictures} {to}")).within(&paths.relay).start()?;
    origin.wait_up("cam")?;
    let watch = |words: &str| -> Result<Value> {
        let line = format!("{} watch --json --duration 4s --insecure {words}", binary()?.display());
        let done = Program::words(&line).within(&paths.players).start()?.succeed(PATIENCE)?;
        Ok(serde_json::from_str(done.stdout.lines().last().unwrap_or_default())?)
    };
    let frames = |summary: &Value| summary["frames"].as_u64().unwrap_or_default();
    let url = format!("poc://127.0.0.1:{PORT}/cam");
    // One picture in four is needed by others: that is all that comes as far as here.
    let less = watch(&format!("{url}?level=2"))?;
    ensure!(less["lost"] == 0 && frames(&less) > 15, "{less}");
    let level_two = Program::words(&format!(
        "{} watch --json --duration 60s --insecure {url}?level=2",
        binary()?.display()
    ));
    let _low = level_two.within(&paths.players).start()?;
    let levels = || -> Result<Vec<Value>> {
        let shown = edge.json("/api/v1/tree")?;
        let relays = shown.as_array().context("relays")?;
        let below = relays.iter().filter(|relay| relay["name"] != "origin");
        Ok(below.map(|relay| relay["streams"][0]["level"].clone()).collect())
    };
    wait_for("level 2 on both links", || Ok(levels()? == [2, 2]))?;
    let all = watch(&url)?;
    ensure!(all["lost"] == 0 && frames(&all) > 2 * frames(&less), "{all} is not more than {less}");
    wait_for("level 2 again", || Ok(levels()? == [2, 2]))?;
    for relay in [&mut origin, &mut region, &mut edge] {
        relay.healthy()?;
    }
    Ok(())
}

#[test]
fn relays_find_each_other_in_nats_and_go_on_without() -> Result<()> {
    let Some(paths) = scene("relays that find each other in NATS", &["ffmpeg"])? else { return Ok(()) };
    if let Some(why) = missing("nats-server") {
        skipped("relays that find each other in NATS", &why);
        return Ok(());
    }
    joined(&paths)?;
    let folder = tempfile::tempdir()?;
    let store = folder.path().display().to_string();
    let nats =
        || Program::words(&format!("nats-server -js -sd {store} -a 0.0.0.0 -p 4222")).within(&paths.relay);
    let running = nats().start()?;
    let directory = |at: Ipv4Addr| format!("directory = \"nats://{at}:4222\"\ntransport = \"rtp\"\n");
    let origin = of_tree("origin", RELAY_OUT, &(directory(RELAY_IN) + "[streams.live]\nsource = \"push\"\n"));
    let mut origin = Relay::start(&paths.relay, &origin)?;
    let mut edge = Relay::start(&paths.players, &of_tree("edge", PLAYER, &directory(RELAY_OUT)))?;
    let _publishing = publishes(&paths, "live")?;
    origin.wait_up("live")?;
    let play = || ffmpeg_decodes(&http("live"), 50).within(&paths.players).finish(PATIENCE);
    let until = Instant::now() + PATIENCE;
    // It may take a moment until the directory knows.
    while play().is_err() {
        if Instant::now() > until {
            bail!("the stream is not found: {}", edge.process().account());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let lasting = ffmpeg_decodes(&http("live"), 100_000).within(&paths.players).start()?;
    first_receiver(&edge, "live")?;
    let lost = |edge: &Relay<'_>| edge.stream("live").map(|s| s["source"]["lost"].clone());
    let before = lost(&edge)?;
    let away = |is: bool| -> Result<()> {
        wait_for(
            "the directory's state",
            || Ok(edge.json("/api/v1/tree")?[0]["directory"] != Value::Bool(is)),
        )
    };
    drop(running);
    away(true)?;
    let _again = nats().start()?;
    away(false)?;
    ensure!(lost(&edge)? == before, "{} packets were lost", lost(&edge)?);
    drop(lasting);
    origin.healthy()?;
    edge.healthy()
}
