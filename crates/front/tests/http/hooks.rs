//! Hooks: an address is told what happens, as its own server sees it.

use std::time::Duration;

use ring::hmac;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{Bench, PATIENCE};

/// A request to the hook's address, and the connection to answer it by.
pub(super) struct Told {
    pub(super) head: String,
    body: String,
    connection: TcpStream,
}

impl Told {
    pub(super) async fn next(server: &TcpListener) -> Told {
        let (mut connection, _) = timeout(PATIENCE, server.accept()).await.expect("in time").expect("told");
        let mut read = Vec::new();
        let whole = |read: &[u8]| {
            let text = String::from_utf8_lossy(read).into_owned();
            let (head, body) = text.split_once("\r\n\r\n")?;
            let length: usize = header(head, "content-length").parse().expect("a length");
            (body.len() >= length).then(|| (head.to_owned(), body.to_owned()))
        };
        loop {
            if let Some((head, body)) = whole(&read) {
                return Told { head, body, connection };
            }
            let more = timeout(PATIENCE, connection.read_buf(&mut read)).await.expect("in time");
            assert!(more.expect("a request") > 0, "{}", String::from_utf8_lossy(&read));
        }
    }

    async fn answer(self, status: &str) {
        self.answer_with(status, "").await;
    }

    pub(super) async fn answer_with(mut self, status: &str, body: &str) {
        let length = body.len();
        let text =
            format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        self.connection.write_all(text.as_bytes()).await.expect("answered");
    }

    pub(super) fn event(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    pub(super) fn is_signed_with(&self, secret: &str) -> bool {
        let signature = header(&self.head, "outflow-signature");
        let (time, tag) =
            signature.strip_prefix("t=").and_then(|text| text.split_once(",v1=")).expect("both");
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).expect("hex")).collect()
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::verify(&key, format!("{time}.{}", self.body).as_bytes(), &bytes(tag)).is_ok()
    }
}

fn header(head: &str, name: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let value =
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next();
    value.unwrap_or_else(|| panic!("no {name}: {head}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_is_told_in_order_signed_and_again_until_it_has_an_event() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = server.local_addr().expect("bound");
    let bench = Bench::start(&format!(
        "[hooks]\nurl = \"http://{at}/hook?key=s3cret\"\nsecret = \"s1gn\"\nevents = [\"joined\", \"left\"]\n\
         [streams.clip]\nsource = \"demo://\"\n"
    ))
    .await;
    let address = bench.listen().await;
    let mut receiver = TcpStream::connect(address).await.expect("connected");
    receiver.write_all(b"GET /clip.ts HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("asked");
    receiver.read_exact(&mut [0; 10_000]).await.expect("packets");
    drop(receiver);

    let first = Told::next(&server).await;
    assert!(first.head.starts_with("POST /hook?key=s3cret HTTP/1.1"), "{}", first.head);
    assert_eq!(
        (&*header(&first.head, "outflow-event"), &first.event()["stream"]),
        ("joined", &"clip".into())
    );
    assert!(first.is_signed_with("s1gn") && !first.is_signed_with("another"));
    let id = header(&first.head, "outflow-id");
    first.answer("500 Internal Server Error").await;

    let again = Told::next(&server).await;
    assert_eq!(header(&again.head, "outflow-id"), id, "it is the same event");
    again.answer("204 No Content").await;
    let left = Told::next(&server).await;
    assert_eq!(left.event()["event"], "left");
    assert_ne!(header(&left.head, "outflow-id"), id);
    left.answer("403 Forbidden").await;
    let metrics = async {
        loop {
            let text = bench.get("/metrics").await.text();
            if text.contains(r#"outflow_hook_events_total{outcome="lost"} 1"#) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let text = timeout(PATIENCE, metrics).await.expect("what is refused is lost");
    for (outcome, count) in [("taken", 1), ("failed", 2)] {
        let line = format!("outflow_hook_events_total{{outcome=\"{outcome}\"}} {count}");
        assert!(text.contains(&line), "{line}: {text}");
    }
}
