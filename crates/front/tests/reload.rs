//! What a reload does to a relay that runs.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use outflow_control::{Relay, load};

fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    socket.local_addr().expect("address").port()
}

fn configuration(streams: &str) -> String {
    format!(
        "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"26000-26199\"\n[limits]\nworkers = 1\n{streams}"
    )
}

async fn start(path: &Path) -> Relay {
    let config = load(path, &outflow_fronts::protocols()).expect("valid");
    Relay::start(config, Some(path.to_owned()), outflow_fronts::all()).await.expect("started")
}

/// A null packet of a transport stream.
fn null_packet() -> [u8; 188] {
    let mut packet = [0xff; 188];
    packet[..4].copy_from_slice(&[0x47, 0x1f, 0xff, 0x10]);
    packet
}

/// Sends to `port` until stream `name` is up.
async fn send_until_up(relay: &Relay, port: u16, name: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let until = Instant::now() + Duration::from_secs(10);
    let is_up = |relay: &Relay| relay.control().state().streams.iter().any(|s| s.name == name && s.source.up);
    while !is_up(relay) {
        assert!(Instant::now() < until, "{name} never came up");
        socket.send_to(&null_packet(), ("127.0.0.1", port)).expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_stream_gets_the_port_of_the_old_one() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let port = free_port();
    let named =
        |name: &str| configuration(&format!("[streams.{name}]\nsource = \"udp://127.0.0.1:{port}\"\n"));
    std::fs::write(&path, named("before")).expect("written");
    let relay = start(&path).await;
    send_until_up(&relay, port, "before").await;
    std::fs::write(&path, named("after")).expect("written");
    let lines = relay.control().reload().await.expect("valid");
    assert_eq!(lines, ["stream 'before' removed", "stream 'after' added"]);
    send_until_up(&relay, port, "after").await;
    assert!(relay.control().describe("before", Default::default()).await.is_err());
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_made_is_told_and_the_rest_is_made() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    std::fs::write(&path, configuration("")).expect("written");
    let relay = start(&path).await;
    let taken = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let (taken_port, port) = (taken.local_addr().expect("address").port(), free_port());
    let text = format!(
        "[streams.a]\nsource = \"udp://127.0.0.1:{taken_port}\"\n[streams.b]\nsource = \"udp://127.0.0.1:{port}\"\n"
    );
    std::fs::write(&path, configuration(&text)).expect("written");
    let lines = relay.control().reload().await.expect("valid");
    assert!(lines.iter().any(|line| line.starts_with("stream 'a' is not as configured: ")), "{lines:?}");
    send_until_up(&relay, port, "b").await;
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_not_valid_changes_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let port = free_port();
    let good = configuration(&format!("[streams.a]\nsource = \"udp://127.0.0.1:{port}\"\n"));
    std::fs::write(&path, &good).expect("written");
    let relay = start(&path).await;
    std::fs::write(&path, good.replace("source", "sauce")).expect("written");
    let error = relay.control().reload().await.expect_err("an unknown key").to_string();
    assert!(error.contains("sauce"), "{error}");
    send_until_up(&relay, port, "a").await;
    relay.shut_down();
}
