//! Bad input of any kind hurts no receiver: healthy receivers of every kind lose nothing while it
//! comes, the relay stays alive, answers, and does not grow.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outflow_labs::media::{Sender, Shape, Synthetic};
use outflow_labs::net::{PLAYER, Paths, RELAY_IN, RELAY_OUT, SOURCE, STRANGER};
use outflow_labs::programs::ffmpeg_sends;
use outflow_labs::receive::{Crowd, How, Receiver, Target};
use outflow_labs::relay::{HTTP_PORT, RTSP_PORT, Relay, listen};
use outflow_labs::scene::{PATIENCE, Sample, scene, wait_for};
use serde_json::Value;

const STREAM: Shape = Shape::of_rate(2_000_000);
/// More than any of these attacks may cost in memory.
const GROWTH: u64 = 64 << 20;
/// How the receivers of a siege get the stream.
const HEALTHY: [How; 4] = [How::Udp(7000), How::Http, How::RtspTcp, How::RtspUdp];
/// Those of them that hold a connection.
const HEALTHY_CONNECTIONS: u64 = 3;

/// A relay with healthy receivers, to be attacked.
struct Siege<'p> {
    paths: &'p Paths,
    relay: Relay<'p>,
    sender: Sender,
    crowd: Crowd,
    resident: u64,
}

impl<'p> Siege<'p> {
    fn begin(paths: &'p Paths, more: &str) -> Result<Self> {
        let sink = format!("[[sinks]]\nstream = \"live\"\nto = \"udp://{PLAYER}:7000\"\n");
        let source = format!("udp://0.0.0.0:5000?source={SOURCE}");
        let configuration = format!("{}[streams.live]\nsource = \"{source}\"\n{sink}{more}", listen());
        let relay = Relay::start(&paths.relay, &configuration)?;
        let from = (SOURCE, 0).into();
        let sender = Sender::start_from(&paths.source, from, (RELAY_IN, 5000).into(), STREAM)?;
        relay.wait_up("live")?;
        let receivers = paths.players.run(|| {
            HEALTHY.iter().map(|how| Receiver::open(*how, &Target::new("live"))).collect::<Result<Vec<_>>>()
        })?;
        let crowd = Crowd::start(receivers, Duration::ZERO)?;
        wait_for("every receiver receives", || {
            Ok(crowd.split()?.meters.iter().all(|meter| meter.first.is_some()))
        })?;
        let resident = relay.resident()?;
        Ok(Self { paths, relay, sender, crowd, resident })
    }

    /// After the attack: a second more of the stream, and all is as it was.
    fn held(mut self) -> Result<()> {
        let before = self.sender.sent();
        wait_for("a second more was sent", || Ok(self.sender.sent() > before + 190))?;
        self.crowd.split()?.all_unharmed()?;
        let grown = self.relay.resident()?.saturating_sub(self.resident);
        ensure!(grown < GROWTH, "the relay has grown by {grown} bytes");
        self.relay.json("/api/v1/streams").context("the API does not answer any more")?;
        let late = self.paths.players.run(|| Receiver::open(How::RtspTcp, &Target::new("live")));
        late.context("none can join any more")?;
        self.relay.healthy()
    }

    fn drops(&self, stream: &str) -> Result<u64> {
        let state = self.relay.stream(stream)?;
        let drops = state["source"]["drops"].as_object().context("no drops shown")?;
        Ok(drops.values().filter_map(Value::as_u64).sum())
    }

    /// What has become of connections, as the API counts it.
    fn connections(&self, what: &str) -> Result<u64> {
        let shown = self.relay.json("/api/v1/relay")?;
        shown["connections"][what].as_u64().with_context(|| format!("it does not count {what} connections"))
    }
}

/// A connection from the players, on which nothing is waited for.
fn connect(to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&to, PATIENCE)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Whether the relay has said nothing on a connection since it was looked at last, and holds it.
fn is_silent(socket: &mut TcpStream) -> bool {
    socket.read(&mut [0; 4096]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// How many of these, on which nothing is said, the relay has closed.
fn closed(sockets: &mut [TcpStream]) -> u64 {
    sockets.iter_mut().map(|socket| u64::from(!is_silent(socket))).sum()
}

fn all_are_closed(sockets: &mut [TcpStream]) -> Result<()> {
    let all = sockets.len() as u64;
    wait_for("every connection is closed", || Ok(closed(sockets) == all))
        .with_context(|| format!("{} of {all} are", closed(sockets)))
}

/// Reproducible noise.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn rtsp() -> SocketAddr {
    (RELAY_OUT, RTSP_PORT).into()
}

fn http() -> SocketAddr {
    (RELAY_OUT, HTTP_PORT).into()
}

#[test]
fn garbage_and_oversized_datagrams_to_a_source() -> Result<()> {
    let Some(paths) = scene("garbage to UDP", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "")?;
    for from in [SOURCE, STRANGER] {
        let socket = paths.source.run(|| UdpSocket::bind((from, 0)))?;
        for (seed, length) in (1..).zip([0, 1, 3, 187, 188, 189, 1316, 1400, 1500, 9000, 65507].repeat(20)) {
            let mut datagram = noise(seed, length);
            if seed % 3 == 0 {
                // Looks like a transport packet, and is none.
                datagram.iter_mut().step_by(188).for_each(|byte| *byte = 0x48);
            } else if let Some(first) = datagram.first_mut() {
                *first = 0;
            }
            socket.send_to(&datagram, (RELAY_IN, 5000))?;
        }
    }
    wait_for("what is bad is counted", || Ok(siege.drops("live")? > 100))?;
    siege.held()
}

#[test]
fn bad_datagrams_of_the_source_itself() -> Result<()> {
    let Some(paths) = scene("bad datagrams among good ones", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "[streams.flawed]\nsource = \"udp://0.0.0.0:5001\"\n")?;
    let socket = paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
    socket.connect((RELAY_IN, 5001))?;
    let mut stream = Synthetic::new(STREAM);
    let mut send = |seed: u64| -> Result<()> {
        socket.send(stream.next_datagram(0))?;
        if seed.is_multiple_of(5) {
            socket.send(&noise(seed, 700))?;
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    };
    (1..200).try_for_each(&mut send)?;
    siege.relay.wait_up("flawed")?;
    let target = Target::new("flawed");
    let receivers = paths.players.run(|| {
        let hows = [How::Http, How::RtspTcp, How::RtspUdp];
        hows.iter().map(|how| Receiver::open(*how, &target)).collect::<Result<Vec<_>>>()
    })?;
    let crowd = Crowd::start(receivers, Duration::ZERO)?;
    (200..800).try_for_each(&mut send)?;
    wait_for("what is bad is counted", || Ok(siege.drops("flawed")? > 100))?;
    for meter in crowd.split()?.meters {
        ensure!(meter.perfect() && meter.datagrams > 100, "receivers noticed: {}", meter.summary());
    }
    siege.held()
}

#[test]
fn garbage_rtp_to_a_described_source() -> Result<()> {
    let Some(paths) = scene("garbage RTP", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "[streams.rtp]\nsource = \"rtp://0.0.0.0:5004\"\n")?;
    let socket = paths.source.run(|| UdpSocket::bind((SOURCE, 0)))?;
    for (seed, length) in (1..).zip([0, 1, 11, 12, 13, 200, 1328, 9000].repeat(50)) {
        let mut datagram = noise(seed, length);
        if let Some(first) = datagram.first_mut() {
            // Right version; extension, padding and contributors claim more than there is.
            *first = 0x80 | (*first & 0x3F);
        }
        for port in [5004, 5005] {
            socket.send_to(&datagram, (RELAY_IN, port))?;
        }
    }
    siege.held()
}

/// Messages that begin like RTSP or HTTP and then go wrong.
fn broken_messages() -> Vec<Vec<u8>> {
    let url = format!("rtsp://{RELAY_OUT}:{RTSP_PORT}/live");
    let long = "x".repeat(100_000);
    let texts = [
        format!("DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\nAcc"),
        format!("DESCRIBE {url} RTSP/7.0\r\nCSeq: 1\r\n\r\n"),
        format!("SETUP {url} RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP;client_port=0-70000\r\n\r\n"),
        format!("SETUP {url} RTSP/1.0\r\nCSeq: 1\r\nTransport: \r\n\r\n"),
        format!("PLAY {url} RTSP/1.0\r\nCSeq: 1\r\nSession: nobody\r\n\r\n"),
        format!("ANNOUNCE {url} RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 99999999999999999999\r\n\r\nv=0"),
        format!("ANNOUNCE {url} RTSP/1.0\r\nCSeq: 1\r\nContent-Length: -5\r\n\r\nv=0"),
        format!("ANNOUNCE {url} RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 4294967295\r\n\r\nv=0"),
        format!("DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\nX-Long: {long}\r\n\r\n"),
        format!("OPTIONS {long} RTSP/1.0\r\n"),
        "GET /live.ts HTTP/9.9\r\n\r\n".into(),
        format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"),
        "PUT /live.ts HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n".into(),
        "PUT /nosuch.ts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n".into(),
        "POST /api/v1/streams/live/sinks HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n[[[[[[[[[".into(),
        "\r\n\r\n\r\n\r\n".into(),
    ];
    let mut messages: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    messages.push(b"$\x00\xFF\xFFtoo short".to_vec());
    messages.push(b"$\x09\x00\x04data$\x00\x00\x00".to_vec());
    messages.extend((1..20).map(|seed| noise(seed, 3000)));
    messages
}

#[test]
fn broken_messages_to_rtsp_and_http() -> Result<()> {
    let Some(paths) = scene("broken messages", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "[streams.other]\nsource = \"push\"\n")?;
    let mut waiting = paths.players.run(|| -> Result<_> {
        let mut waiting = Vec::new();
        for message in broken_messages() {
            for to in [rtsp(), http()] {
                let mut socket = connect(to)?;
                // The relay may close in the middle of it: that is its right.
                let _refused = socket.write_all(&message);
                waiting.push((socket, to, message.clone()));
            }
        }
        Ok(waiting)
    })?;
    wait_for("every one is answered, or closed", || {
        waiting.retain_mut(|(socket, ..)| is_silent(socket));
        Ok(waiting.is_empty())
    })
    .with_context(|| {
        let shown = |message: &[u8]| message[..message.len().min(60)].escape_ascii().to_string();
        let left = waiting.iter().map(|(_, to, message)| format!("to {to}: {}", shown(message)));
        left.collect::<Vec<_>>().join("\n")
    })?;
    siege.held()
}

#[test]
fn slow_loris_and_half_open_connections() -> Result<()> {
    let Some(paths) = scene("slow loris", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "")?;
    let texts = ["DESCRIBE rtsp://x/live RTSP/1.0\r\nCSeq: 1\r\n", "GET /live.ts HTTP/1.1\r\nHost: x\r\nX: "];
    let slow = siege.connections("slow")?;
    let mut sockets = paths.players.run(|| {
        let both = [rtsp(), http()].into_iter().cycle().take(400);
        both.map(connect).collect::<Result<Vec<_>>>()
    })?;
    // A byte at a time to all of them, for as long as the shorter text lasts.
    let bytes = || texts[0].bytes().zip(texts[1].bytes());
    for (of_rtsp, of_http) in bytes() {
        for (socket, byte) in sockets.iter_mut().zip([of_rtsp, of_http].into_iter().cycle()) {
            let _cut_off = socket.write(&[byte]);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    all_are_closed(&mut sockets)?;
    let all = sockets.len() as u64;
    let slow = siege.connections("slow")? - slow;
    ensure!(slow == all, "{slow} of {all} are counted as slow");
    siege.held()
}

#[test]
fn thousands_of_connections() -> Result<()> {
    const ALL: u64 = 3000;
    const LIMIT: u64 = 2000;
    let Some(paths) = scene("thousands of connections", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, &format!("[limits]\nconnections_per_address = {LIMIT}\n"))?;
    let counts = || -> Result<[u64; 2]> { Ok([siege.connections("refused")?, siege.connections("slow")?]) };
    ensure!(counts()? == [0, 0], "before anything happened: {:?}", counts()?);
    let mut sockets = paths.players.run(|| {
        let both = [rtsp(), http()].into_iter().cycle().take(ALL as usize);
        both.map(connect).collect::<Result<Vec<_>>>()
    })?;
    // Up to the limit they are taken, those beyond it closed at once.
    let refused = ALL + HEALTHY_CONNECTIONS - LIMIT;
    wait_for("those beyond the limit are refused", || Ok(siege.connections("refused")? == refused))?;
    wait_for("they are closed", || Ok(closed(&mut sockets) >= refused))?;
    // What is taken says nothing: it is held for a while, and then closed, too.
    all_are_closed(&mut sockets)?;
    ensure!(counts()? == [refused, ALL - refused], "of {ALL}: {:?}", counts()?);
    siege.held()
}

#[test]
fn a_publisher_that_lies_about_its_codec() -> Result<()> {
    let Some(paths) = scene("lying publisher", &["ffmpeg"])? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sdp = folder.path().join("liar.sdp");
    // It says H.264 with these parameter sets, and sends MPEG-2 under the same payload type.
    let text = "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=liar\nc=IN IP4 0.0.0.0\nt=0 0\nm=video 5010 RTP/AVP 32\n\
                a=rtpmap:32 H264/90000\na=fmtp:32 packetization-mode=1;\
                sprop-parameter-sets=Z0LAH9o=,aM4PyA==\n";
    std::fs::write(&sdp, text)?;
    let more = format!("[streams.liar]\nsource = \"rtp://0.0.0.0:5010\"\nsdp = \"{}\"\n", sdp.display());
    let siege = Siege::begin(&paths, &more)?;
    let to = format!("-an -f rtp rtp://{RELAY_IN}:5010");
    let _lying = ffmpeg_sends(&Sample::Mpeg2Ts.file()?, &to).within(&paths.source).start()?;
    wait_for("the lies come in", || {
        Ok(siege.relay.stream("liar")?["source"]["packets"].as_u64() > Some(500)
            || siege.drops("liar")? > 100)
    })?;
    siege.held()
}

#[test]
fn a_receiver_cannot_have_others_flooded() -> Result<()> {
    let Some(paths) = scene("destination of somebody else", &[])? else { return Ok(()) };
    let siege = Siege::begin(&paths, "")?;
    let victim = paths.source.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9000)))?;
    victim.set_nonblocking(true)?;
    let mut socket = paths.players.run(|| TcpStream::connect(rtsp()))?;
    socket.set_read_timeout(Some(outflow_labs::relay::PATIENCE))?;
    let url = format!("rtsp://{RELAY_OUT}:{RTSP_PORT}/live");
    let transport = format!("RTP/AVP;unicast;destination={SOURCE};client_port=9000-9001");
    let described = ask(&mut socket, &format!("DESCRIBE {url} RTSP/1.0\r\nCSeq: 1\r\n\r\n"))?;
    ensure!(described.starts_with("RTSP/1.0 200"), "{described}");
    let track =
        described.lines().filter_map(|line| line.strip_prefix("a=control:")).next_back().unwrap_or("0");
    let track = if track.starts_with("rtsp:") { track.to_owned() } else { format!("{url}/{track}") };
    let setup =
        ask(&mut socket, &format!("SETUP {track} RTSP/1.0\r\nCSeq: 2\r\nTransport: {transport}\r\n\r\n"))?;
    if let Some(session) = setup.lines().find_map(|line| line.strip_prefix("Session: ")) {
        let session = session.split(';').next().unwrap_or_default();
        ask(&mut socket, &format!("PLAY {url} RTSP/1.0\r\nCSeq: 3\r\nSession: {session}\r\n\r\n"))?;
    }
    let sent = siege.sender.sent();
    wait_for("a second more was sent", || Ok(siege.sender.sent() > sent + 190))?;
    ensure!(victim.recv(&mut [0; 2000]).is_err(), "packets were sent to an address that did not ask");
    siege.held()
}

fn ask(socket: &mut TcpStream, request: &str) -> Result<String> {
    socket.write_all(request.as_bytes())?;
    let mut buffer = [0; 16 << 10];
    let read = socket.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..read]).into_owned())
}
