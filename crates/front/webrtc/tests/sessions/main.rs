//! A viewer plays by WHEP from a relay in this process, and a publisher sends to it by WHIP, over real sockets.

#![allow(clippy::disallowed_methods, reason = "a test of sockets")]

mod wire;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::{Extension, Router};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use outflow_api::Peer;
use outflow_control::{Control, PublishOptions, Publisher, Push, Relay};
use outflow_dtls::{Clock, Identity};
use outflow_engine::message::ControlError;
use outflow_ice::Credentials;
use outflow_media::{Codec, Format, Time, Track};
use outflow_rtp::{PlainHeader, RtpHeader, rtcp};
use outflow_srtp::{Opener, Sealer};
use outflow_webrtc::testing::Browser;
use tokio::time::timeout;
use tower::ServiceExt as _;
use wire::{Wire, mapped};

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a browser offers, with its fingerprint in the place of `FINGERPRINT`.
const OFFER: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
    a=ice-ufrag:peer\r\n\
    a=ice-pwd:the password of the peer\r\na=fingerprint:sha-256 FINGERPRINT\r\na=setup:actpass\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 103 104\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=recvonly\r\na=rtcp-mux\r\n\
    a=rtpmap:103 H264/90000\r\na=rtcp-fb:103 nack\r\na=rtcp-fb:103 nack pli\r\n\
    a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
    a=rtpmap:104 rtx/90000\r\na=fmtp:104 apt=103\r\n";

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// What stands behind this in a line of a description.
    fn line(&self, start: &str) -> &str {
        self.body.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default()
    }
}

/// A port for UDP and TCP that no other test takes: none of those that the kernel chooses for one of both.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_process = (std::process::id() % 700) as u16;
    20_000 + 16 * of_process + NEXT.fetch_add(1, Ordering::Relaxed)
}

struct Scene {
    relay: Relay,
    router: Router,
}

impl Scene {
    async fn new() -> Self {
        Scene::listening("127.0.0.1").await
    }

    async fn listening(at: &str) -> Self {
        let text = "[listen]\nrtp_ports = \"46600-46799\"\n[limits]\nworkers = 1\n\
                    [webrtc]\naddresses = [\"127.0.0.1\"]\n\
                    [streams.\"live/cam\"]\n[streams.high]\n[streams.low]\n\
                    [streams.both]\nsource = [\"high\", \"low\"]\n";
        let fronts = vec![outflow_front_webrtc::front()];
        let known = fronts.iter().map(|front| front.protocol()).collect();
        let config = outflow_config::Config::parse(text, "test", &known);
        let mut config = config.unwrap_or_else(|errors| panic!("{errors}"));
        config.listen.set("webrtc", Some(SocketAddr::new(at.parse().expect("an address"), port())));
        let relay = Relay::start(config, None, fronts, None).await.expect("started");
        let router = outflow_api::router(relay.control().clone());
        Scene { relay, router }
    }

    fn control(&self) -> &Control {
        self.relay.control()
    }

    async fn publish(&self, track: Track) -> Publisher {
        let options =
            PublishOptions { format: Format::Rtp(vec![track]), peer: "test".to_owned(), configured: false };
        self.control().publish("live/cam", options).await.expect("free")
    }

    async fn ask(&self, method: Method, uri: &str, kind: &str, body: &str) -> Answer {
        self.ask_from("same-origin", (method, uri), kind, body).await
    }

    async fn ask_from(&self, site: &str, (method, uri): (Method, &str), kind: &str, body: &str) -> Answer {
        let request = Request::builder().method(method).uri(uri).header("host", "localhost");
        let request = request.header("sec-fetch-site", site);
        let request = request.header("content-type", kind).body(Body::from(body.to_owned()));
        let peer = Peer {
            address: SocketAddr::from(([127, 0, 0, 1], 9)),
            user: Some(outflow_door::local::own_user()),
        };
        let router = self.router.clone().layer(Extension(peer));
        let response = router.oneshot(request.expect("a request")).await.expect("routers do not fail");
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
    }

    async fn offer(&self, offer: &str) -> Answer {
        self.ask(Method::POST, "/play/live/cam", "application/sdp", offer).await
    }
}

/// What stands behind the name in what begins another ICE session.
const RESTARTS: &str = "a=ice-pwd:the-password-of-the-peer\r\nm=video 9 UDP/TLS/RTP/SAVPF 103\r\na=mid:0\r\n";

/// What the relay is called, and its password.
fn relay(answer: &Answer) -> Credentials {
    let [ufrag, password] = ["a=ice-ufrag:", "a=ice-pwd:"].map(|name| answer.line(name).to_owned());
    Credentials { ufrag, password }
}

/// A viewer that has come.
struct Viewer {
    wire: Wire,
    browser: Browser,
    began: Instant,
    srtp: (Sealer, Opener),
}

impl Viewer {
    fn come(answer: &Answer, identity: &Identity) -> Self {
        Viewer::come_by("udp", answer, identity)
    }

    fn come_by(transport: &str, answer: &Answer, identity: &Identity) -> Self {
        let wire = Wire::new(&answer.body, transport);
        let began = Instant::now();
        let mut browser = Browser::new(Time::ZERO, Clock(began), identity, "peer", relay(answer));
        wire.send(&browser.check());
        let mut buffer = [0; 2048];
        let mut seen = None;
        let srtp = loop {
            let length = wire.recv(&mut buffer).expect("the relay answers");
            seen = seen.or_else(|| mapped(&buffer[..length]));
            browser.handle_datagram(Time::ZERO + began.elapsed(), &buffer[..length]);
            for datagram in browser.sends() {
                wire.send(&datagram);
            }
            if let Some(srtp) = browser.srtp() {
                break srtp;
            }
        };
        assert_eq!(seen, Some(wire.local_addr()), "it learns its own address");
        Viewer { wire, browser, began, srtp }
    }

    /// The next packet: payload type, SSRC, sequence number, payload. RTCP is passed over.
    fn next(&mut self) -> (u8, u32, u16, Vec<u8>) {
        let mut buffer = [0; 2048];
        loop {
            let length = self.wire.recv(&mut buffer).expect("the relay sends");
            let datagram = &mut buffer[..length];
            if datagram[0] < 128 || outflow_rtp::is_rtcp(datagram) {
                self.browser.handle_datagram(Time::ZERO + self.began.elapsed(), datagram);
                continue;
            }
            let length = self.srtp.1.open(datagram).expect("it is sealed");
            let packet = RtpHeader::new_checked(&datagram[..length]).expect("RTP");
            return (packet.payload_type(), packet.ssrc(), packet.sequence(), packet.payload().to_vec());
        }
    }

    fn say(&mut self, mut packet: Vec<u8>) {
        self.srtp.0.seal_control(&mut packet).expect("RTCP");
        self.wire.send(&packet);
    }
}

fn picture(sequence: u16, is_key: bool) -> BytesMut {
    let timestamp = 5_000 + u32::from(sequence) * 3_600;
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
    let mut packet = BytesMut::from(&header.emit()[..]);
    packet.extend_from_slice(if is_key { &[0x65, 0xb0] } else { &[0x41, 0x9a] });
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet
}

fn identity() -> (Identity, String) {
    let identity = Identity::generate().expect("a certificate");
    let offer = OFFER.replace("FINGERPRINT", &identity.fingerprint().to_string());
    (identity, offer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_is_answered_found_sent_to_and_heard() {
    let scene = Scene::new().await;
    let mut camera = scene.publish(Track::h264()).await;
    let mut feedback = camera.take_feedback();
    assert_eq!(camera.try_send(0, picture(40_000, true)), Push::Taken);
    let (identity, offer) = identity();
    let answer = scene.offer(&offer).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::CREATED, "application/sdp"));
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(answer.body.contains("a=setup:passive") && answer.body.contains("a=sendonly"), "{}", answer.body);

    let mut viewer = Viewer::come(&answer, &identity);
    let (kind, ssrc, first, payload) = viewer.next();
    assert_eq!((kind, &payload[..]), (103, &[0x65, 0xb0, 0x9c, 0x40][..]), "from the key frame on");
    assert!(answer.body.contains(&format!("a=ssrc:{ssrc} ")), "{}", answer.body);
    for sequence in [40_001, 40_003] {
        camera.try_send(0, picture(sequence, false));
    }
    let numbers = [(); 2].map(|()| viewer.next().2.wrapping_sub(first));
    assert_eq!(numbers, [1, 3], "what the camera's network has lost is missing here, too");

    viewer.say(rtcp::lost(9, ssrc, &[first.wrapping_add(3)], "x"));
    let (kind, repair, _, payload) = viewer.next();
    assert_eq!((kind, &payload[..2]), (104, &first.wrapping_add(3).to_be_bytes()[..]));
    assert!(answer.body.contains(&format!("a=ssrc-group:FID {ssrc} {repair}")), "{}", answer.body);

    viewer.say(rtcp::key_frame_request(9, ssrc, 1, "x"));
    let wanted = timeout(PATIENCE, feedback.key_frame()).await.expect("in time");
    assert_eq!(wanted, 0, "a key frame of its track");

    let session = answer.header("location").to_owned();
    let change = |name| {
        let body = format!("a=ice-ufrag:{name}\r\n{RESTARTS}");
        let scene = &scene;
        let session = &session;
        let kind = "application/trickle-ice-sdpfrag";
        async move { scene.ask(Method::PATCH, session, kind, &body).await }
    };
    assert_eq!(change("peer").await.status, StatusCode::NO_CONTENT);
    assert_eq!(change("abc").await.status, StatusCode::UNPROCESSABLE_ENTITY, "it is too short");
    let restarted = change("other").await;
    assert_eq!((restarted.status, restarted.header("etag")), (StatusCode::OK, "\"2\""));
    assert_eq!((restarted.line("a=mid:"), restarted.line("m=").is_empty()), ("0", false));
    // It comes from elsewhere, by the names that hold now.
    viewer.wire = Wire::new(&restarted.body, "udp");
    viewer.browser.restart("other", relay(&restarted));
    viewer.wire.send(&viewer.browser.check());
    let mut buffer = [0; 2048];
    let length = viewer.wire.recv(&mut buffer).expect("the relay answers");
    assert_eq!(mapped(&buffer[..length]), Some(viewer.wire.local_addr()));
    assert_eq!(scene.ask(Method::DELETE, &session, "", "").await.status, StatusCode::OK);
    assert_eq!(scene.ask(Method::DELETE, &session, "", "").await.status, StatusCode::NOT_FOUND);
    let mut states = scene.control().watch();
    let gone = states.wait_for(|state| state.streams.iter().all(|stream| stream.receivers.is_empty()));
    timeout(PATIENCE, gone).await.expect("in time").expect("it runs");
    scene.relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_the_relay_ends_is_told() {
    let scene = Scene::new().await;
    let camera = scene.publish(Track::h264()).await;
    camera.try_send(0, picture(1, true));
    let (identity, offer) = identity();
    let answer = scene.offer(&offer).await;
    let mut viewer = Viewer::come(&answer, &identity);
    viewer.next();
    scene.relay.shut_down();
    let mut buffer = [0; 2048];
    while !viewer.browser.is_closed() {
        let length = viewer.wire.recv(&mut buffer).expect("it is told");
        viewer.browser.handle_datagram(Time::ZERO + viewer.began.elapsed(), &buffer[..length]);
        viewer.browser.sends();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_publisher_sends_is_played() {
    publishes_and_plays_by("udp", "127.0.0.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_whose_networks_have_no_udp_publish_and_play_by_tcp() {
    publishes_and_plays_by("tcp", "127.0.0.1").await;
    // The relay knows by which of its addresses it was reached.
    publishes_and_plays_by("tcp", "::").await;
}

async fn publishes_and_plays_by(transport: &str, at: &str) {
    let scene = Scene::listening(at).await;
    let (identity, offer) = identity();
    let to_send = offer.replace("recvonly", "sendonly");
    let answer = scene.ask(Method::POST, "/publish/live/cam", "application/sdp", &to_send).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    assert!(
        answer.body.contains("a=recvonly") && answer.body.contains("a=rtcp-fb:103 nack pli"),
        "{}",
        answer.body
    );
    let mut publisher = Viewer::come_by(transport, &answer, &identity);
    let second = scene.ask(Method::POST, "/publish/live/cam", "application/sdp", &to_send).await;
    assert_eq!(second.status, StatusCode::CONFLICT, "it has a publisher");
    let send = |publisher: &Viewer, sequence, is_key| {
        let mut packet = picture(sequence, is_key).to_vec();
        outflow_rtp::set_payload_type(&mut packet, 103);
        publisher.srtp.0.seal(&mut packet, 0, 0).expect("RTP");
        publisher.wire.send(&packet);
    };
    send(&publisher, 100, true);
    let mut states = scene.control().watch();
    let up = states.wait_for(|state| state.streams.iter().any(|stream| stream.source.up));
    timeout(PATIENCE, up).await.expect("in time").expect("it runs");

    let answer = scene.offer(&offer).await;
    let mut viewer = Viewer::come_by(transport, &answer, &identity);
    let (_, ssrc, first, payload) = viewer.next();
    assert_eq!(payload, [0x65, 0xb0, 0, 100]);
    send(&publisher, 101, false);
    assert_eq!(viewer.next().2, first.wrapping_add(1));
    // What the viewer wants goes on to the publisher.
    viewer.say(rtcp::key_frame_request(9, ssrc, 1, "x"));
    let mut buffer = [0; 2048];
    loop {
        let length = publisher.wire.recv(&mut buffer).expect("it is asked");
        if buffer[0] < 128 {
            continue;
        }
        let length = publisher.srtp.1.open_control(&mut buffer[..length]).expect("it is sealed");
        let mut is_wanted = false;
        let told = |report| is_wanted |= matches!(report, rtcp::Report::KeyFrame { media: 7, .. });
        rtcp::read(&buffer[..length], told).expect("RTCP");
        if is_wanted {
            break;
        }
    }
    publisher.browser.close();
    for datagram in publisher.browser.sends() {
        publisher.wire.send(&datagram);
    }
    let down = states.wait_for(|state| state.streams.iter().all(|stream| !stream.source.up));
    timeout(PATIENCE, down).await.expect("in time").expect("it runs");
    scene.relay.shut_down();
}

/// A packet of a layer, which names it.
fn of_layer(rid: u8, (ssrc, sequence): (u32, u16), bytes: usize) -> Vec<u8> {
    let header = PlainHeader { marker: true, payload_type: 103, sequence, timestamp: 9_000, ssrc };
    let mut packet = header.emit().to_vec();
    packet[0] |= 0x10;
    packet.extend_from_slice(&[0xbe, 0xde, 0, 1, 8 << 4, rid, 0, 0, 0x65, 0xb0, rid]);
    packet.resize(packet.len() + bytes, 0);
    packet
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_of_a_publisher_are_the_levels_of_a_stream_that_has_renditions() {
    let scene = Scene::new().await;
    let (identity, offer) = identity();
    let layers = "a=sendonly\r\na=extmap:8 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n\
                  a=rid:l send\r\na=rid:h send\r\na=simulcast:send l;h\r\n";
    let to_send = offer.replace("a=recvonly\r\n", layers);
    let publish = |stream: &'static str| {
        let (scene, to_send) = (&scene, &to_send);
        async move { scene.ask(Method::POST, stream, "application/sdp", to_send).await }
    };
    let answer = publish("/publish/both").await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    assert!(answer.body.contains("a=simulcast:recv l;h"), "{}", answer.body);
    assert_eq!(publish("/publish/low").await.status, StatusCode::CONFLICT, "it is published with the other");
    let mut publisher = Viewer::come(&answer, &identity);
    let send = |rid, ssrc, sequence, bytes| {
        let mut packet = of_layer(rid, (ssrc, sequence), bytes);
        publisher.srtp.0.seal(&mut packet, 0, 0).expect("RTP");
        publisher.wire.send(&packet);
    };
    send(b'l', 70, 1, 100);
    send(b'h', 71, 1, 900);
    let mut states = scene.control().watch();
    let up = states.wait_for(|state| state.streams.iter().filter(|stream| stream.source.up).count() == 3);
    timeout(PATIENCE, up).await.expect("in time").expect("both, and what has them");

    for (query, rid) in [("", b'h'), ("?level=2", b'l')] {
        let uri = format!("/play/both{query}");
        let answer = scene.ask(Method::POST, &uri, "application/sdp", &offer).await;
        let payload = Viewer::come(&answer, &identity).next().3;
        assert_eq!(payload[..3], [0x65, 0xb0, rid], "{query}");
    }
    let plain = publish("/publish/live/cam").await;
    assert!(
        plain.body.contains("a=simulcast:recv l\r\n"),
        "of one without renditions the first: {}",
        plain.body
    );
    publisher.browser.close();
    scene.relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_with_what_to_do() {
    let scene = Scene::new().await;
    let (_, offer) = identity();
    let status = |answer: &Answer| answer.status.as_u16();
    let nothing = scene.offer(&offer).await;
    let busy = ControlError::NoSource("live/cam".to_owned());
    assert!(status(&nothing) == 503 && nothing.body.contains(&busy.to_string()), "{}", nothing.body);
    let codec = Codec::Opus;
    let sound =
        Track { codec, clock_rate: 48_000, channels: 2, encoding: "opus".to_owned(), ..Track::h264() };
    let _camera = scene.publish(sound).await;
    let other = scene.offer(&offer).await;
    assert!(status(&other) == 415 && other.body.contains("has opus"), "{}", other.body);
    let expectations: [(&str, String, u16, &str); 4] = [
        ("text/plain", offer.clone(), 415, "application/sdp"),
        ("application/sdp", "v=0\r\n".to_owned(), 400, "offer"),
        ("application/sdp", offer.replace("actpass", "passive"), 400, "a=setup:actpass"),
        ("application/sdp", "x".repeat(70_000), 413, "larger than"),
    ];
    for (kind, body, expected, says) in expectations {
        let answer = scene.ask(Method::POST, "/play/live/cam", kind, &body).await;
        assert!(status(&answer) == expected && answer.body.contains(says), "{expected}: {}", answer.body);
        assert_eq!(answer.header("access-control-allow-origin"), "*", "a page can read it");
    }
    let unknown = scene.ask(Method::POST, "/play/other", "application/sdp", &offer).await;
    assert_eq!(status(&unknown), 404);
    let before = scene.ask(Method::OPTIONS, "/play/live/cam", "", "").await;
    assert_eq!(
        (status(&before), before.header("access-control-allow-headers").contains("Authorization")),
        (204, true)
    );
    scene.relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_there_for_all_and_none_frames_the_one_that_publishes() {
    let scene = Scene::new().await;
    let get = |uri: &'static str| {
        let scene = &scene;
        async move { scene.ask_from("cross-site", (Method::GET, uri), "", "").await }
    };
    for (page, is_framed) in [("/play/live/cam", true), ("/publish/live/cam", false)] {
        let answer = get(page).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{page}: {policy}");
        assert_eq!(policy.contains("frame-ancestors 'none'"), !is_framed, "{page}: {policy}");
        let assets = answer.body.split('"').filter(|text| text.starts_with("/assets/"));
        for asset in assets.filter(|path| *path != "/assets/icon.svg") {
            let found = scene.ask(Method::GET, asset, "", "").await;
            assert_eq!(found.status, StatusCode::OK, "{asset}");
        }
    }
    let (_, offer) = identity();
    let offer = offer.replace("recvonly", "sendonly");
    let publish = (Method::POST, "/publish/live/cam");
    let other = scene.ask_from("cross-site", publish, "application/sdp", &offer).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN, "{}", other.body);
    let relay: String = scene.ask(Method::GET, "/api/v1/relay", "", "").await.body;
    assert!(relay.contains("\"/play/\"") && relay.contains("\"/publish/\""), "{relay}");
    scene.relay.shut_down();
}
