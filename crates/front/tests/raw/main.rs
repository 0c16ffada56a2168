//! What a new protocol needs: one folder, and a line in a list of fronts. It publishes and plays.

#![allow(clippy::disallowed_methods, reason = "a test of sockets")]

mod front;

use std::net::SocketAddr;
use std::time::Duration;

use outflow_config::{Config, Protocols};
use outflow_control::{Front as _, Relay};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

static CLIP: &[u8] = include_bytes!("../../../../assets/demo.ts");

/// A relay that has no other protocol, and where it listens.
async fn relay() -> (Relay, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = free.local_addr().expect("bound");
    drop(free);
    let text = format!("[listen]\nraw = \"{at}\"\nrtp_ports = \"46600-46799\"\n[streams.live]\n");
    let known = Protocols::from_iter([front::Raw.protocol()]);
    let config = Config::parse(&text, "test", &known).unwrap_or_else(|errors| panic!("{errors}"));
    (Relay::start(config, None, vec![front::front()], None).await.expect("started"), at)
}

async fn ask(at: SocketAddr, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(at).await.expect("it listens");
    socket.write_all(format!("{request}\n").as_bytes()).await.expect("sent");
    socket
}

/// Sends the clip, packet by packet, until the relay closes the connection.
async fn send_clip(mut camera: TcpStream) {
    for packet in CLIP.chunks_exact(188).cycle() {
        let line: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        if camera.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_by_lines_is_played() {
    let (relay, at) = relay().await;
    let camera = tokio::spawn(send_clip(ask(at, "publish live").await));
    let mut player = ask(at, "play live").await;
    let mut media = vec![0; 188 * 200];
    timeout(PATIENCE, player.read_exact(&mut media)).await.expect("in time").expect("all of it");
    assert!(media.chunks(188).all(|packet| packet[0] == 0x47), "packets of a transport stream");
    // A program's tables come first, and each packet of the clip is one that was sent.
    assert!(media.chunks(188).all(|packet| packet[1] & 0x80 == 0), "without errors");
    camera.abort();
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said() {
    let (relay, at) = relay().await;
    for (request, said) in [
        ("play nothing", "error: no stream named 'nothing' is configured"),
        ("publish a b", "error: 'a b' is no name for a stream"),
        ("record live", "error: write publish NAME or play NAME"),
    ] {
        let mut socket = ask(at, request).await;
        let mut answer = String::new();
        timeout(PATIENCE, socket.read_to_string(&mut answer)).await.expect("in time").expect("a text");
        assert!(answer.starts_with(said), "{request}: {answer}");
    }
    relay.shut_down();
}
