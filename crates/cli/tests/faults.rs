//! What happens to a running relay that must not stop media: its log cannot be written, memory or descriptors run out,
//! systemd watches it, and it is told to end.

#![allow(clippy::disallowed_methods, reason = "a test of sockets, files and processes")]

mod host;

use std::fs::File;
use std::io::{PipeReader, Read as _, Write as _, pipe};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use host::own_host;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use tempfile::TempDir;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Receivers that join.
const JOINS: usize = 20;

/// Bytes of packets of a transport stream, more than what a socket holds from before.
const MORE: usize = 188 * 20;

/// A relay whose standard error goes there.
struct Running {
    program: Child,
    http: SocketAddr,
    _folder: TempDir,
}

impl Running {
    fn start(stderr: impl Into<Stdio>, environment: &[(&str, &str)]) -> Self {
        Running::with_limits("", stderr, environment)
    }

    /// One that has these limits.
    fn with_limits(limits: &str, stderr: impl Into<Stdio>, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind((own_host(), 0)).expect("a port");
        let http = free.local_addr().expect("bound");
        drop(free);
        let file = folder.path().join("relay.toml");
        let text = format!(
            "[listen]\nhttp = \"{http}\"\nrtsp = \"off\"\nrtp_ports = \"46800-46899\"\n\
             [limits]\nworkers = 2\n{limits}[fanout]\nudp = \"user\"\n\
             [streams.demo]\nsource = \"demo://\"\nring = \"1 MB\"\n[streams.pushed]\nring = \"1 MB\"\n"
        );
        std::fs::write(&file, text).expect("written");
        let mut program = Command::new(env!("CARGO_BIN_EXE_outflow"));
        program.arg("run").arg(&file).envs(environment.iter().copied());
        let program = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn();
        Running { program: program.expect("it can be run"), http, _folder: folder }
    }

    /// The status and body of an answer.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let answer = self.ask("GET", path)?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((status(head), body.to_owned()))
    }

    /// All of an answer.
    fn ask(&self, method: &str, path: &str) -> Option<String> {
        let mut socket = TcpStream::connect(self.http).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Waits until what the relay shows of itself has this in it.
    fn wait_until_it_shows(&self, what: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.get("/api/v1/relay").is_some_and(|(_, shown)| shown.contains(what)) {
            assert!(Instant::now() < until, "it does not show {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_until_ready(&self) {
        let until = Instant::now() + PATIENCE;
        while self.get("/readyz").is_none_or(|(status, _)| status != 200) {
            assert!(Instant::now() < until, "it does not become ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A receiver that was told 200 and has got packets.
    fn join(&self) -> TcpStream {
        self.join_stream("demo")
    }

    fn join_stream(&self, stream: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.http).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        let request = format!("GET /{stream}.ts HTTP/1.1\r\nHost: localhost\r\n\r\n");
        socket.write_all(request.as_bytes()).expect("sent");
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte).expect("an answer");
            head.extend(byte);
        }
        assert_eq!(status(&String::from_utf8_lossy(&head)), 200);
        more(&mut socket);
        socket
    }

    /// The number that a metric has.
    fn metric(&self, name: &str) -> u64 {
        let (_, metrics) = self.get("/metrics").expect("an answer");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let labels_and_number = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
        let number = labels_and_number.trim_start_matches("{}").trim();
        // What goes up and down is written as "3.0".
        number.trim_end_matches(".0").parse().unwrap_or_else(|_| panic!("{name} is {number}"))
    }

    fn is_well(&self) {
        for path in ["/healthz", "/readyz"] {
            let (status, body) = self.get(path).expect("an answer");
            assert_eq!((status, &*body), (200, r#"{"status":"ok"}"#), "{path}");
        }
    }

    /// Its end after it was asked to.
    fn end(self) -> ExitStatus {
        self.tell(Signal::TERM);
        self.ended()
    }

    fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).expect("it runs");
    }

    /// Its end.
    fn ended(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.program.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{head}"))
}

/// Waits for more packets.
fn more(socket: &mut TcpStream) {
    socket.read_exact(&mut [0; MORE]).expect("packets flow");
}

/// Receivers join, get packets, go on to get them, and leave.
fn receivers_notice_nothing(relay: &Running) {
    relay.wait_until_ready();
    for _ in 0..3 {
        let mut receivers: Vec<_> = (0..JOINS).map(|_| relay.join()).collect();
        receivers.iter_mut().for_each(more);
    }
    relay.is_well();
}

/// A pipe that holds a page.
fn small_pipe() -> (PipeReader, Stdio) {
    let (reader, writer) = pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).expect("a page is allowed");
    (reader, writer.into())
}

#[test]
fn a_full_disk_below_the_log_harms_nothing_and_is_counted() {
    let full = File::options().write(true).open("/dev/full").expect("it is there");
    let relay = Running::start(full, &[]);
    receivers_notice_nothing(&relay);
    assert!(relay.metric("outflow_log_write_errors_total") > 0);
    assert!(relay.end().success());
}

#[test]
fn a_log_that_is_not_read_stops_neither_packets_nor_the_end() {
    let (mut log, stderr) = small_pipe();
    let relay = Running::start(stderr, &[]);
    receivers_notice_nothing(&relay);
    let status = relay.end();
    let mut text = String::new();
    log.read_to_string(&mut text).expect("what was written");
    assert!(status.success(), "it ends as if its log were read: {status}, {text}");
    assert!(text.len() > 3000, "it was full: {text}");
}

#[test]
fn a_log_whose_reader_has_gone_stops_nothing() {
    let (log, stderr) = small_pipe();
    let relay = Running::start(stderr, &[]);
    drop(log);
    receivers_notice_nothing(&relay);
    assert!(relay.metric("outflow_log_write_errors_total") > 0);
    assert!(relay.end().success());
}

#[test]
fn with_too_little_memory_receivers_and_publishers_are_refused_and_those_that_are_there_go_on() {
    let relay = Running::with_limits("memory = \"16 MB\"\n", Stdio::null(), &[]);
    relay.wait_until_ready();
    relay.wait_until_it_shows("\"overload\":{\"level\":3,\"scarcest\":\"memory\"");
    for (method, path) in [("GET", "/demo.ts"), ("GET", "/api/v1/events"), ("PUT", "/pushed.ts")] {
        let answer = relay.ask(method, path).expect("an answer").to_lowercase();
        assert_eq!(status(&answer), 503, "{answer}");
        assert!(answer.contains("retry-after: ") && answer.contains("too much to do"), "{answer}");
    }
    for action in ["joins-refused", "events-refused", "publishers-refused"] {
        let name = format!("outflow_overload_actions_total{{action=\"{action}\"}}");
        assert_eq!(relay.metric(&name), 1, "{action}");
    }
    assert_eq!(relay.metric("outflow_overload_level"), 3);
    relay.is_well();
    assert!(relay.end().success());
}

#[test]
fn with_room_enough_nothing_is_refused() {
    let relay = Running::start(Stdio::null(), &[]);
    receivers_notice_nothing(&relay);
    relay.wait_until_it_shows("\"overload\":{\"level\":0,");
    assert_eq!(relay.metric("outflow_overload_actions_total{action=\"joins-refused\"}"), 0);
    assert!(relay.end().success());
}

/// Lets a relay have this many descriptors, by how many it has open. Returns what holds else.
fn limit_descriptors(relay: &Running, limit: impl FnOnce(u64) -> u64) -> Rlimit {
    let folder = format!("/proc/{}/fd", relay.program.id());
    let open = std::fs::read_dir(folder).expect("it runs").count() as u64;
    let maximum = getrlimit(Resource::Nofile).maximum;
    set_descriptors(relay, Rlimit { current: Some(limit(open)), maximum })
}

fn set_descriptors(relay: &Running, limit: Rlimit) -> Rlimit {
    prlimit(Some(Pid::from_child(&relay.program)), Resource::Nofile, limit).expect("it may have these")
}

#[test]
fn with_few_descriptors_left_receivers_of_the_low_class_end_the_newest_first() {
    let low = "[streams.low]\nsource = \"demo://\"\nring = \"1 MB\"\npriority = \"low\"\n";
    let relay = Running::with_limits(low, Stdio::null(), &[]);
    relay.wait_until_ready();
    let mut receivers: Vec<_> = (0..JOINS).map(|_| relay.join_stream("low")).collect();
    let mut normal = relay.join();
    let before = limit_descriptors(&relay, |open| open * 100 / 94);
    let mut newest = receivers.pop().expect("it has joined");
    newest.read_to_end(&mut Vec::new()).expect("it ends well");
    more(&mut receivers[0]);
    more(&mut normal);
    assert!(relay.metric("outflow_overload_actions_total{action=\"receivers-ended\"}") > 0);
    relay.is_well();
    set_descriptors(&relay, before);
    assert!(relay.end().success());
}

#[test]
fn a_relay_without_descriptors_says_how_it_is_and_media_flow() {
    let relay = Running::start(Stdio::null(), &[]);
    relay.wait_until_ready();
    let mut receiver = relay.join();
    let before = limit_descriptors(&relay, |open| open + 4);
    // They say nothing, and stay.
    let _idle: Vec<_> = (0..200).filter_map(|_| TcpStream::connect(relay.http).ok()).collect();
    for _ in 0..20 {
        relay.is_well();
    }
    more(&mut receiver);
    set_descriptors(&relay, before);
    assert!(relay.metric("outflow_connections_total{outcome=\"hurried\"}") > 0);
    relay.is_well();
    assert!(relay.end().success());
}

#[test]
fn systemd_is_told_that_the_relay_is_ready_goes_on_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).expect("bound");
    systemd.set_read_timeout(Some(PATIENCE)).expect("set");
    let path = path.to_str().expect("UTF-8");
    let relay = Running::start(Stdio::null(), &[("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "100000")]);
    let heard = || {
        let mut text = [0; 1000];
        let length = systemd.recv(&mut text).expect("it was told");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert_eq!(heard(), "READY=1");
    for _ in 0..3 {
        assert_eq!(heard(), "WATCHDOG=1\nSTATUS=running");
    }
    relay.wait_until_ready();
    assert!(relay.end().success());
    let ends = std::iter::repeat_with(heard).find(|text| text != "WATCHDOG=1\nSTATUS=running");
    assert_eq!(ends.as_deref(), Some("STOPPING=1"));
}

/// Waits until it says that it drains, and refuses receivers.
fn wait_until_it_drains(relay: &Running) {
    let until = Instant::now() + PATIENCE;
    while relay.get("/readyz").is_none_or(|(status, _)| status != 503) {
        assert!(Instant::now() < until, "it does not drain");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(relay.get("/demo.ts").map(|(status, _)| status), Some(503));
}

#[test]
fn a_relay_that_is_stopped_waits_for_its_receivers_and_so_does_what_stops_it() {
    let relay = Running::start(Stdio::null(), &[]);
    relay.wait_until_ready();
    let mut receiver = relay.join();
    let stop = |drain: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outflow"));
        command.arg("stop").arg(format!("http://{}", relay.http)).args(["--drain", drain]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it begins")
    };
    let mut waiting = stop("1h");
    wait_until_it_drains(&relay);
    (0..20).for_each(|_| more(&mut receiver));
    assert_eq!(waiting.try_wait().expect("asked"), None, "it waits for the receiver");
    drop(receiver);
    assert!(waiting.wait().expect("it ends").success());
    assert!(relay.ended().success());
}

#[test]
fn a_signal_begins_a_drain_as_configured_and_another_one_ends_it() {
    let relay = Running::with_limits("drain = \"1 h\"\n", Stdio::null(), &[]);
    relay.wait_until_ready();
    let mut receiver = relay.join();
    relay.tell(Signal::TERM);
    wait_until_it_drains(&relay);
    (0..20).for_each(|_| more(&mut receiver));
    assert!(relay.end().success());
}

#[test]
fn a_relay_that_is_told_to_reload_as_soon_as_it_listens_goes_on() {
    let relay = Running::start(Stdio::null(), &[]);
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(relay.http).is_err() {
        assert!(Instant::now() < until, "it does not listen");
    }
    relay.tell(Signal::HUP);
    receivers_notice_nothing(&relay);
    assert!(relay.end().success());
}
