//! Tracks that MPEG-TS has no place for: receivers of the others are told.

use axum::http::{Method, StatusCode};
use outflow_control::{PublishOptions, Publisher};
use outflow_media::{Codec, Format, Track};

use super::Bench;
use super::door::{connect, read_until};

fn track(codec: Codec, encoding: &str) -> Track {
    Track { codec, encoding: encoding.to_owned(), ..Track::mp2t() }
}

async fn publish(bench: &Bench, stream: &str, tracks: Vec<Track>) -> Publisher {
    let options =
        PublishOptions { format: Format::Rtp(tracks), peer: "a test".to_owned(), configured: false };
    bench.relay().control().publish(stream, options).await.expect("published")
}

/// The head of the last answer to these requests.
async fn head(bench: &Bench, requests: &str) -> String {
    let mut socket = connect(bench.listen().await, requests).await;
    let answers = requests.matches("GET ").count();
    let heads = |read: &[u8]| read.windows(4).filter(|window| window == b"\r\n\r\n").count();
    let read = read_until(&mut socket, |read| heads(read) == answers).await;
    let text = String::from_utf8_lossy(&read).to_lowercase();
    text.rsplit("http/1.1 ").next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_of_the_sound_alone_is_told_what_is_left_out() {
    let bench = Bench::start("[streams.cam]\n").await;
    let sink = r#"{"to": "udp://127.0.0.1:9", "name": "wall"}"#;
    let added = bench.ask(Method::POST, "/api/v1/streams/cam/sinks", sink).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text());
    bench.wait("/api/v1/receivers", |list| list[0]["left_out"] == serde_json::json!([])).await;
    let _publisher = publish(&bench, "cam", vec![track(Codec::Av1, "AV1"), track(Codec::Opus, "opus")]).await;
    let is_told = |list: &serde_json::Value| list[0]["left_out"] == serde_json::json!(["video AV1"]);
    bench.wait("/api/v1/receivers", is_told).await;
    let play = "GET /cam.ts HTTP/1.1\r\nHost: x\r\n\r\n";
    let behind_another = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n{play}");
    for requests in [play, &behind_another] {
        let head = head(&bench, requests).await;
        assert!(
            head.starts_with("200 ok\r\n") && head.contains("\r\noutflow-left-out: video av1\r\n"),
            "{head}"
        );
        assert!(head.contains("\r\noutflow-session: /api/"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_nothing_is_left_the_answer_says_why() {
    let bench = Bench::start("[streams.cam]\n[streams.whole]\n").await;
    let added = bench.ask(Method::POST, "/api/v1/streams/cam/sinks", r#"{"to": "udp://127.0.0.1:9"}"#).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text());
    let _publisher = publish(&bench, "cam", vec![track(Codec::Vp9, "VP9"), track(Codec::Av1, "AV1")]).await;
    let all = serde_json::json!(["video VP9", "video AV1"]);
    bench.wait("/api/v1/receivers", |list| list[0]["left_out"] == all).await;
    let refused = bench.get("/cam.ts").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text().contains("(video VP9, video AV1)") && refused.text().contains("play it as RTP"),
        "{}",
        refused.text()
    );
    let h264 = track(Codec::H264 { sps: None, pps: None }, "H264");
    let _other = publish(&bench, "whole", vec![h264, track(Codec::Opus, "opus")]).await;
    let head = head(&bench, "GET /whole.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.starts_with("200 ok\r\n") && !head.contains("left-out"), "{head}");
}
