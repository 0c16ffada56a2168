//! Every receiver gets the quality that it asks for, and can decode it: H.264 and H.265 with B pictures, from
//! an encoder, to players.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT};
use outflow_labs::process::Program;
use outflow_labs::programs::{ffmpeg, ffmpeg_decodes};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::{
    all_play_clean, ends_clean, ffmpeg_rtsp, http_url, plays, rtsp_url, scene, wait_bound, wait_for,
};
use outflow_rtp::rtcp;
use outflow_rtp::rtcp::{LevelAnswer, LevelMessage, LevelRequest, Report, ReportBlock};
use serde_json::{Value, json};

/// Where the receiver without a session gets its packets; RTCP one above.
const PORT: u16 = 6400;
/// A picture a second is a key frame; three pictures in four are B, and nothing needs them.
const PICTURES: &str = "-re -f lavfi -i testsrc2=size=320x240:rate=25 -g 25 -bf 3 -sc_threshold 0";
const H264: &str = "-c:v libx264 -preset veryfast -x264-params b-pyramid=none:b-adapt=0:ref=1:weightp=0";
const H265: &str = "-c:v libx265 -preset ultrafast -x265-params \
                    bframes=3:b-adapt=0:b-pyramid=0:open-gop=0:keyint=25:log-level=none";

fn configuration() -> String {
    listen()
        + &format!(
            "[streams.cam]\nsource = \"push\"\n[[sinks]]\nstream = \"cam\"\nto = \"rtp://{PLAYER}:{PORT}\"\n"
        )
}

fn encoder(codec: &str) -> Program {
    ffmpeg(&format!("{PICTURES} {codec} -f rtsp -rtsp_transport tcp rtsp://{RELAY_IN}:{RTSP_PORT}/cam"))
}

/// The kinds of the pictures that come of a level by RTSP.
fn kinds(paths: &Paths, level: u8, pictures: u32) -> Result<String> {
    let url = rtsp_url(&format!("cam?level={level}"));
    kinds_of(paths, &format!("-rtsp_transport tcp {url}"), level, pictures)
}

/// The kinds of the pictures that come of an input.
fn kinds_of(paths: &Paths, input: &str, level: u8, pictures: u32) -> Result<String> {
    let show = "ffprobe -hide_banner -loglevel error -select_streams v -show_entries frame=pict_type \
                -of csv=p=0";
    let probe = Program::words(&format!("{show} -read_intervals %+#{pictures} {input}"));
    let found = probe.within(&paths.players).finish(Duration::from_secs(60))?;
    ensure!(found.stderr.trim().is_empty(), "level {level}: {}", found.stderr);
    Ok(found.stdout.chars().filter(char::is_ascii_uppercase).collect())
}

/// Every level comes as what it is, and decodes.
fn every_level_decodes(paths: &Paths, codec: &str) -> Result<()> {
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _encoding = encoder(codec).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    let players = [
        ffmpeg_rtsp("cam?level=1", "udp", 50),
        ffmpeg_rtsp("cam?level=2", "udp", 14),
        ffmpeg_rtsp("cam?level=3", "udp", 3),
        ffmpeg_rtsp("cam?level=2", "tcp", 14),
        ffmpeg_rtsp("cam?level=3", "tcp", 3),
    ];
    all_play_clean(paths, &players)?;
    levels_have_their_kinds(|level, pictures| kinds(paths, level, pictures))?;
    levels_cost_less_and_less(&relay)?;
    relay.healthy()
}

fn levels_have_their_kinds(kinds: impl Fn(u8, u32) -> Result<String>) -> Result<()> {
    let all = kinds(1, 50)?;
    ensure!(all.matches('B').count() > 30 && all.contains('P') && all.starts_with('I'), "{all}");
    let without = kinds(2, 14)?;
    ensure!(!without.contains('B') && without.contains('P') && without.starts_with('I'), "{without}");
    let only = kinds(3, 3)?;
    ensure!(only.len() >= 3 && only.chars().all(|kind| kind == 'I'), "{only}");
    Ok(())
}

fn levels_cost_less_and_less(relay: &Relay) -> Result<()> {
    let rates = relay.stream("cam")?["levels"].clone();
    let rates: Vec<u64> = serde_json::from_value(rates).context("levels")?;
    ensure!(rates.len() == 3 && rates[0] > rates[1] && rates[1] > rates[2] && rates[2] > 0, "{rates:?}");
    Ok(())
}

#[test]
fn every_level_of_h264_decodes() -> Result<()> {
    let Some(paths) = scene("levels of H.264", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    every_level_decodes(&paths, H264)
}

#[test]
fn every_level_of_h265_decodes() -> Result<()> {
    let Some(paths) = scene("levels of H.265", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    every_level_decodes(&paths, H265)
}

#[test]
fn a_player_changes_its_level_and_decodes_on() -> Result<()> {
    let Some(paths) = scene("levels that change", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let _encoding = encoder(H264).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    changes_and_decodes_on(&paths, &relay, &ffmpeg_rtsp("cam", "udp", 75), "rtsp-udp")?;
    relay.healthy()
}

/// A player of this kind is changed from level to level, and finds nothing wrong.
fn changes_and_decodes_on(paths: &Paths, relay: &Relay, player: &Program, kind: &str) -> Result<()> {
    let player = plays(paths, player)?;
    let playing = |receiver: &&Value| receiver["kind"] == kind;
    let mut id = None;
    wait_for("the player", || {
        let receivers = relay.json("/api/v1/receivers?stream=cam")?;
        id = receivers.as_array().and_then(|all| all.iter().find(playing)?["id"].as_u64());
        Ok(id.is_some())
    })?;
    let path = format!("/api/v1/receivers/{}", id.context("the player")?);
    for level in [3, 1, 2, 1, 3, 2, 1] {
        relay.patch(&path, &json!({ "level": level }))?;
        std::thread::sleep(Duration::from_millis(330));
    }
    let refused = relay.patch(&path, &json!({ "level": 4 }));
    let why = format!("{:#}", refused.err().context("there are three levels")?);
    ensure!(why.contains("write 1 (the best) to 3"), "{why}");
    ends_clean(player)
}

#[test]
fn a_level_is_asked_for_over_rtcp_and_what_is_forged_is_refused() -> Result<()> {
    let Some(paths) = scene("levels over RTCP", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &configuration())?;
    let (media, control) = paths.players.run(|| -> Result<_> {
        Ok((UdpSocket::bind((PLAYER, PORT))?, UdpSocket::bind((PLAYER, PORT + 1))?))
    })?;
    media.set_read_timeout(Some(Duration::from_secs(10)))?;
    control.set_read_timeout(Some(Duration::from_secs(10)))?;
    let _encoding = encoder(H264).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    let mut packet = [0; 2048];
    let length = media.recv(&mut packet)?;
    ensure!(length > 12, "an RTP packet");
    let ssrc = u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]);
    let (_, from) = control.recv_from(&mut packet).context("a sender report")?;
    control.set_read_timeout(Some(Duration::from_millis(300)))?;
    let ask = |number: u16, level: u8, media: u32| -> Result<Option<LevelAnswer>> {
        let request = LevelMessage::Request(LevelRequest { number, level, media });
        control.send_to(&request.emit(77, "test"), from)?;
        answer(&control)
    };
    let mut taken = None;
    wait_for("the levels to be known", || {
        taken = ask(1, 3, ssrc)?;
        Ok(taken.as_ref().is_some_and(|answer| answer.rates.len() == 3))
    })?;
    let taken = taken.context("an answer")?;
    ensure!((taken.number, taken.level, taken.media) == (1, 3, ssrc), "{taken:?}");
    ensure!(ask(2, 1, ssrc ^ 1)?.is_none(), "of a source that it does not receive");
    ensure!(ask(0, 1, ssrc)?.is_none(), "older than the first");
    ensure!(ask(2, 9, ssrc)?.is_some_and(|answer| answer.level == 3), "there is no such level");
    let refused = json!({ "foreign": 1, "replayed": 1, "no-such-level": 1 });
    wait_for("all of it to be shown", || {
        let state = relay.json("/api/v1/receivers?stream=cam")?;
        Ok(state[0]["level"] == 3 && state[0]["level_refusals"] == refused)
    })?;
    relay.healthy()
}

/// Three receivers: of all, of the base, and of a branch; and a rule that lowers the first and the last.
fn ruled_configuration() -> String {
    let sink = |name: &str, port: u16, more: &str| {
        format!("[[sinks]]\nname = \"{name}\"\nstream = \"cam\"\nto = \"rtp://{PLAYER}:{port}\"\n{more}\n")
    };
    listen()
        + "[streams.cam]\nsource = \"push\"\n[streams.cam.branches.b]\nservices = [\"pass\"]\n\
           [streams.cam.rules.lossy]\nwhen = \"loss > 10 %\"\nfor = \"0 s\"\n\
           then = [\"lower to 2\", \"lower b to 3\"]\nhold = \"0 s\"\n"
        + &sink("all", PORT + 20, "")
        + &sink("base", PORT + 22, "level = 3")
        + &sink("branch", PORT + 24, "branch = \"b\"")
}

/// Reads packets until many in a row have nothing of a B picture, or one has.
fn has_b_pictures(media: &UdpSocket) -> Result<bool> {
    let mut packet = [0; 2048];
    for _ in 0..60 {
        let length = media.recv(&mut packet).context("media")?;
        let header = packet.get(12).filter(|_| length > 12).context("an RTP packet")?;
        // A slice, or a fragment of one, that nothing refers to (RFC 6184, sections 1.3 and 5.8).
        if matches!(header, 0x01 | 0x1c) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn a_rule_lowers_receivers_and_what_they_asked_for_comes_back() -> Result<()> {
    let Some(paths) = scene("levels by rules", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &ruled_configuration())?;
    let bind = |port: u16| paths.players.run(|| UdpSocket::bind((PLAYER, port)));
    let (media, control) = (bind(PORT + 20)?, bind(PORT + 21)?);
    let _others = (bind(PORT + 22)?, bind(PORT + 24)?);
    media.set_read_timeout(Some(Duration::from_secs(10)))?;
    control.set_read_timeout(Some(Duration::from_secs(10)))?;
    let _encoding = encoder(H264).within(&paths.source).start()?;
    relay.wait_stream("cam", "levels", |stream| {
        stream["levels"].as_array().is_some_and(|all| all.len() == 3)
    })?;
    let (_, relay_at) = control.recv_from(&mut [0; 2048]).context("a sender report")?;
    let report = |fraction_lost: u8| -> Result<()> {
        let block = ReportBlock { ssrc: 1, fraction_lost, lost: 0, highest: 0, jitter: 0, lsr: 0, dlsr: 0 };
        control.send_to(&rtcp::receiver_report(77, &[block], "test"), relay_at)?;
        Ok(())
    };
    // Of each receiver: what it gets, and what it asked for.
    let levels = || -> Result<Value> {
        let state = relay.json("/api/v1/receivers?stream=cam")?;
        let of = |name: &str| {
            let found = state.as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
            found.map(|one| json!([one["level"], one["level_asked"]]))
        };
        Ok(json!([of("all"), of("base"), of("branch")]))
    };
    let wait_levels = |wanted: Value| wait_for(&wanted.to_string(), || Ok(levels()? == wanted));
    wait_levels(json!([[1, 1], [3, 3], [1, 1]]))?;
    wait_for("B pictures", || has_b_pictures(&media))?;
    report(200)?;
    wait_levels(json!([[2, 1], [3, 3], [3, 1]]))?;
    relay.wait_stream("cam", "what was reported", |stream| {
        stream["reported"]["reports"] == 1 && stream["reported"]["fraction_lost_most"] == 200.0 / 256.0
    })?;
    wait_for("no B pictures", || Ok(!has_b_pictures(&media)?))?;
    let log = relay.json("/api/v1/rules")?;
    ensure!(log["in_force"]["cam"] == json!(["lossy"]), "{log}");
    ensure!(log["decisions"][0]["changes"] == json!(["lower to 2", "lower b to 3"]), "{log}");
    // A receiver that asks for another level meanwhile gets it later.
    let id = relay.json("/api/v1/receivers?stream=cam")?;
    let id = id.as_array().and_then(|all| all.iter().find(|one| one["name"] == "base")?["id"].as_u64());
    relay.patch(&format!("/api/v1/receivers/{}", id.context("an id")?), &json!({ "level": 1 }))?;
    wait_levels(json!([[2, 1], [2, 1], [3, 1]]))?;
    report(0)?;
    wait_levels(json!([[1, 1], [1, 1], [1, 1]]))?;
    wait_for("B pictures again", || has_b_pictures(&media))?;
    let log = relay.json("/api/v1/rules")?;
    ensure!(log["in_force"] == json!({}) && log["decisions"][0]["in_force"] == false, "{log}");
    a_rule_that_is_removed_is_undone(&relay, || report(200), &levels)?;
    relay.healthy()
}

/// The configuration is loaded again without the rules while one is in force.
fn a_rule_that_is_removed_is_undone(
    relay: &Relay,
    lose: impl Fn() -> Result<()>,
    levels: &impl Fn() -> Result<Value>,
) -> Result<()> {
    lose()?;
    wait_for("the rule to be in force again", || Ok(levels()? == json!([[2, 1], [2, 1], [3, 1]])))?;
    let text = ruled_configuration();
    let (before, rest) = text.split_once("[streams.cam.rules.lossy]").context("the rule")?;
    let (_, after) = rest.split_once("[[sinks]]").context("sinks")?;
    relay.reload(&format!("{before}[[sinks]]{after}"))?;
    wait_for("none to be lowered", || Ok(levels()? == json!([[1, 1], [1, 1], [1, 1]])))?;
    wait_for("nothing to be in force", || Ok(relay.json("/api/v1/rules")?["in_force"] == json!({})))
}

#[test]
fn a_rule_lowers_receivers_wherever_they_are_served() -> Result<()> {
    let Some(paths) = scene("levels by rules on two workers", &[])? else { return Ok(()) };
    let stream = listen() + "[limits]\nworkers = 2\nsplit = 1\n[streams.cam]\nsource = \"push\"\n";
    // It holds from the beginning.
    let rule = "[streams.cam.rules.r]\nwhen = \"delay < 100 s\"\nfor = \"0 s\"\nthen = [\"lower to 2\"]\n";
    let mut relay = Relay::start(&paths.relay, &format!("{stream}{rule}"))?;
    let add = |port: u16| {
        let to = format!("rtp://{PLAYER}:{port}");
        relay.post("/api/v1/streams/cam/sinks", &json!({ "to": to })).map(drop)
    };
    let wait_levels = |wanted: &[[u8; 2]]| {
        wait_for(&format!("{wanted:?}"), || {
            let state = relay.json("/api/v1/receivers?stream=cam")?;
            let all = state.as_array().context("receivers")?;
            let levels: Vec<_> = all.iter().map(|one| json!([one["level"], one["level_asked"]])).collect();
            Ok(json!(levels) == json!(wanted))
        })
    };
    add(PORT + 30)?;
    wait_levels(&[[2, 1]])?;
    // The others are served elsewhere, by a worker that learns of the rule when it begins.
    (1..4).try_for_each(|number| add(PORT + 30 + 2 * number))?;
    wait_levels(&[[2, 1]; 4])?;
    relay.reload(&stream)?;
    wait_levels(&[[1, 1]; 4])?;
    relay.reload(&format!("{stream}{rule}"))?;
    wait_levels(&[[2, 1]; 4])?;
    // In force as it is, it says something else.
    relay.reload(&format!("{stream}{}", rule.replace("to 2", "to 3")))?;
    wait_levels(&[[3, 1]; 4])?;
    let log = relay.process().stdout() + &relay.process().stderr();
    ensure!(log.contains("served by one more worker"), "{log}");
    relay.healthy()
}

/// A transport stream over UDP, and receivers of it at these levels, at ports of their own.
fn ts_configuration(levels: &[(u8, u16)]) -> String {
    let sink = |(level, port): &(u8, u16)| {
        format!("[[sinks]]\nstream = \"cam\"\nto = \"udp://{PLAYER}:{port}\"\nlevel = {level}\n")
    };
    let sinks: String = levels.iter().map(sink).collect();
    listen() + "[streams.cam]\nsource = \"udp://0.0.0.0:5000\"\n" + &sinks
}

fn ts_encoder(codec: &str) -> Program {
    let sound = "-re -f lavfi -i sine=frequency=440:sample_rate=48000";
    let to = format!("-c:a aac -b:a 64k -f mpegts udp://{RELAY_IN}:5000?pkt_size=1316");
    ffmpeg(&format!("{sound} {PICTURES} {codec} {to}"))
}

/// ffmpeg playing a level of the transport stream by HTTP.
fn http_level(level: u8, pictures: u32) -> Program {
    ffmpeg_decodes(&format!("-i {}?level={level}", http_url("cam")), pictures)
}

#[test]
fn every_level_of_a_transport_stream_decodes() -> Result<()> {
    let Some(paths) = scene("levels of MPEG-TS", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let pushed = [(1, 6401), (2, 6402), (3, 6403)];
    let mut relay = Relay::start(&paths.relay, &ts_configuration(&pushed))?;
    let mut playing = Vec::new();
    for ((_, port), pictures) in pushed.into_iter().zip([50, 14, 4]) {
        let input = format!("-i udp://{PLAYER}:{port}?fifo_size=100000");
        let mut player = plays(&paths, &ffmpeg_decodes(&input, pictures))?;
        wait_bound(&mut player, port)?;
        playing.push(player);
    }
    let _encoding = ts_encoder(H264).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    playing.into_iter().try_for_each(ends_clean)?;
    all_play_clean(&paths, &[http_level(1, 50), http_level(2, 14), http_level(3, 3)])?;
    all_play_clean(&paths, &[ffmpeg_rtsp("cam?level=2", "udp", 14), ffmpeg_rtsp("cam?level=3", "tcp", 3)])?;
    levels_have_their_kinds(|level, pictures| {
        kinds_of(&paths, &format!("{}?level={level}", http_url("cam")), level, pictures)
    })?;
    levels_cost_less_and_less(&relay)?;
    relay.healthy()
}

#[test]
fn a_level_of_h265_in_a_transport_stream_decodes() -> Result<()> {
    let Some(paths) = scene("levels of H.265 in MPEG-TS", &["ffmpeg", "ffprobe"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &ts_configuration(&[]))?;
    let _encoding = ts_encoder(H265).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    all_play_clean(&paths, &[http_level(2, 14)])?;
    let without = kinds_of(&paths, &format!("{}?level=2", http_url("cam")), 2, 14)?;
    ensure!(!without.contains('B') && without.contains('P') && without.starts_with('I'), "{without}");
    relay.healthy()
}

#[test]
fn players_of_a_transport_stream_change_their_levels_and_decode_on() -> Result<()> {
    let Some(paths) = scene("levels of MPEG-TS that change", &["ffmpeg"])? else { return Ok(()) };
    let mut relay = Relay::start(&paths.relay, &ts_configuration(&[]))?;
    let _encoding = ts_encoder(H264).within(&paths.source).start()?;
    relay.wait_up("cam")?;
    changes_and_decodes_on(&paths, &relay, &http_level(1, 75), "http-ts")?;
    changes_and_decodes_on(&paths, &relay, &ffmpeg_rtsp("cam", "udp", 75), "rtsp-udp")?;
    relay.healthy()
}

/// A request to the relay's HTTP from the players' side: the status, and the answer's text.
fn ask(paths: &Paths, method: &str, target: &str, token: Option<&str>) -> Result<(u16, String)> {
    let uri = format!("http://{RELAY_OUT}:{HTTP_PORT}{target}");
    paths.players.run(|| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = ureq::http::Request::builder().method(method).uri(uri);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = if method == "PATCH" { r#"{"level":3}"# } else { "" };
        let mut answer = agent.run(request.body(body)?)?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    })
}

/// Plays by HTTP, and reads on in the background until it is dropped; with the path of the own session.
fn http_session(paths: &Paths, target: &str) -> Result<(TcpStream, String)> {
    let mut socket = paths.players.run(|| TcpStream::connect((RELAY_OUT, HTTP_PORT)))?;
    write!(socket, "GET {target} HTTP/1.1\r\nHost: {RELAY_OUT}\r\n\r\n")?;
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut session = None;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        let header = line.to_lowercase();
        session = session.or(header.strip_prefix("outflow-session: ").map(|path| path.trim().to_owned()));
        line.clear();
    }
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    Ok((socket, session.context("a session")?))
}

#[test]
fn a_player_by_http_asks_its_own_session_for_a_level() -> Result<()> {
    let Some(paths) = scene("levels over HTTP", &["ffmpeg"])? else { return Ok(()) };
    let access = "[access]\nplay = [\"s3cret\"]\ncontrol = [\"c0ntrol\"]\n";
    let configuration = ts_configuration(&[]) + access;
    let mut relay = Relay::start(&paths.relay, &configuration)?.with_token("c0ntrol");
    let _encoding = ts_encoder(H264).within(&paths.source).start()?;
    relay.wait_stream("cam", "levels", |stream| {
        stream["levels"].as_array().is_some_and(|all| all.len() == 3)
    })?;
    let (socket, session) = http_session(&paths, "/cam.ts?token=s3cret")?;
    for token in [None, Some("wrong")] {
        let (status, text) = ask(&paths, "PATCH", &session, token)?;
        ensure!(status == 401, "{status} {text}");
    }
    let (status, text) = ask(&paths, "PATCH", &format!("{session}0"), Some("s3cret"))?;
    ensure!(status == 404 && text.contains("Outflow-Session"), "{status} {text}");
    let (status, text) = ask(&paths, "PATCH", &session, Some("s3cret"))?;
    let told: Value = serde_json::from_str(&text)?;
    let costs = told["levels"].as_array().map(Vec::len);
    ensure!(status == 200 && told["level"] == 3 && costs == Some(3), "{status} {text}");
    let mut refused = 0;
    wait_for("too many requests", || {
        let (status, text) = ask(&paths, "GET", &session, Some("s3cret"))?;
        refused += u64::from(status == 429);
        ensure!(status == 200 || (status == 429 && text.contains("ask again")), "{status} {text}");
        Ok(refused > 0)
    })?;
    wait_for("all of it to be shown", || {
        let state = relay.json("/api/v1/receivers?stream=cam")?;
        Ok(state[0]["level"] == 3 && state[0]["level_refusals"] == json!({ "too-many": refused }))
    })?;
    socket.shutdown(Shutdown::Both)?;
    wait_for("its session to end", || Ok(ask(&paths, "GET", &session, Some("s3cret"))?.0 == 404))?;
    relay.healthy()
}

/// The next answer that comes soon.
fn answer(control: &UdpSocket) -> Result<Option<LevelAnswer>> {
    let mut bytes = [0; 2048];
    while let Ok(length) = control.recv(&mut bytes) {
        let mut found = None;
        rtcp::read(&bytes[..length], |report| {
            if let Report::Level { message: LevelMessage::Answer(answer), .. } = report {
                found = Some(answer);
            }
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
