//! What is secret in the address of a source: it is in no answer, in no drawing and in no line of the log.

#![allow(clippy::disallowed_methods, reason = "a test of a program, over real sockets")]

mod host;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::own_host;

const SOURCE: &str = "rtsp://u:p4ss@127.0.0.1:1/x?token=s3cret&password=p4ss";
const SECRETS: [&str; 2] = ["s3cret", "p4ss"];

/// How long anything may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A relay; it ends with the test.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn outflow() -> Command {
    Command::new(env!("CARGO_BIN_EXE_outflow"))
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((own_host(), 0)).expect("a port");
    listener.local_addr().expect("bound")
}

/// What is answered to this; nothing if none listens.
fn answer(at: SocketAddr, request: &str) -> String {
    let Ok(mut socket) = TcpStream::connect(at) else { return String::new() };
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut read = Vec::new();
    // RTSP keeps its connection.
    let _ = socket.read_to_end(&mut read);
    String::from_utf8_lossy(&read).into_owned()
}

fn wait_for(what: &str, mut text: impl FnMut() -> String, is_there: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = text();
        if is_there(&now) {
            return now;
        }
        assert!(Instant::now() < until, "{what}: {now}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn output(arguments: &[&str], file: &Path) -> String {
    let output = outflow().args(arguments).arg(file).output().expect("run");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn secrets_of_a_source_are_nowhere_to_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (http, rtsp) = (free_address(), free_address());
    let (file, log) = (folder.path().join("outflow.toml"), folder.path().join("log"));
    let text = format!(
        "[listen]\nhttp = \"{http}\"\nrtsp = \"{rtsp}\"\n[log]\nlevel = \"debug\"\n\
         [streams.cam]\nsource = \"{SOURCE}\"\n"
    );
    std::fs::write(&file, text).expect("written");
    let mut told = vec![output(&["check"], &file), output(&["graph"], &file)];
    assert!(told[1].contains("token=…"), "{}", told[1]);

    let stderr = File::create(&log).expect("a log");
    let mut run = outflow();
    run.arg("run").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let _relay = Relay(run.spawn().expect("run"));
    let read = || String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    wait_for("the log", read, |log| log.contains("cannot be pulled"));

    let get = |path: &str| answer(http, &format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"));
    for path in ["/api/v1/streams", "/api/v1/streams/cam", "/api/v1/relay", "/metrics", "/"] {
        told.push(wait_for(path, || get(path), |answer| answer.contains(" 200 OK")));
    }
    let put = "PUT /cam.ts HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nConnection: close\r\n\r\n";
    let put = answer(http, put);
    assert!(put.starts_with("HTTP/1.1 409"), "{put}");
    let description = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n\
                       a=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n";
    let length = description.len();
    let announce = answer(
        rtsp,
        &format!(
            "ANNOUNCE rtsp://{rtsp}/cam RTSP/1.0\r\nCSeq: 1\r\nContent-Length: {length}\r\n\r\n\
             {description}"
        ),
    );
    assert!(announce.starts_with("RTSP/1.0 403"), "{announce}");
    told.extend([put, announce, read()]);
    for (text, secret) in told.iter().flat_map(|text| SECRETS.map(|secret| (text, secret))) {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
