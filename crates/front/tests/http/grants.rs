//! Tokens with names over HTTP: what they give, and what becomes of sessions when they give it no longer.

use axum::http::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::Bench;
use super::door::{connect, read_until};

const MEDIA: &[u8] = include_bytes!("../../../../assets/demo.ts");

/// SHA-256 of "secret".
const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

/// A token "studio", which is "secret".
fn token(rights: &str) -> String {
    let token = format!("[[access.tokens]]\nname = \"studio\"\nsha256 = \"{HASH}\"\n{rights}\n");
    format!("{token}[streams.clip]\nsource = \"demo://\"\n[streams.pushed]\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_gives_its_rights_on_its_streams_and_refusals_say_why() {
    let bench = Bench::start(&token("rights = [\"play\"]\nstreams = [\"pushed\"]")).await;
    let address = bench.listen().await;
    let get = |path: &'static str| async move {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut socket = connect(address, &head).await;
        String::from_utf8_lossy(&read_until(&mut socket, |_| false).await).into_owned()
    };
    let refused = get("/clip.ts?token=secret").await;
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("token 'studio'"), "{refused}");
    assert!(get("/clip.ts?token=other").await.starts_with("HTTP/1.1 401 "));
    assert!(get("/clip.ts").await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn control_is_closed_once_a_token_with_a_name_gives_it() {
    let bench = Bench::start("[streams.pushed]\n").await;
    let control = bench.relay().control();
    let rules = outflow_config::Config::parse(
        &token("rights = [\"control\"]"),
        "test.toml",
        &outflow_fronts::protocols(),
    );
    control.door().set_rules((&rules.unwrap_or_else(|errors| panic!("{errors}"))).into());
    assert_eq!(bench.get("/api/v1/relay").await.status, 401);
    assert_eq!(bench.get("/api/v1/relay?token=secret").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reload_without_their_token_ends_players_and_publishers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("outflow.toml");
    let bench = Bench::start_from(&token("rights = [\"play\", \"publish\"]"), Some(path.clone())).await;
    let address = bench.listen().await;
    let mut player = connect(address, "GET /clip.ts?token=secret HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut player, |read| read.len() > 20 * 188).await;
    let head = "PUT /pushed.ts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\
                Content-Length: 99999999\r\n\r\n";
    let mut publisher = connect(address, head).await;
    publisher.write_all(&MEDIA[..MEDIA.len() / 2]).await.expect("sent");
    bench.wait("/api/v1/streams/pushed", |stream| stream["ring_packets"].as_u64() > Some(0)).await;
    let named = |stream: &Value| stream["receivers"][0]["token"] == "studio";
    bench.wait("/api/v1/streams/clip", named).await;
    let by =
        |stream: &Value| stream["source"]["peer"].as_str().is_some_and(|peer| peer.contains("token studio"));
    bench.wait("/api/v1/streams/pushed", by).await;
    let tokens = bench.get("/api/v1/tokens").await;
    let shown = json!([{
        "name": "studio", "rights": ["play", "publish"], "streams": ["*"], "from": [], "expires": null,
        "sessions": 2,
    }]);
    assert_eq!(tokens.json(), shown);
    assert!(!tokens.text().contains(&HASH[..8]));
    let text = std::fs::read_to_string(&path).expect("the file");
    let other = text.replace(&HASH[..8], "00000000");
    std::fs::write(&path, other).expect("written");
    let reloaded = bench.ask(Method::POST, "/api/v1/reload", "").await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    read_until(&mut player, |_| false).await;
    let told = read_until(&mut publisher, |_| false).await;
    let told = String::from_utf8_lossy(&told);
    assert!(told.starts_with("HTTP/1.1 403 ") && told.contains("its token"), "{told}");
    bench.wait("/api/v1/relay", |relay: &Value| relay["connections"]["revoked"] == 2).await;
    let metrics = bench.get("/metrics").await.text();
    assert!(metrics.contains("outflow_sessions_revoked_total{} 2"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_of_events_ends_when_its_token_is_taken_out() {
    let bench = Bench::start("[streams.clip]\nsource = \"demo://\"\n").await;
    let (address, control) = (bench.listen().await, bench.relay().control());
    let rules = outflow_door::Rules::from(&*control.config());
    let listed =
        |token| outflow_door::Rules { control: vec![outflow_config::Secret::new(token)], ..rules.clone() };
    control.door().set_rules(listed("one"));
    let mut pages = Vec::new();
    for query in ["?token=one", "?token=one&of=all"] {
        let head = format!("GET /api/v1/events{query} HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut page = connect(address, &head).await;
        let read = read_until(&mut page, |read| read.windows(4).any(|bytes| bytes == b"\r\n\r\n")).await;
        assert!(read.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&read));
        pages.push(page);
    }
    control.door().set_rules(listed("two"));
    for page in &mut pages {
        let is_over = |read: &[u8]| read.ends_with(b"0\r\n\r\n");
        read_until(page, is_over).await;
    }
    assert_eq!(control.door().counts().revoked, 2);
}
