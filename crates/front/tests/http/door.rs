//! Connections: streams in and out, and what does not deserve one.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::Method;
use http_ts::limits::HTTP_HEAD_BYTES;
use outflow_api::limits::EVENT_STREAMS_MAX;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Bench, PATIENCE};

const TS_PACKET: usize = 188;

pub(super) async fn connect(address: SocketAddr, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.expect("connected");
    socket.write_all(request.as_bytes()).await.expect("sent");
    socket
}

/// Reads until `enough`, or the end; never for long.
pub(super) async fn read_until(socket: &mut TcpStream, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut read = Vec::new();
    let done = async { while !enough(&read) && socket.read_buf(&mut read).await.is_ok_and(|n| n > 0) {} };
    let in_time = tokio::time::timeout(PATIENCE, done).await;
    assert!(in_time.is_ok(), "only {} bytes came: {}", read.len(), String::from_utf8_lossy(&read));
    read
}

async fn answer(address: SocketAddr, request: &str) -> String {
    let mut socket = connect(address, request).await;
    String::from_utf8_lossy(&read_until(&mut socket, |_| false).await).into_owned()
}

/// The body of a response whose head has come.
fn body(response: &[u8]) -> Option<&[u8]> {
    let at = response.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(&response[at + 4..])
}

fn is_transport_stream(bytes: &[u8]) -> bool {
    bytes.len() >= 20 * TS_PACKET && bytes.chunks_exact(TS_PACKET).all(|packet| packet[0] == 0x47)
}

async fn clip() -> (Bench, SocketAddr) {
    let bench = Bench::start("[streams.clip]\nsource = \"demo://\"\n[streams.pushed]\n").await;
    let address = bench.listen().await;
    bench.wait("/api/v1/streams/clip", |stream| stream["ring_packets"].as_u64() > Some(0)).await;
    (bench, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_is_played_on_its_own_connection() {
    let (bench, address) = clip().await;
    let mut socket = connect(address, "GET /clip.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let response = read_until(&mut socket, |read| body(read).is_some_and(|b| b.len() > 30 * TS_PACKET)).await;
    let head = String::from_utf8_lossy(&response[..200]).to_lowercase();
    assert!(
        head.starts_with("http/1.1 200 ok\r\n") && head.contains("content-type: video/mp2t\r\n"),
        "{head}"
    );
    assert!(is_transport_stream(body(&response).expect("a body")));
    bench.wait("/api/v1/receivers", |list| list[0]["kind"] == "http-ts" && list[0]["state"] == "live").await;
    drop(socket);
    bench.wait("/api/v1/receivers", |list| list.as_array().is_some_and(Vec::is_empty)).await;
}

/// Plays, and reads the path of the own session from the answer's head.
async fn session(address: SocketAddr, request: &str) -> (TcpStream, String) {
    let mut socket = connect(address, request).await;
    let response = read_until(&mut socket, |read| body(read).is_some_and(is_transport_stream)).await;
    let head = String::from_utf8_lossy(&response).to_lowercase();
    let session = head.lines().find_map(|line| line.strip_prefix("outflow-session: "));
    (socket, session.unwrap_or_else(|| panic!("{head}")).to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_player_asks_its_own_session_and_no_other() {
    let (bench, address) = clip().await;
    let (socket, path) = session(address, "GET /clip.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let (_other, others) = session(address, "GET /clip.ts?level=2 HTTP/1.0\r\n\r\n").await;
    assert_ne!(path, others);
    let is_known = |stream: &Value| stream["levels"].as_array().is_some_and(|all| all.len() > 1);
    bench.wait("/api/v1/streams/clip", is_known).await;
    let document = bench.get("/api/v1/openapi.json").await.json();
    for (method, body, status, level) in [
        (Method::GET, "", 200, 1),
        (Method::PATCH, r#"{"level":2}"#, 200, 2),
        (Method::PATCH, r#"{"level":9}"#, 422, 2),
        (Method::GET, "", 200, 2),
    ] {
        let answer = bench.ask(method.clone(), &path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        let method = method.as_str().to_lowercase();
        super::schema::check(&document, &method, "/api/v1/sessions/{token}", &answer);
        if status == 200 {
            let state = answer.json();
            assert!(state["level"] == level && state["levels"].as_array().is_some_and(|all| all.len() > 1));
        }
    }
    let is_counted = |list: &Value| {
        let one = &list[0];
        one["level"] == 2 && one["level_requests"] == 4 && one["level_refusals"]["no-such-level"] == 1
    };
    bench.wait("/api/v1/receivers", is_counted).await;
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(bench.get(&path).await.status.as_u16());
    }
    let often = bench.get(&path).await;
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(often.status != 429 || often.error().contains("ask again"), "{}", often.text());
    assert_eq!(bench.get(&others).await.status, 200, "each has its own budget");
    drop(socket);
    bench.wait("/api/v1/receivers", |list| list.as_array().is_some_and(|list| list.len() == 1)).await;
    assert_eq!(bench.get(&path).await.status, 404, "it ends with the download");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_is_asked_as_its_stream_is_played() {
    let play = "[access]\nplay = [\"s3cret\"]\n[streams.clip]\nsource = \"demo://\"\n";
    let bench = Bench::start(play).await;
    let address = bench.listen().await;
    bench.wait("/api/v1/streams/clip", |stream| stream["ring_packets"].as_u64() > Some(0)).await;
    let (_socket, path) = session(address, "GET /clip.ts?token=s3cret HTTP/1.1\r\n\r\n").await;
    let ask = |query: &'static str, status: u16| {
        let (bench, uri) = (&bench, format!("{path}{query}"));
        async move {
            for (method, body) in [(Method::GET, ""), (Method::PATCH, r#"{"level":2}"#)] {
                let answer = bench.ask(method, &uri, body).await;
                assert_eq!(answer.status.as_u16(), status, "{uri}: {}", answer.text());
            }
        }
    };
    ask("", 401).await;
    ask("?token=wrong", 401).await;
    ask("?token=s3cret", 200).await;
    // No client learns what sessions there are without being allowed to play.
    assert_eq!(bench.get("/api/v1/sessions/1").await.status, 401);
    assert_eq!(bench.get("/api/v1/sessions/1?token=s3cret").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_is_played_on_a_connection_that_was_used_before() {
    let (_bench, address) = clip().await;
    let mut socket = connect(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let first = read_until(&mut socket, |read| body(read).is_some_and(|b| b.ends_with(b"}"))).await;
    assert!(first.starts_with(b"HTTP/1.1 200"));
    socket.write_all(b"GET /clip.ts HTTP/1.0\r\n\r\n").await.expect("sent");
    let second = read_until(&mut socket, |read| body(read).is_some_and(|b| b.len() > 30 * TS_PACKET)).await;
    assert!(second.starts_with(b"HTTP/1.") && is_transport_stream(body(&second).expect("a body")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn asking_for_the_head_of_a_stream_ends_with_it() {
    let (bench, address) = clip().await;
    let head = answer(address, "HEAD /clip.ts HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    bench.wait("/api/v1/receivers", |list| list.as_array().is_some_and(Vec::is_empty)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_is_published_and_the_second_publisher_is_told_of_the_first() {
    let (bench, address) = clip().await;
    let media = include_bytes!("../../../../assets/demo.ts");
    let first = format!("PUT /pushed.ts HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", media.len());
    let mut socket = connect(address, &first).await;
    socket.write_all(&media[..media.len() / 2]).await.expect("sent");
    let up = |stream: &Value| stream["source"]["up"] == true;
    bench.wait("/api/v1/streams/pushed", up).await;
    let second =
        "POST /pushed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let refused = answer(address, second).await;
    assert!(refused.starts_with("HTTP/1.1 409 ") && refused.contains("being published already"), "{refused}");
    socket.write_all(&media[media.len() / 2..]).await.expect("sent");
    let told = read_until(&mut socket, |read| body(read).is_some_and(|b| b.ends_with(b"}"))).await;
    let told: Value = serde_json::from_slice(body(&told).expect("a body")).expect("JSON");
    assert_eq!(told["bytes"].as_u64(), Some(media.len() as u64));
    bench.wait("/api/v1/streams/pushed", |stream| stream["source"]["peer"].is_null()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn publishers_are_refused_before_they_send() {
    let bench =
        Bench::start("[access]\npublish = [\"p\"]\n[streams.pushed]\n[streams.clip]\nsource = \"demo://\"\n")
            .await;
    let address = bench.listen().await;
    let put = |path: &str| {
        format!(
            "PUT {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9999\r\nConnection: close\r\n\r\n"
        )
    };
    for (path, status, part) in [
        ("/pushed.ts", "401", "a token is needed"),
        ("/pushed.ts?token=q", "401", "not one of those"),
        ("/other.ts?token=p", "404", "no stream named 'other'"),
        ("/clip.ts?token=p", "409", "takes no publisher"),
        ("/a%20b.ts?token=p", "404", "there is nothing at"),
    ] {
        let refused = answer(address, &put(path)).await;
        assert!(
            refused.starts_with(&format!("HTTP/1.1 {status} ")) && refused.contains(part),
            "{path}: {refused}"
        );
        assert!(!refused.contains("100 Continue"), "{path}: it need not send first");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_request_is_answered_and_ended() {
    let (bench, address) = clip().await;
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(2 * HTTP_HEAD_BYTES));
    assert!(answer(address, &long).await.starts_with("HTTP/1.1 431 "));
    assert!(answer(address, "\0\0\0\0 garbage\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
    assert!(answer(address, "GET /missing.ts HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
    assert_eq!(bench.get("/healthz").await.status.as_u16(), 200);
}

#[tokio::test]
async fn requests_that_do_not_come_are_not_waited_for() {
    let bench = Bench::start("").await;
    let address = bench.listen().await;
    let mut half = connect(address, "GET / HTTP/1.1\r\nX: ").await;
    let mut silent = connect(address, "").await;
    let mut idle = connect(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_until(&mut idle, |read| read.ends_with(b"}")).await;
    bench.wait("/api/v1/relay", |relay| relay["connections"]["open"] == 3).await;
    // From now on time passes whenever nothing else happens.
    tokio::time::pause();
    bench.wait("/api/v1/relay", |relay| relay["connections"]["open"] == 0).await;
    for socket in [&mut half, &mut silent, &mut idle] {
        read_until(socket, |_| false).await;
    }
    let counts = bench.get("/api/v1/relay").await.json();
    assert_eq!(counts["connections"]["slow"], 2, "the third had its answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_from_one_address_are_limited_and_counted() {
    let bench = Bench::start("connections_per_address = 2\n").await;
    let address = bench.listen().await;
    let first = connect(address, "GET").await;
    let _second = connect(address, "GET").await;
    let refused = answer(address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(refused, "", "closed at once");
    bench.wait("/api/v1/relay", |relay| relay["connections"]["refused"] == 1).await;
    drop(first);
    bench.wait("/api/v1/relay", |relay| relay["connections"]["open"] == 1).await;
    let welcome = answer(address, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(welcome.starts_with("HTTP/1.1 200 "), "{welcome}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_come_as_the_state_changes_to_a_limited_number_of_pages() {
    let (bench, address) = clip().await;
    let request = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut pages = Vec::new();
    for _ in 0..EVENT_STREAMS_MAX {
        pages.push(connect(address, request).await);
    }
    let events = |read: &[u8]| read.windows(6).filter(|window| window == b"data: ").count();
    let read = read_until(&mut pages[0], |read| events(read) >= 2 && read.ends_with(b"\n\n\r\n")).await;
    let text = String::from_utf8_lossy(&read);
    assert!(text.contains("text/event-stream"), "{text}");
    let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
    let relay: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(relay["streams"][0]["name"], "clip");
    for page in &mut pages[1..] {
        read_until(page, |read| events(read) >= 1).await;
    }
    let refused = bench.ask(Method::GET, "/api/v1/events", "").await;
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text());
    pages.pop();
    let until = tokio::time::Instant::now() + PATIENCE;
    while !answered(address, request).await {
        assert!(tokio::time::Instant::now() < until, "the place of a closed page is not given back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_happens_is_told_by_name() {
    let (_bench, address) = clip().await;
    let follow = |names: &str| format!("GET /api/v1/events?of={names} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut all = connect(address, &follow("all")).await;
    let mut some = connect(address, &follow("gone,left")).await;
    for page in [&mut all, &mut some] {
        read_until(page, |read| body(read).is_some()).await;
    }
    let mut receiver = connect(address, "GET /clip.ts HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    read_until(&mut receiver, |read| read.len() > 10_000).await;
    drop(receiver);
    let told = |read: &[u8], name: &str| {
        let text = String::from_utf8_lossy(read).into_owned();
        let at = text.find(&format!("event: {name}\n"))?;
        let data = text[at..].lines().find_map(|line| line.strip_prefix("data: "))?;
        text[at..].contains("\n\n").then(|| serde_json::from_str::<Value>(data).expect("JSON"))
    };
    let read = read_until(&mut all, |read| told(read, "left").is_some()).await;
    let (joined, left) = (told(&read, "joined").expect("it joined"), told(&read, "left").expect("it left"));
    for event in [&joined, &left] {
        assert_eq!((&event["stream"], &event["receiver"]), (&"clip".into(), &joined["receiver"]));
    }
    assert_eq!((&joined["kind"], &left["why"]), (&"http-ts".into(), &"connection closed by the peer".into()));
    assert!(left["number"].as_u64() > joined["number"].as_u64(), "{joined} {left}");
    let read = read_until(&mut some, |read| told(read, "left").is_some()).await;
    assert_eq!(told(&read, "joined"), None, "this page did not ask for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pages_that_are_not_read_leave_room_for_another_address() {
    let (_bench, address) = clip().await;
    let request = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut unread = Vec::new();
    for _ in 0..EVENT_STREAMS_MAX {
        let mut page = connect(address, request).await;
        // It is there; what comes behind the head is not read.
        read_until(&mut page, |read| body(read).is_some()).await;
        unread.push(page);
    }
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 2], 0).into()).expect("a loopback address");
    let mut other = socket.connect(address).await.expect("connected");
    other.write_all(request.as_bytes()).await.expect("sent");
    let events = |read: &[u8]| read.windows(6).filter(|window| window == b"data: ").count();
    let read = read_until(&mut other, |read| events(read) >= 2).await;
    assert!(read.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&read));
    // The oldest of the address that has most has ended.
    read_until(&mut unread[0], |read| read.ends_with(b"0\r\n\r\n")).await;
}

async fn answered(address: SocketAddr, request: &str) -> bool {
    let mut socket = connect(address, request).await;
    read_until(&mut socket, |read| body(read).is_some()).await.starts_with(b"HTTP/1.1 200 ")
}
