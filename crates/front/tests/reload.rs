//! What a reload does to a relay that runs.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use outflow_control::{Relay, load};
use outflow_relay::Encapsulation;
use rustix::fs::{CWD, FileType, Mode, mknodat};

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
    Relay::start(config, Some(path.to_owned()), outflow_fronts::all(), None).await.expect("started")
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
    let lines = relay.control().reload(false).await.expect("valid").lines;
    assert_eq!(lines, ["stream 'before' removed", "stream 'after' added"]);
    send_until_up(&relay, port, "after").await;
    assert!(relay.control().describe("before", Default::default(), Encapsulation::Rtp).await.is_err());
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
    let lines = relay.control().reload(false).await.expect("valid").failed;
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
    let error = relay.control().reload(false).await.expect_err("an unknown key").to_string();
    assert!(error.contains("sauce"), "{error}");
    send_until_up(&relay, port, "a").await;
    relay.shut_down();
}

/// Six streams of sockets, at these ports.
fn six(ports: &[u16]) -> String {
    let stream = |(n, port): (usize, &u16)| format!("[streams.s{n}]\nsource = \"udp://127.0.0.1:{port}\"\n");
    configuration(&ports.iter().enumerate().map(stream).collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_empty_or_half_written_removes_nothing_unless_that_is_meant() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let ports: Vec<u16> = (0..6).map(|_| free_port()).collect();
    let whole = six(&ports);
    std::fs::write(&path, &whole).expect("written");
    let relay = start(&path).await;
    let tables: Vec<usize> = whole.match_indices("[streams.").map(|(at, _)| at).collect();
    let within_a_line = whole.len() - 2;
    for cut in [0, tables[0], tables[1], tables[2], within_a_line] {
        std::fs::write(&path, &whole[..cut]).expect("written");
        let error = relay.control().reload(false).await.expect_err("cut off").to_string();
        assert!(error.contains("half written"), "{cut}: {error}");
    }
    for (n, port) in ports.iter().enumerate() {
        send_until_up(&relay, *port, &format!("s{n}")).await;
    }
    std::fs::write(&path, "").expect("written");
    let reloaded = relay.control().reload(true).await.expect("meant");
    assert!(reloaded.lines.iter().filter(|line| line.ends_with("removed")).count() == 6, "{reloaded:?}");
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_made_is_as_before_and_is_made_as_soon_as_it_can() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let (port, free) = (free_port(), free_port());
    let taken = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let taken_port = taken.local_addr().expect("address").port();
    let at = |port: u16, ring: &str| {
        configuration(&format!("[streams.a]\nsource = \"udp://127.0.0.1:{port}\"\nring = \"{ring}\"\n"))
    };
    std::fs::write(&path, at(port, "8 MB")).expect("written");
    let relay = start(&path).await;
    send_until_up(&relay, port, "a").await;
    let added = format!("{}[streams.b]\nsource = \"udp://127.0.0.1:{free}\"\n", at(taken_port, "16 MB"));
    std::fs::write(&path, &added).expect("written");
    let reloaded = relay.control().reload(false).await.expect("valid");
    assert_eq!(reloaded.lines, ["stream 'b' added"]);
    assert!(reloaded.failed.len() == 1, "{reloaded:?}");
    assert!(reloaded.failed[0].starts_with("stream 'a' is not as configured: "), "{reloaded:?}");
    // All of it is as it was: its source, which was not touched, and its ring.
    let config = relay.control().config();
    assert_eq!(config.streams["a"].ring.to_string(), "8 MB");
    let starts = |relay: &Relay| relay.control().state().stream("a").map(|stream| stream.source.starts);
    assert_eq!(starts(&relay), Some(1));
    send_until_up(&relay, free, "b").await;
    drop(taken);
    // Without another reload.
    let until = Instant::now() + Duration::from_secs(20);
    while relay.control().config().streams["a"].ring.to_string() != "16 MB" {
        assert!(Instant::now() < until, "it is not tried again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    while starts(&relay) != Some(2) {
        assert!(Instant::now() < until, "the new source never came up");
        socket.send_to(&null_packet(), ("127.0.0.1", taken_port)).expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_whose_ports_its_successor_needs_comes_back_if_that_cannot_be_made() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    let port = free_port();
    let at = |address: &str| configuration(&format!("[streams.a]\nsource = \"udp://{address}:{port}\"\n"));
    std::fs::write(&path, at("127.0.0.1")).expect("written");
    let relay = start(&path).await;
    send_until_up(&relay, port, "a").await;
    // An address that this machine does not have.
    std::fs::write(&path, at("192.0.2.1")).expect("written");
    let reloaded = relay.control().reload(false).await.expect("valid");
    assert_eq!((reloaded.lines.len(), reloaded.failed.len()), (0, 1), "{reloaded:?}");
    let packets =
        |relay: &Relay| relay.control().state().stream("a").map_or(0, |stream| stream.source.packets);
    let (before, until) = (packets(&relay), Instant::now() + Duration::from_secs(20));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    while packets(&relay) <= before {
        assert!(Instant::now() < until, "the old source is gone");
        socket.send_to(&null_packet(), ("127.0.0.1", port)).expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_where_a_file_is_named_is_refused_at_once_and_the_next_reload_works() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("outflow.toml");
    // Nothing ever writes to it.
    mknodat(CWD, folder.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let port = free_port();
    let plain = configuration(&format!("[streams.a]\nsource = \"udp://127.0.0.1:{port}\"\n"));
    std::fs::write(&path, &plain).expect("written");
    let relay = start(&path).await;
    let plug_in = "[streams.a.elements.p]\nelement = \"wasm\"\nfile = \"pipe\"\ninput = \"source\"\n\
                   [streams.a.branches.b]\ninput = \"p\"\n";
    let described = format!("[streams.c]\nsource = \"rtp://127.0.0.1:{}\"\nsdp = \"pipe\"\n", free_port());
    for named in [plug_in, &described] {
        std::fs::write(&path, format!("{plain}{named}")).expect("written");
        let reloaded = tokio::time::timeout(Duration::from_secs(10), relay.control().reload(false)).await;
        let reloaded = reloaded.expect("it is not waited for").expect("valid");
        assert!(reloaded.failed.len() == 1 && reloaded.failed[0].contains("a pipe"), "{reloaded:?}");
    }
    let more = format!("{plain}[streams.d]\nsource = \"udp://127.0.0.1:{}\"\n", free_port());
    std::fs::write(&path, more).expect("written");
    let reloaded = relay.control().reload(false).await.expect("valid");
    assert!(reloaded.lines.contains(&"stream 'd' added".to_owned()), "{reloaded:?}");
    send_until_up(&relay, port, "a").await;
    relay.shut_down();
}
