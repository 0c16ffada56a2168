//! Subscriptions to senders of the test's own, over loopback.
#![allow(clippy::disallowed_methods, reason = "tests own their sockets")]

use std::net::SocketAddr;
use std::time::Duration;

use outflow_client::measure::Measure;
use outflow_client::{Error, Lower, Options, Packet, Received, Subscription, subscribe};
use outflow_media::{Format, Time};
use outflow_rtp::PlainHeader;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

fn options() -> Options {
    Options { silence: PATIENCE, patience: PATIENCE, ..Options::default() }
}

/// A packet of the null PID, told apart by its last byte.
fn ts_packet(number: u8) -> [u8; 188] {
    let mut packet = [0xff; 188];
    packet[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
    packet[187] = number;
    packet
}

fn rtp(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let timestamp = u32::from(sequence) * 3600;
    let header = PlainHeader { marker: true, payload_type: 96, sequence, timestamp, ssrc: 7 };
    [&header.emit()[..], payload].concat()
}

async fn packet(subscription: &mut Subscription) -> Packet {
    loop {
        let received = tokio::time::timeout(PATIENCE, subscription.recv()).await.expect("in time");
        if let Received::Packet(packet) = received.expect("a packet") {
            return packet;
        }
    }
}

/// A port that is free, with a free one above it.
async fn free_ports() -> (UdpSocket, SocketAddr) {
    loop {
        let probe = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let at = probe.local_addr().expect("bound");
        let above = at.port().checked_add(1);
        if at.port() % 2 == 0
            && let Some(above) = above
            && UdpSocket::bind(("127.0.0.1", above)).await.is_ok()
        {
            drop(probe);
            return (UdpSocket::bind("127.0.0.1:0").await.expect("a port to send from"), at);
        }
    }
}

/// Answers each connection with the next of `answers`, and returns what was asked.
async fn http_server(answers: Vec<Vec<u8>>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let task = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut tcp, _) = listener.accept().await.expect("accepted");
            asked.push(read_request(&mut tcp).await);
            tcp.write_all(&answer).await.expect("answered");
        }
        asked
    });
    (port, task)
}

async fn read_request(tcp: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        assert_ne!(tcp.read_buf(&mut text).await.expect("readable"), 0);
    }
    String::from_utf8(text).expect("text")
}

#[tokio::test]
async fn http_is_followed_through_redirections_and_chunks() {
    let stream: Vec<u8> = (0..10).flat_map(ts_packet).collect();
    let mut body = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in stream.chunks(500) {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let moved = b"HTTP/1.1 302 Found\r\nLocation: /moved.ts?x=y\r\n\r\n".to_vec();
    let (port, server) = http_server(vec![moved, body]).await;

    let options = Options { token: Some("secret".to_owned()), ..options() };
    let mut subscription =
        subscribe(&format!("http://127.0.0.1:{port}/a.ts"), options).await.expect("subscribed");
    assert_eq!(*subscription.format(), Format::Ts);
    let mut got = Vec::new();
    while got.len() < stream.len() {
        got.extend_from_slice(&packet(&mut subscription).await.bytes);
    }
    assert_eq!(got, stream);
    assert!(matches!(subscription.recv().await, Err(Error::Ended)));
    let asked = server.await.expect("served");
    assert!(asked[0].starts_with("GET /a.ts HTTP/1.1\r\n") && asked[1].starts_with("GET /moved.ts?x=y "));
    assert!(asked.iter().all(|asked| asked.contains("Authorization: Bearer secret\r\n")), "the same host");
}

#[tokio::test]
async fn http_errors_say_what_to_do() {
    let (port, _server) = http_server(vec![b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec()]).await;
    let error = subscribe(&format!("http://127.0.0.1:{port}/a.ts"), options()).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the server answered 404 Not Found (no such stream: check the path of the URL)"
    );

    let (port, _server) = http_server(vec![b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()]).await;
    let error = subscribe(&format!("http://127.0.0.1:{port}/a.ts"), options()).await.expect_err("nonsense");
    assert!(error.to_string().contains("not HTTP"), "{error}");
}

#[tokio::test]
async fn datagrams_are_received_and_what_is_no_transport_stream_is_counted() {
    let (sender, to) = free_ports().await;
    let mut subscription = subscribe(&format!("udp://{to}"), options()).await.expect("subscribed");
    for datagram in [&b"garbage"[..], &ts_packet(1), &[ts_packet(2), ts_packet(3)].concat()] {
        sender.send_to(datagram, to).await.expect("sent");
    }
    assert_eq!(packet(&mut subscription).await.bytes, ts_packet(1)[..]);
    assert_eq!(packet(&mut subscription).await.bytes.len(), 376);
    assert_eq!(subscription.rejected().malformed, 1);
}

#[tokio::test]
async fn rtp_is_received_as_described_measured_and_reported_on() {
    let (sender, to) = free_ports().await;
    let sdp = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
               m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";
    let options = Options { sdp: Some(sdp.to_owned()), ..options() };
    let mut subscription = subscribe(&format!("rtp://{to}"), options).await.expect("subscribed");
    let mut measure = Measure::new(subscription.format(), Time::ZERO);
    // A key frame every fourth picture; one picture is lost.
    for sequence in (0..12).filter(|sequence| *sequence != 6) {
        let payload: &[u8] = if sequence % 4 == 0 { &[0x65, 0x88, 0x80] } else { &[0x41, 0x9a, 0x80] };
        sender.send_to(&rtp(sequence, payload), to).await.expect("sent");
        measure.received(&Received::Packet(packet(&mut subscription).await));
    }
    let summary = measure.summary(subscription.now());
    assert_eq!((summary.packets, summary.lost, summary.key_frames), (11, 1, 3));
    assert_eq!((summary.frames, summary.decodable_frames), (11, 10), "all but the one behind the hole");
}

#[tokio::test]
async fn silence_ends_it_with_advice() {
    let (_, to) = free_ports().await;
    let options = Options { silence: Duration::from_millis(50), ..options() };
    let mut subscription = subscribe(&format!("udp://{to}"), options).await.expect("subscribed");
    // A caller that waits may wait for other things, too, again and again.
    let error = loop {
        if let Ok(received) = tokio::time::timeout(Duration::from_millis(10), subscription.recv()).await {
            break received.expect_err("nothing comes");
        }
    };
    assert!(error.to_string().contains("does the sender send to this address"), "{error}");
}

/// Serves one session: answers every request, and sends `media` behind the answer to PLAY.
async fn rtsp_server(transport: &'static str, media: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.expect("accepted");
        loop {
            let request = read_request(&mut tcp).await;
            let cseq = request.split("CSeq: ").nth(1).and_then(|text| text.lines().next()).expect("a number");
            let sdp = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n\
                       m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n";
            let (headers, body) = match request.split(' ').next().expect("a method") {
                "DESCRIBE" => (String::new(), sdp),
                "SETUP" if request.contains("client_port") && transport.contains("TCP") => {
                    let refused = format!("RTSP/1.0 461 Unsupported Transport\r\nCSeq: {cseq}\r\n\r\n");
                    tcp.write_all(refused.as_bytes()).await.expect("refused");
                    continue;
                }
                "SETUP" => (format!("Session: 9\r\nTransport: {transport}\r\n"), ""),
                _ => ("Session: 9\r\n".to_owned(), ""),
            };
            let length = body.len();
            let answer =
                format!("RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
            tcp.write_all(answer.as_bytes()).await.expect("answered");
            if request.starts_with("PLAY") {
                tcp.write_all(&media).await.expect("sent");
            }
        }
    });
    port
}

#[tokio::test]
async fn rtsp_falls_back_to_tcp_and_yields_the_packets_within_the_connection() {
    let packets = [rtp(1, &[0x65, 0x88]), rtp(2, &[0x41, 0x9a])];
    let framed = packets.iter().flat_map(|packet| {
        let prefix = outflow_rtsp::interleaved_prefix(0, packet.len() as u16);
        [&prefix[..], packet].concat()
    });
    let port = rtsp_server("RTP/AVP/TCP;unicast;interleaved=0-1", framed.collect()).await;
    let options = Options { transport: Lower::Udp, ..options() };
    let mut subscription =
        subscribe(&format!("rtsp://127.0.0.1:{port}/s"), options).await.expect("subscribed");
    for expected in &packets {
        assert_eq!(packet(&mut subscription).await.bytes, expected[..]);
    }
    subscription.close().await;
}

#[tokio::test]
async fn an_rtsp_server_that_is_silent_is_given_up() {
    let port = rtsp_server("RTP/AVP/TCP;unicast;interleaved=0-1", Vec::new()).await;
    let options = Options { silence: Duration::from_millis(50), ..options() };
    let mut subscription =
        subscribe(&format!("rtsp://127.0.0.1:{port}/s"), options).await.expect("subscribed");
    assert!(matches!(subscription.recv().await, Err(Error::Silence { .. })));
}

#[tokio::test]
async fn urls_that_cannot_be_received_are_told_so() {
    for (url, word) in [
        ("ftp://h/x", "none of"),
        ("nonsense", "relative URL"),
        ("udp://0.0.0.0", "no port"),
        ("udp://camera:5000", "an address of this machine"),
    ] {
        let error = subscribe(url, options()).await.expect_err("refused").to_string();
        assert!(error.contains(word), "{url}: {error}");
    }
}
