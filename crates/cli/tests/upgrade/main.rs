//! What an upgrade needs of the processes: one that waits with all that the relay began with, and one that takes over.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test of processes")]

mod clip;
mod ends;
#[path = "../host/mod.rs"]
mod host;
mod pulled;
mod through;
mod transport;
mod tree;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host::own_host;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The relay's program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_outflow");

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);

/// An address at which nothing listens.
fn free_address() -> String {
    let free = TcpListener::bind((own_host(), 0)).expect("a port");
    free.local_addr().expect("bound").to_string()
}

/// What a relay sends to; it is waited for as long as all is.
fn sink() -> UdpSocket {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sink.set_read_timeout(Some(PATIENCE)).expect("set");
    sink
}

/// What gets the packets of a [camera](pulled::Camera) in the end.
struct Sink {
    socket: UdpSocket,
    /// The number of the last packet.
    last: Option<u32>,
}

impl Sink {
    /// How many packets are waited for, to see that they go on: a second of them.
    const SOME: u32 = 200;

    fn new() -> Self {
        Sink { socket: sink(), last: None }
    }

    fn at(&self) -> SocketAddr {
        self.socket.local_addr().expect("bound")
    }

    /// Some packets more, each of which is the one behind the one before.
    fn go_on(&mut self, after: &str) {
        for _ in 0..Self::SOME {
            let mut packet = [0; 2048];
            let length = self.socket.recv(&mut packet).unwrap_or_else(|_| panic!("no packets after {after}"));
            let number = packet[..length].last_chunk().copied().map(u32::from_be_bytes);
            let expected = self.last.map_or(number, |last| Some(last + 1));
            assert_eq!(number, expected, "packets are missing after {after}");
            self.last = number;
        }
    }
}

/// A folder with the configuration of a relay, all processes of which end with it, whatever a test comes to.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    /// Configures a relay that listens there, too, and has all else that is said. Answers where it will listen for
    /// HTTP.
    fn configure(&self, listen: &str, all_else: &str) -> String {
        let http = free_address();
        let text = format!(
            "[listen]\nhttp = \"{http}\"\nrtsp = \"off\"\n{listen}\n\
             [limits]\nworkers = 1\n[fanout]\nudp = \"user\"\n{all_else}"
        );
        fs::write(self.file(), text).expect("written");
        http
    }

    /// The command that runs the relay as this program.
    fn relay(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.arg("run").arg(self.file()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn file(&self) -> PathBuf {
        self.of("relay.toml")
    }

    /// A file of this name.
    fn of(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        tell(&self.file(), Signal::KILL);
    }
}

/// The command that runs a relay, and where that will listen.
fn relay() -> (Command, String, Folder) {
    let folder = Folder::new();
    let http = folder.configure("rtp_ports = \"47100-47199\"", "[streams.a]\n");
    (folder.relay(PROGRAM), http, folder)
}

/// Of a process's files, one that is of words, each with a zero behind it.
fn words(pid: &str, file: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// A field of a process's state, counted from the one behind its name; none if it has ended.
fn field(pid: &str, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(number).map(str::to_owned).filter(|_| !fields.starts_with(" Z"))
}

/// All processes, and some other words.
fn processes() -> impl Iterator<Item = String> {
    let all = fs::read_dir("/proc").expect("mounted").filter_map(Result::ok);
    all.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The starter of a relay.
fn starter_of(relay: &Child) -> String {
    let is_starter = |pid: &String| {
        field(pid, 1).is_some_and(|parent| parent == relay.id().to_string())
            && words(pid, "cmdline").first().is_some_and(|name| name == "outflow-starter")
    };
    processes().find(is_starter).expect("it has one")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(LOOK);
    }
}

#[test]
fn a_starter_has_what_the_relay_began_with_and_ends_with_it() {
    let (mut command, http, _folder) = relay();
    let mut relay = command.env("OUTFLOW_TEST", "kept").spawn().expect("it can be run");
    wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
    let (starter, pid) = (starter_of(&relay), relay.id().to_string());
    let [exe, run, file] = words(&pid, "cmdline").try_into().expect("three words");
    let exe = fs::canonicalize(exe).expect("it runs").display().to_string();
    assert_eq!(words(&starter, "cmdline"), ["outflow-starter", &exe, &run, "--take-over", &file]);
    assert!(words(&starter, "environ").iter().any(|variable| variable == "OUTFLOW_TEST=kept"));
    assert_ne!(field(&starter, 2), field(&pid, 2), "a signal to the relay's terminal is none to it");
    // Not even one that ends without a word leaves it behind.
    relay.kill().expect("it runs");
    relay.wait().expect("it ends");
    wait_until("it is left behind", || field(&starter, 0).is_none());
}

/// Processes of a relay with this configuration, but for starters.
fn relays_of(file: &Path) -> Vec<String> {
    let is_relay = |pid: &String| {
        let words = words(pid, "cmdline");
        words.first().is_some_and(|name| name != "outflow-starter")
            && words.last().is_some_and(|last| Path::new(last) == file)
            && field(pid, 0).is_some()
    };
    processes().filter(is_relay).collect()
}

/// Sends all of them a signal.
fn tell(file: &Path, signal: Signal) {
    for pid in relays_of(file).iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        // It may have ended: it has handed over.
        let _ = kill_process(pid, signal);
    }
}

/// Ends all of them.
fn end(file: &Path) {
    tell(file, Signal::TERM);
    wait_until("it does not end", || relays_of(file).is_empty());
}

/// The status of the answer; none if there is no whole one.
fn ask(http: &str, request: &str) -> Option<u16> {
    answer(http, request, "")?.split(' ').nth(1)?.parse().ok()
}

/// The whole answer.
fn answer(http: &str, request: &str, body: &str) -> Option<String> {
    let mut connection = TcpStream::connect(http).ok()?;
    connection.set_read_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let headers = format!("Host: {http}\r\nContent-Type: application/json\r\nContent-Length: {length}");
    write!(connection, "{request} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n{body}").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn what_is_asked_while_another_process_takes_over_is_answered() {
    let (mut command, http, folder) = relay();
    let file = folder.file();
    let mut relay = command.spawn().expect("it can be run");
    wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
    let upgrade = || ask(&http, "POST /api/v1/upgrade");
    let mut answers: Vec<_> = std::thread::scope(|scope| {
        let asked = [(); 3].map(|()| scope.spawn(upgrade));
        asked.map(|asked| asked.join().expect("no panic")).into()
    });
    answers.sort_unstable();
    // One that comes to the new process is done by that; one that waits behind another, by neither.
    assert!(answers.iter().all(|answer| matches!(answer, Some(200 | 503))), "{answers:?}");
    assert!(answers.contains(&Some(200)), "{answers:?}");
    assert!(relay.wait().expect("it ends").success(), "the first process has handed it over");
    wait_until("there are several", || relays_of(&file).len() == 1);
    assert_eq!(ask(&http, "GET /healthz"), Some(200));
    assert_eq!(upgrade(), Some(200), "the one that took over can be taken over from");
    end(&file);
}

#[test]
fn a_relay_that_was_told_to_end_is_not_upgraded() {
    let folder = Folder::new();
    let http = folder.configure("rtp_ports = \"47720-47739\"", "[streams.demo]\nsource = \"demo://\"\n");
    let mut relay = folder.relay(PROGRAM).spawn().expect("it can be run");
    wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
    // It waits for one that watches.
    let mut viewer = TcpStream::connect(&http).expect("it listens");
    write!(viewer, "GET /demo.ts HTTP/1.1\r\nHost: {http}\r\n\r\n").expect("sent");
    viewer.read_exact(&mut [0; 1000]).expect("it comes");
    let stopped = answer(&http, "POST /api/v1/stop", "{\"drain\": \"1 h\"}").expect("an answer");
    assert!(stopped.starts_with("HTTP/1.1 20"), "{stopped}");
    let refused = answer(&http, "POST /api/v1/upgrade", "").expect("an answer");
    assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("told to end"), "{refused}");
    drop(viewer);
    assert!(relay.wait().expect("it ends").success(), "nothing goes on");
}

#[test]
fn systemd_is_told_which_process_has_the_relay_now() {
    let (mut command, http, folder) = relay();
    let (file, path) = (folder.file(), folder.of("notify"));
    let systemd = UnixDatagram::bind(&path).expect("bound");
    systemd.set_read_timeout(Some(PATIENCE)).expect("set");
    let heard = || {
        let mut text = [0; 1000];
        let length = systemd.recv(&mut text).expect("it was told");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut relay = command.env("NOTIFY_SOCKET", &path).spawn().expect("it can be run");
    assert_eq!(heard(), "READY=1");
    assert_eq!(ask(&http, "POST /api/v1/upgrade"), Some(200));
    assert!(relay.wait().expect("it ends").success(), "the first process has handed it over");
    let [pid] = relays_of(&file).try_into().expect("one process");
    // Each says its own, in whatever order.
    let mut said = [heard(), heard()];
    said.sort_unstable();
    assert_eq!(said, [format!("MAINPID={pid}"), "READY=1".to_owned()]);
    end(&file);
    assert_eq!(heard(), "STOPPING=1");
}

#[test]
fn a_relay_that_is_to_take_over_from_none_says_so() {
    let (mut command, _, _folder) = relay();
    command.arg("--take-over").stderr(Stdio::piped());
    let Output { status, stderr, .. } = command.output().expect("it can be run");
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("outflow upgrade"), "{said}");
}
