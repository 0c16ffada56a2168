//! The hook that is asked which peer may come in, as its own server and its peers see it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};

use super::Bench;
use super::door::{connect, read_until};
use super::hooks::Told;

const STREAMS: &str = "[streams.clip]\nsource = \"demo://\"\n";

/// A hook that lets players in that show "good", for as long as it is told to.
struct Hook {
    at: SocketAddr,
    goes_on: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Hook {
    async fn start() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = server.local_addr().expect("bound");
        let (goes_on, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (says, counted) = (Arc::clone(&goes_on), Arc::clone(&asked));
        tokio::spawn(async move {
            loop {
                let told = Told::next(&server).await;
                counted.fetch_add(1, Ordering::Relaxed);
                let question = told.event();
                assert!(told.head.starts_with("POST /in?key=s3cret HTTP/1.1"), "{}", told.head);
                assert!(told.is_signed_with("s1gn"));
                for (key, value) in [("right", "play"), ("stream", "clip"), ("protocol", "http")] {
                    assert_eq!(question[key], value, "{question}");
                }
                assert_eq!(question["address"], "127.0.0.1");
                let allow = question["token"] == "good" && says.load(Ordering::Relaxed);
                told.answer_with("200 OK", &format!("{{\"allow\":{allow},\"ttl\":1.5}}")).await;
            }
        });
        Hook { at, goes_on, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// A player, and what it is answered first.
async fn play(address: SocketAddr, token: &str) -> (TcpStream, String) {
    let head = format!("GET /clip.ts{token} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut socket = connect(address, &head).await;
    let is_whole = |read: &[u8]| read.windows(4).any(|bytes| bytes == b"\r\n\r\n");
    let read = read_until(&mut socket, is_whole).await;
    (socket, String::from_utf8_lossy(&read).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hook_says_which_player_comes_in_and_when_it_has_to_go() {
    let hook = Hook::start().await;
    let at = hook.at;
    let table = format!("[access.hook]\nurl = \"http://{at}/in?key=s3cret\"\nsecret = \"s1gn\"\n");
    let bench = Bench::start(&format!("{table}{STREAMS}")).await;
    let address = bench.listen().await;
    let (mut player, answer) = play(address, "?token=good").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(play(address, "?token=bad").await.1.starts_with("HTTP/1.1 401 "));
    assert!(play(address, "").await.1.starts_with("HTTP/1.1 401 "));
    assert!(hook.asked() >= 3);
    hook.goes_on.store(false, Ordering::Relaxed);
    read_until(&mut player, |_| false).await;
    bench.wait("/api/v1/relay", |relay: &Value| relay["connections"]["revoked"] == 1).await;
    assert_eq!(bench.get("/api/v1/relay").await.json()["connections"]["hook_failed"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_player_of_the_hook_may_ask_about_its_own_session() {
    let hook = Hook::start().await;
    let at = hook.at;
    let table = format!("[access.hook]\nurl = \"http://{at}/in?key=s3cret\"\nsecret = \"s1gn\"\n");
    let bench = Bench::start(&format!("{table}{STREAMS}")).await;
    let (_player, answer) = play(bench.listen().await, "?token=good").await;
    let session = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("outflow-session").then(|| value.trim().to_owned())
    });
    let session = session.expect("its name");
    assert_eq!(bench.get(&format!("{session}?token=good")).await.status, 200);
    assert_eq!(bench.get(&format!("{session}?token=bad")).await.status, 401);
    assert_eq!(bench.get(session.as_str()).await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_an_answer_it_is_as_the_configuration_says() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = server.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            Told::next(&server).await.answer_with("200 OK", "yes").await;
        }
    });
    for (on_error, expected) in [("deny", "HTTP/1.1 503 "), ("allow", "HTTP/1.1 200 ")] {
        let table = format!("[access.hook]\nurl = \"http://{at}/\"\non_error = \"{on_error}\"\n");
        let bench = Bench::start(&format!("{table}{STREAMS}")).await;
        let (_player, answer) = play(bench.listen().await, "?token=x").await;
        assert!(answer.starts_with(expected), "{on_error}: {answer}");
        let metrics = bench.get("/metrics").await.text();
        assert!(!metrics.contains("outflow_access_hook_failures_total{} 0"), "{metrics}");
    }
}
