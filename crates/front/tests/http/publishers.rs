//! Publishers over HTTP: when one takes the place of another, when one is let go, and what they are told.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::door::{connect, read_until};
use super::{Bench, PATIENCE};

const MEDIA: &[u8] = include_bytes!("../../../../assets/demo.ts");

/// One that has sent the first half of the clip, and sends no more.
async fn half(address: SocketAddr) -> TcpStream {
    let head = format!("PUT /pushed.ts HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", MEDIA.len());
    let mut socket = connect(address, &head).await;
    socket.write_all(&MEDIA[..MEDIA.len() / 2]).await.expect("sent");
    socket
}

/// The answer to the whole clip.
async fn whole(address: SocketAddr) -> String {
    let length = MEDIA.len();
    let head = format!(
        "PUT /pushed.ts HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let mut socket = connect(address, &head).await;
    // One that is refused need not read it.
    let _ = socket.write_all(MEDIA).await;
    answer(&mut socket).await
}

async fn answer(socket: &mut TcpStream) -> String {
    String::from_utf8_lossy(&read_until(socket, |_| false).await).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_that_is_silent_is_taken_over_and_viewers_stay() {
    let bench = Bench::start("[streams.pushed]\nsource_timeout = \"200 ms\"\n").await;
    let address = bench.listen().await;
    let mut first = half(address).await;
    bench.wait("/api/v1/streams/pushed", |stream| stream["ring_packets"].as_u64() > Some(0)).await;
    let mut player = connect(address, "GET /pushed.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut player, |read| read.len() > 20 * 188).await;
    let until = tokio::time::Instant::now() + PATIENCE;
    while !whole(address).await.starts_with("HTTP/1.1 200 ") {
        assert!(tokio::time::Instant::now() < until, "the place of a silent one is not free");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    read_until(&mut player, |read| read.len() > MEDIA.len() / 2).await;
    let told = answer(&mut first).await;
    assert!(told.starts_with("HTTP/1.1 409 ") && told.contains("another publisher"), "{told}");
    let ended = |relay: &Value| relay["publishers_ended"]["taken_over"] == 1;
    bench.wait("/api/v1/relay", ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_without_media_is_let_go() {
    let limits = "source_timeout = \"300 ms\"\npublish_timeout = \"300 ms\"\n";
    let bench = Bench::start(&format!("[streams.pushed]\n{limits}")).await;
    let address = bench.listen().await;
    let head = "PUT /pushed.ts HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n";
    let is_told = |told: &str| told.starts_with("HTTP/1.1 408 ") && told.contains("publish_timeout");
    let told = answer(&mut connect(address, head).await).await;
    assert!(is_told(&told), "{told}");
    let told = answer(&mut half(address).await).await;
    assert!(is_told(&told), "{told}");
    let metrics = bench.get("/metrics").await.text();
    assert!(metrics.contains("outflow_publishers_ended_total{reason=\"no-media\"} 2"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn secrets_of_a_source_are_in_no_answer() {
    let source = "rtsp://u:p4ss@127.0.0.1:1/x?token=s3cret&password=p4ss";
    let bench = Bench::start(&format!("[streams.cam]\nsource = \"{source}\"\n")).await;
    let address = bench.listen().await;
    let is_there = |stream: &Value| stream["source"]["url"].as_str().is_some_and(|url| !url.is_empty());
    bench.wait("/api/v1/streams/cam", is_there).await;
    let head = "PUT /cam.ts HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n";
    let refused = answer(&mut connect(address, head).await).await;
    assert!(refused.starts_with("HTTP/1.1 409 ") && !refused.contains("127.0.0.1"), "{refused}");
    let mut told = vec![refused];
    for path in ["/api/v1/streams", "/api/v1/streams/cam", "/api/v1/relay", "/metrics", "/"] {
        told.push(bench.get(path).await.text());
    }
    assert!(told[2].contains("rtsp://127.0.0.1:1/x?token=…&password=…"), "{}", told[2]);
    for text in told {
        assert!(!text.contains("s3cret") && !text.contains("p4ss"), "{text}");
    }
}
