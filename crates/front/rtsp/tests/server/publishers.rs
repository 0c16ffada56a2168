//! Publishers: when one takes the place of another, when one is let go, and what they are told.

use std::time::Duration;

use outflow_rtp::RtpHeader;
use outflow_rtsp::{StatusCode, interleaved_prefix};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::{ANNOUNCED, Client, PATIENCE, Server, picture, session};

const OVER_TCP: &str = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1;mode=record\r\n";

impl Client {
    async fn send_picture(&mut self, sequence: u16) {
        let packet = picture(sequence);
        let prefix = interleaved_prefix(0, packet.len() as u16);
        self.tcp.write_all(&[&prefix[..], &packet].concat()).await.expect("sent");
    }

    /// Announces until it may, and records.
    async fn record_once_it_may(&mut self) {
        let announced = async {
            while self.status("ANNOUNCE", "/push", "", ANNOUNCED).await != StatusCode::Ok {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, announced).await.expect("it may in time");
        let response = self.ask("SETUP", "/push/streamid=0", OVER_TCP, "").await;
        assert_eq!(self.status("RECORD", "/push", &session(&response), "").await, StatusCode::Ok);
    }

    /// Asks for options again and again, until the relay ends the connection.
    async fn live_by_words(mut self) {
        let options = async {
            loop {
                self.cseq += 1;
                let text = format!("OPTIONS {} RTSP/1.0\r\nCSeq: {}\r\n\r\n", self.base, self.cseq);
                if self.tcp.write_all(text.as_bytes()).await.is_err() || self.next().await.is_none() {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, options).await.expect("the relay ends it in time");
    }

    /// The sequence number of the next packet.
    async fn next_sequence(&mut self) -> u16 {
        loop {
            // A sender report may come between.
            if let (4, bytes) = self.next_media().await {
                return RtpHeader::new_checked(&bytes).expect("RTP").sequence();
            }
        }
    }
}

#[tokio::test]
async fn one_that_only_talks_is_taken_over_and_viewers_stay() {
    let server = Server::start("[defaults]\nsource_timeout = \"200 ms\"\n").await;
    let mut first = server.connect().await;
    first.record(OVER_TCP).await;
    first.send_picture(100).await;
    let mut player = server.connect().await;
    let mut second = server.connect().await;
    while player.status("DESCRIBE", "/push", "", "").await != StatusCode::Ok {
        sleep(Duration::from_millis(10)).await;
    }
    player.play("push").await;
    let before = player.next_sequence().await;
    let talking = tokio::spawn(first.live_by_words());

    second.record_once_it_may().await;
    for sequence in 7..10 {
        second.send_picture(sequence).await;
    }
    for further in 1..4 {
        let sequence = player.next_sequence().await;
        assert_eq!(sequence, before.wrapping_add(further), "its numbers go on");
    }
    talking.await.expect("the first one is told");
    let ended = server.relay.control().ended_turns();
    assert_eq!((ended.taken_over, ended.no_media), (1, 0));
}

#[tokio::test]
async fn the_newest_one_publishes_where_the_stream_says_so() {
    let server = Server::start("[defaults]\ntakeover = \"always\"\nsource_timeout = \"1 h\"\n").await;
    let mut first = server.connect().await;
    first.record(OVER_TCP).await;
    first.send_picture(100).await;
    let mut second = server.connect().await;
    second.record(OVER_TCP).await;
    first.live_by_words().await;
    assert_eq!(second.status("OPTIONS", "/push", "", "").await, StatusCode::Ok);
    assert_eq!(server.relay.control().ended_turns().taken_over, 1);
}

#[tokio::test]
async fn none_is_taken_over_where_the_stream_says_so() {
    let server = Server::start("[defaults]\ntakeover = \"never\"\nsource_timeout = \"100 ms\"\n").await;
    let mut first = server.connect().await;
    first.record(OVER_TCP).await;
    sleep(Duration::from_millis(300)).await;
    let mut second = server.connect().await;
    assert_eq!(second.status("ANNOUNCE", "/push", "", ANNOUNCED).await, StatusCode::Forbidden);
    assert_eq!(first.status("OPTIONS", "/push", "", "").await, StatusCode::Ok);
}

#[tokio::test]
async fn one_that_never_sends_media_is_let_go() {
    let server = Server::start("[defaults]\npublish_timeout = \"2 s\"\n").await;
    let mut recording = server.connect().await;
    recording.record(OVER_TCP).await;
    recording.live_by_words().await;
    assert_eq!(server.relay.control().ended_turns().no_media, 1);
    // One that has announced, and no more, holds no place, but would hold ports.
    let mut announcing = server.connect().await;
    assert_eq!(announcing.status("ANNOUNCE", "/push", "", ANNOUNCED).await, StatusCode::Ok);
    announcing.live_by_words().await;
    assert_eq!(server.relay.control().ended_turns().no_media, 2);
    server.connect().await.record(OVER_TCP).await;
}

#[tokio::test]
async fn one_by_udp_that_sends_no_media_any_more_is_let_go() {
    let server =
        Server::start("[defaults]\npublish_timeout = \"2500 ms\"\nsource_timeout = \"2500 ms\"\n").await;
    let mut publisher = server.connect().await;
    let by_udp = "Transport: RTP/AVP;unicast;client_port=5000-5001;mode=record\r\n";
    let response = publisher.record(by_udp).await;
    let to = super::transport(&response).server_port.expect("ports to send to").rtp;
    let udp = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    for sequence in 0..60 {
        udp.send_to(&picture(sequence), ("127.0.0.1", to)).await.expect("sent");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(publisher.status("OPTIONS", "/push", "", "").await, StatusCode::Ok, "media keeps it");
    publisher.live_by_words().await;
    assert_eq!(server.relay.control().ended_turns().no_media, 1);
}

#[tokio::test]
async fn none_is_told_where_the_source_is() {
    let source = "rtsp://u:p4ss@127.0.0.1:1/x?token=s3cret&password=p4ss";
    let server = Server::start(&format!("[streams.cam]\nsource = \"{source}\"\n")).await;
    let mut client = server.connect().await;
    let refused = client.ask("ANNOUNCE", "/cam", "", ANNOUNCED).await;
    assert_eq!(refused.status(), StatusCode::Forbidden);
    let why = String::from_utf8_lossy(refused.body());
    assert!(why.contains("takes no publisher"), "{why}");
    for secret in ["s3cret", "p4ss", "127.0.0.1"] {
        assert!(!why.contains(secret), "{why}");
    }
}
