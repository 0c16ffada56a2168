//! The server as its peers see it, over real sockets.

#![allow(clippy::disallowed_methods, reason = "a test of sockets")]

mod feedback;
mod flood;
mod goodbye;
mod grants;
mod publishers;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_config::Config;
use outflow_control::Relay;
use outflow_rtp::{PlainHeader, RtpHeader};
use outflow_rtsp::auth::{Challenge, Credentials};
use outflow_rtsp::header::RtpInfo;
use outflow_rtsp::{Decoder, Item, Response, StatusCode, Transport, headers, interleaved_prefix};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

const ANNOUNCED: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n\
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n";

struct Server {
    relay: Relay,
    port: u16,
}

impl Server {
    async fn start(config: &str) -> Server {
        let all = format!(
            "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"30000-31999\"\n{config}\n\
             [streams.demo]\nsource = \"demo://\"\n[streams.push]\n"
        );
        let config = Config::parse(&all, "test", &outflow_fronts::protocols())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let relay = Relay::start(config, None, outflow_fronts::all(), None).await.expect("started");
        let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(outflow_front_rtsp::serve(listener, None, relay.control().clone()));
        Server { relay, port }
    }

    async fn connect(&self) -> Client {
        self.connect_at("127.0.0.1").await
    }

    /// One that asks at this address of the relay.
    async fn connect_at(&self, host: &str) -> Client {
        let tcp = TcpStream::connect((host, self.port)).await.expect("connected");
        let (decoder, input) = (Decoder::new(), BytesMut::new());
        Client {
            tcp,
            decoder,
            input,
            cseq: 0,
            base: format!("rtsp://{host}:{}", self.port),
            media: Vec::new(),
        }
    }

    async fn demo_is_up(&self) {
        timeout(PATIENCE, async {
            let mut states = self.relay.control().watch();
            let up = |state: &outflow_engine::message::StreamState| {
                state.name == "demo" && state.source.packets > 0
            };
            states.wait_for(|state| state.streams.iter().any(up)).await.map(drop)
        })
        .await
        .expect("in time")
        .expect("running");
    }
}

struct Client {
    tcp: TcpStream,
    decoder: Decoder,
    input: BytesMut,
    cseq: u32,
    base: String,
    media: Vec<(u8, Bytes)>,
}

impl Client {
    async fn ask(&mut self, method: &str, path: &str, more: &str, body: &str) -> Response {
        self.cseq += 1;
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let text = format!(
            "{method} {}{path} RTSP/1.0\r\nCSeq: {}\r\n{more}{length}\r\n{body}",
            self.base, self.cseq
        );
        self.tcp.write_all(text.as_bytes()).await.expect("sent");
        loop {
            match self.next().await {
                Some(Item::Response(response)) => {
                    let cseq = response.header(&headers::CSEQ).map(|cseq| cseq.as_str().to_owned());
                    assert_eq!(cseq, Some(self.cseq.to_string()));
                    return response;
                }
                Some(Item::Interleaved { channel, bytes }) => self.media.push((channel, bytes)),
                other => panic!("{method}: {other:?}"),
            }
        }
    }

    async fn status(&mut self, method: &str, path: &str, more: &str, body: &str) -> StatusCode {
        self.ask(method, path, more, body).await.status()
    }

    /// The next thing that comes; `None` at the end.
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.decoder.decode(&mut self.input).expect("RTSP") {
                return Some(item);
            }
            let read = timeout(PATIENCE, self.tcp.read_buf(&mut self.input)).await.expect("in time");
            read.ok().filter(|read| *read > 0)?;
        }
    }

    async fn next_media(&mut self) -> (u8, Bytes) {
        if !self.media.is_empty() {
            return self.media.remove(0);
        }
        match self.next().await {
            Some(Item::Interleaved { channel, bytes }) => (channel, bytes),
            other => panic!("no media: {other:?}"),
        }
    }

    /// Sets the only track up over TCP and plays; returns the session and the answer to PLAY.
    async fn play(&mut self, stream: &str) -> (String, Response) {
        let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n";
        let response = self.ask("SETUP", &format!("/{stream}/trackID=0"), transport, "").await;
        assert_eq!(response.status(), StatusCode::Ok, "{}", String::from_utf8_lossy(response.body()));
        let session = session(&response);
        let response = self.ask("PLAY", &format!("/{stream}/"), &session, "").await;
        assert_eq!(response.status(), StatusCode::Ok);
        (session, response)
    }

    /// Sets the only track up with this transport over UDP and plays; returns the port that packets
    /// will come from.
    async fn play_by_udp(&mut self, stream: &str, transport_asked: &str) -> u16 {
        let response = self.ask("SETUP", &format!("/{stream}/trackID=0"), transport_asked, "").await;
        let session = session(&response);
        assert_eq!(self.status("PLAY", &format!("/{stream}/"), &session, "").await, StatusCode::Ok);
        transport(&response).server_port.expect("the relay's ports").rtp
    }

    /// Announces one H.264 track and records, with this Transport; returns the answer to SETUP.
    async fn record(&mut self, transport: &str) -> Response {
        assert_eq!(self.status("ANNOUNCE", "/push", "", ANNOUNCED).await, StatusCode::Ok);
        let response = self.ask("SETUP", "/push/streamid=0", transport, "").await;
        let session = session(&response);
        assert_eq!(self.status("RECORD", "/push", &session, "").await, StatusCode::Ok);
        response
    }
}

/// The Session header to send back.
fn session(response: &Response) -> String {
    let value = response.header(&headers::SESSION).expect("a session").as_str();
    format!("Session: {}\r\n", value.split(';').next().unwrap_or_default())
}

fn transport(response: &Response) -> Transport {
    Transport::parse(response.header(&headers::TRANSPORT).expect("a transport").as_str())
        .expect("a usable one")
}

/// A packet with an IDR picture.
fn picture(sequence: u16) -> Vec<u8> {
    let timestamp = u32::from(sequence) * 3600;
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
    [&header.emit()[..], &[0x65, 0x88, 0x80, sequence as u8]].concat()
}

#[tokio::test]
async fn a_description_names_tracks_below_its_base() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let mut client = server.connect().await;
    let response = client.ask("DESCRIBE", "/demo?token=x", "Accept: application/sdp\r\n", "").await;
    assert_eq!(response.status(), StatusCode::Ok);
    let base = response.header(&headers::CONTENT_BASE).expect("a base").as_str();
    assert_eq!(base, format!("rtsp://127.0.0.1:{}/demo/", server.port), "without the token");
    let text = String::from_utf8_lossy(response.body()).into_owned();
    assert!(text.contains("m=video 0 RTP/AVP 33") && text.contains("a=control:trackID=0"), "{text}");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_the_right_status() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let mut client = server.connect().await;
    for (method, path, more, expected) in [
        ("DESCRIBE", "/nowhere", "", StatusCode::NotFound),
        ("DESCRIBE", "/push", "", StatusCode::ServiceUnavailable),
        ("PLAY", "/demo", "", StatusCode::MethodNotValidInThisState),
        ("PAUSE", "/demo", "", StatusCode::MethodNotValidInThisState),
        ("RECORD", "/push", "", StatusCode::MethodNotValidInThisState),
        ("TEARDOWN", "/demo", "", StatusCode::MethodNotValidInThisState),
        ("REDIRECT", "/demo", "", StatusCode::NotImplemented),
        ("OPTIONS", "/demo", "Session: 1234\r\n", StatusCode::SessionNotFound),
        ("OPTIONS", "/demo", "Require: funky\r\n", StatusCode::OptionNotSupported),
        ("SETUP", "/demo/trackID=7", "Transport: RTP/AVP;client_port=5000\r\n", StatusCode::NotFound),
        ("SETUP", "/demo", "Transport: RTP/SAVP;client_port=5000\r\n", StatusCode::UnsupportedTransport),
        ("SETUP", "/demo", "Transport: RTP/AVP;multicast\r\n", StatusCode::UnsupportedTransport),
        ("SETUP", "/demo", "Transport: RTP/AVP;unicast\r\n", StatusCode::BadRequest),
        ("ANNOUNCE", "/demo", "", StatusCode::UnsupportedMediaType),
    ] {
        assert_eq!(client.status(method, path, more, "").await, expected, "{method} {path} {more}");
    }
    assert_eq!(client.status("OPTIONS", "/demo", "", "").await, StatusCode::Ok, "the connection goes on");
}

#[tokio::test]
async fn a_link_without_room_is_not_enough_bandwidth() {
    let link = "[link.narrow]\nrate = \"8 kbit/s\"\nadmission = \"refuse\"\n[defaults]\nlink = \"narrow\"\n";
    let server = Server::start(link).await;
    let mut states = server.relay.control().watch();
    let known = states.wait_for(|state| {
        let least = state.stream("demo").and_then(|demo| demo.levels.last());
        least.is_some_and(|least| *least > 50_000)
    });
    timeout(PATIENCE, known).await.expect("in time").expect("running");
    let mut client = server.connect().await;
    let transport = "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n";
    let response = client.ask("SETUP", "/demo/trackID=0", transport, "").await;
    let refused = match response.status() {
        StatusCode::Ok => client.ask("PLAY", "/demo/", &session(&response), "").await,
        _ => response,
    };
    let text = String::from_utf8_lossy(refused.body()).into_owned();
    assert_eq!(refused.status(), StatusCode::NotEnoughBandwidth, "{text}");
    assert!(text.contains("link 'narrow' has 8 kbit/s left of 8 kbit/s"), "{text}");
}

#[tokio::test]
async fn within_the_connection_media_follows_the_answer_and_answers_come_between_packets() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let mut client = server.connect().await;
    let (session, response) = client.play("demo").await;
    assert_eq!(client.media, [], "nothing before the answer");
    let info = RtpInfo::parse_all(response.header(&headers::RTP_INFO).expect("where it begins").as_str());
    assert_eq!(info[0].url, format!("rtsp://127.0.0.1:{}/demo/trackID=0", server.port));
    let (channel, bytes) = loop {
        let media = client.next_media().await;
        if media.0 == 4 {
            break media;
        }
    };
    let header = RtpHeader::new_checked(&bytes).expect("RTP");
    assert_eq!((channel, header.payload_type(), header.payload()[0]), (4, 33, 0x47));
    assert_eq!((Some(header.sequence()), Some(header.timestamp())), (info[0].seq, info[0].rtptime));

    for method in ["OPTIONS", "GET_PARAMETER", "SET_PARAMETER", "PLAY", "PAUSE", "PAUSE", "PLAY"] {
        assert_eq!(client.status(method, "/demo/", &session, "").await, StatusCode::Ok, "{method}");
    }
    client.media.clear();
    let (_, bytes) = client.next_media().await;
    assert!(!bytes.is_empty(), "it goes on after the pause");
    assert_eq!(client.status("TEARDOWN", "/demo/", &session, "").await, StatusCode::Ok);
    while client.next().await.is_some() {}
}

#[tokio::test]
async fn packets_by_udp_come_from_the_ports_named_and_go_nowhere_else() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let rtp = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let port = rtp.local_addr().expect("bound").port();
    let mut client = server.connect().await;
    let elsewhere = format!("Transport: RTP/AVP;unicast;client_port={port};destination=127.0.0.9\r\n");
    assert_eq!(client.status("SETUP", "/demo/trackID=0", &elsewhere, "").await, StatusCode::Forbidden);
    let here = format!("Transport: RTP/AVP;unicast;client_port={port};destination=127.0.0.1\r\n");
    let named = client.play_by_udp("demo", &here).await;
    let mut buffer = [0; 2048];
    let (length, from) =
        timeout(PATIENCE, rtp.recv_from(&mut buffer)).await.expect("in time").expect("received");
    assert_eq!(from.port(), named);
    assert_eq!(RtpHeader::new_checked(&buffer[..length]).expect("RTP").payload_type(), 33);

    drop(client);
    let control = server.relay.control();
    let mut states = control.watch();
    let left = states.wait_for(|state| state.streams.iter().all(|stream| stream.receivers.is_empty()));
    timeout(PATIENCE, left).await.expect("the receiver leaves with its connection").expect("running");
}

#[tokio::test]
async fn packets_by_udp_come_from_the_address_that_was_asked_whatever_routes_say() {
    let server = Server::start("").await;
    server.demo_is_up().await;
    let (mut clients, mut buffer) = (Vec::new(), [0; 2048]);
    // Routes say 127.0.0.1 for all.
    for host in ["127.0.0.2", "127.0.0.1", "127.0.0.3", "127.0.0.2"] {
        let [rtp, rtcp] =
            [UdpSocket::bind("127.0.0.1:0").await, UdpSocket::bind("127.0.0.1:0").await].map(Result::unwrap);
        let [to, reports] = [&rtp, &rtcp].map(|socket| socket.local_addr().expect("bound").port());
        let mut client = server.connect_at(host).await;
        let here = format!("Transport: RTP/AVP;unicast;client_port={to}-{reports}\r\n");
        let named = client.play_by_udp("demo", &here).await;
        for (socket, port) in [(&rtp, named), (&rtcp, named + 1)] {
            let came = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.expect("in time");
            let from = came.expect("received").1;
            assert_eq!(from, std::net::SocketAddr::new(host.parse().expect("an address"), port));
        }
        clients.push(client);
    }
}

#[tokio::test]
async fn packets_by_udp_come_from_the_worker_whose_ports_were_named() {
    let server = Server::start("[limits]\nworkers = 2\nsplit = 1\n").await;
    server.demo_is_up().await;
    let (mut clients, mut ports) = (Vec::new(), BTreeSet::new());
    for _ in 0..2 {
        let rtp = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let port = rtp.local_addr().expect("bound").port();
        let mut client = server.connect().await;
        let here = format!("Transport: RTP/AVP;unicast;client_port={port}\r\n");
        let named = client.play_by_udp("demo", &here).await;
        let from = timeout(PATIENCE, rtp.recv_from(&mut [0; 2048])).await.expect("in time");
        assert_eq!(from.expect("received").1.port(), named);
        ports.insert(named);
        clients.push(client);
    }
    assert_eq!(ports.len(), 2, "each from a worker of its own");
}

#[tokio::test]
async fn what_is_published_within_the_connection_is_played_byte_by_byte() {
    let server = Server::start("").await;
    let mut publisher = server.connect().await;
    publisher.record("Transport: RTP/AVP/TCP;unicast;interleaved=0-1;mode=record\r\n").await;
    let packet = picture(100);
    let prefix = interleaved_prefix(0, packet.len() as u16);
    publisher.tcp.write_all(&[&prefix[..], &packet].concat()).await.expect("sent");

    let mut player = server.connect().await;
    player.play("push").await;
    let (channel, bytes) = loop {
        let media = player.next_media().await;
        if media.0 == 4 {
            break media;
        }
        // The sender report may come first.
    };
    assert_eq!((channel, &bytes[..]), (4, &packet[..]));
}

#[tokio::test]
async fn what_is_published_by_udp_is_played() {
    let server = Server::start("").await;
    let mut publisher = server.connect().await;
    let transport_asked = "Transport: RTP/AVP;unicast;client_port=5000-5001;mode=record\r\n";
    let response = publisher.record(transport_asked).await;
    let to = transport(&response).server_port.expect("ports to send to").rtp;
    let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    udp.send_to(&picture(100), ("127.0.0.1", to)).await.expect("sent");
    let mut player = server.connect().await;
    player.play("push").await;
    while player.next_media().await.0 != 4 {}
    assert_eq!(publisher.status("OPTIONS", "/push", "", "").await, StatusCode::Ok, "the publisher goes on");
}

#[tokio::test]
async fn a_stream_has_one_publisher_whose_place_is_free_once_it_has_left() {
    let server = Server::start("").await;
    let over_tcp = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1;mode=record\r\n";
    let mut first = server.connect().await;
    first.record(over_tcp).await;
    let mut second = server.connect().await;
    let refused = second.ask("ANNOUNCE", "/push", "", ANNOUNCED).await;
    assert_eq!(refused.status(), StatusCode::Forbidden);
    let why = String::from_utf8_lossy(refused.body());
    assert!(why.contains("is being published already") && !why.contains("127.0.0.1"), "{why}");
    assert_eq!(second.status("ANNOUNCE", "/demo", "", ANNOUNCED).await, StatusCode::Forbidden);
    drop(first);
    timeout(PATIENCE, async {
        while second.status("ANNOUNCE", "/push", "", ANNOUNCED).await != StatusCode::Ok {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the place becomes free");
}

#[tokio::test]
async fn tokens_are_asked_for_and_taken_in_each_form() {
    let server = Server::start("[access]\nplay = [\"one\", \"two\"]\npublish = [\"three\"]").await;
    server.demo_is_up().await;
    let mut client = server.connect().await;
    let response = client.ask("DESCRIBE", "/demo", "", "").await;
    assert_eq!(response.status(), StatusCode::Unauthorized);
    let value = response.header(&headers::WWW_AUTHENTICATE).expect("a challenge").as_str();
    let challenge = Challenge::strongest(Challenge::parse_all(value)).expect("one that is parsed");
    assert!(matches!(challenge, Challenge::Digest { .. }), "no password in plain text: {value}");

    let uri = format!("{}/demo", client.base);
    let answer = |password: &str| {
        let credentials = Credentials { user: "any".to_owned(), password: password.to_owned() };
        format!("Authorization: {}\r\n", challenge.answer(&credentials, "DESCRIBE", &uri, 1, "c"))
    };
    assert_eq!(client.status("DESCRIBE", "/demo", &answer("three"), "").await, StatusCode::Unauthorized);
    assert_eq!(client.status("DESCRIBE", "/demo", &answer("two"), "").await, StatusCode::Ok);
    assert_eq!(
        client.status("DESCRIBE", "/demo", "", "").await,
        StatusCode::Ok,
        "the connection is known now"
    );
    assert_eq!(client.status("ANNOUNCE", "/push", "", ANNOUNCED).await, StatusCode::Unauthorized);
    assert_eq!(client.status("ANNOUNCE", "/push?token=three", "", ANNOUNCED).await, StatusCode::Ok);

    let mut client = server.connect().await;
    assert_eq!(client.status("DESCRIBE", "/demo?token=one", "", "").await, StatusCode::Ok);
}

#[tokio::test]
async fn garbage_ends_its_connection_and_is_counted() {
    let server = Server::start("").await;
    for garbage in
        [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/1.1\r\n\r\n", b"SETUP x\r\n\r\n", &[b'A'; 20_000]]
    {
        let mut client = server.connect().await;
        client.tcp.write_all(garbage).await.expect("sent");
        while let Some(item) = client.next().await {
            assert!(matches!(&item, Item::Response(r) if u16::from(r.status()) == 400), "{item:?}");
        }
    }
    assert_eq!(server.relay.control().door().counts().malformed, 4);
}

#[tokio::test]
async fn requests_that_never_end_end_their_connection_and_are_counted() {
    let server = Server::start("").await;
    let mut half = server.connect().await;
    half.tcp.write_all(b"DESCRIBE rtsp://127.0.0.1/demo RTSP/1.0\r\nCSeq").await.expect("sent");
    let mut silent = server.connect().await;
    // Time flies while everyone waits.
    tokio::time::pause();
    assert_eq!(half.tcp.read(&mut [0]).await.ok(), Some(0));
    assert_eq!(silent.tcp.read(&mut [0]).await.ok(), Some(0));
    assert_eq!(server.relay.control().door().counts().slow, 2);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once() {
    let server = Server::start("[limits]\nconnections_per_address = 2").await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    assert_eq!(first.status("OPTIONS", "/", "", "").await, StatusCode::Ok);
    assert_eq!(second.status("OPTIONS", "/", "", "").await, StatusCode::Ok);
    let mut third = server.connect().await;
    assert_eq!(third.next().await, None);
    let counts = server.relay.control().door().counts();
    assert_eq!((counts.open, counts.accepted, counts.refused), (2, 2, 1));
}

#[tokio::test]
async fn what_no_stream_can_be_called_is_refused_as_such() {
    let server = Server::start("").await;
    let mut client = server.connect().await;
    for (path, name) in [("/", ""), ("/a%20b", "a b"), ("/.demo", ".demo"), ("/api/v1", "api/v1")] {
        let expected = outflow_config::check_name(name).expect_err("no name").to_string();
        for (method, body) in [("DESCRIBE", ""), ("ANNOUNCE", ANNOUNCED), ("SETUP", "")] {
            let response = client.ask(method, path, "", body).await;
            let why = String::from_utf8_lossy(response.body());
            assert_eq!(response.status(), StatusCode::NotFound, "{method} {path}: {why}");
            assert!(why.contains(&expected), "{method} {path}: {why}");
        }
    }
}
