//! A `nats-server` of a test's own, on loopback; gone when its owner is.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outflow_directory::{Directory, Event, Options};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program, or says that the test is left out.
pub(crate) fn program(name: &str, test: &str) -> Option<PathBuf> {
    let found = outflow_skip::program(name);
    if found.is_none() {
        outflow_skip::skipped(test, format!("{name} is missing: scripts/setup test"));
    }
    found
}

/// A server, its port, and what it keeps.
pub(crate) struct Server {
    program: PathBuf,
    child: Option<Child>,
    pub(crate) port: u16,
    /// What it keeps is in `store`; tests may put other files beside it.
    pub(crate) folder: TempDir,
    settings: String,
}

impl Server {
    /// Starts one with these lines in its configuration. `None` if there is no such program, which is said.
    pub(crate) fn start(test: &str, settings: &str) -> Option<Server> {
        let folder = tempfile::tempdir().expect("a folder");
        Server::start_in(test, settings, folder)
    }

    /// As [`Server::start`], with files that the configuration names.
    pub(crate) fn start_in(test: &str, settings: &str, folder: TempDir) -> Option<Server> {
        let program = program("nats-server", test)?;
        let mut server = Server { program, child: None, port: 0, folder, settings: settings.to_owned() };
        // The port may be taken by another process before the server has it.
        let is_up = (0..5).any(|_| {
            server.port = free_port();
            server.run()
        });
        assert!(is_up, "nats-server does not start:\n{}", server.log());
        Some(server)
    }

    /// Starts it again, at the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "nats-server does not start:\n{}", self.log());
    }

    fn run(&mut self) -> bool {
        let folder = self.folder.path();
        let mut config = format!("listen: \"127.0.0.1:{}\"\n", self.port);
        writeln!(config, "jetstream {{ store_dir: \"{}\" }}", self.store().display()).expect("a string");
        writeln!(config, "log_file: \"{}\"", folder.join("log").display()).expect("a string");
        config += &self.settings;
        std::fs::write(folder.join("config"), config).expect("written");
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(folder.join("config")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("nats-server runs");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if child.try_wait().expect("its state").is_some() {
                return false;
            }
            if greets(self.port) {
                self.child = Some(child);
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        _ = child.kill();
        _ = child.wait();
        false
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            _ = child.kill();
            _ = child.wait();
        }
    }

    /// The server does nothing any more, without any client being told.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let began = Instant::now();
        // Its threads end what they are at, each on its core.
        while !self.is_stopped() {
            assert!(began.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The server goes on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.running()), signal).expect("a signal");
    }

    fn running(&self) -> &Child {
        self.child.as_ref().expect("it runs")
    }

    /// Whether all its threads are (proc_pid_stat(5): the state stands behind the name).
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.running().id())).expect("it runs");
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, behind)| behind.starts_with('T'))
        })
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn options(&self) -> Options {
        Options { servers: vec![self.url()], name: "test".to_owned(), ..Options::default() }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.local_addr().expect("its address").port()
}

/// Whether a server sends its greeting.
fn greets(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(stream) = TcpStream::connect(address) else { return false };
    let mut line = String::new();
    stream.set_read_timeout(Some(PATIENCE)).is_ok()
        && BufReader::new(stream).read_line(&mut line).is_ok()
        && line.starts_with("INFO ")
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The next event.
pub(crate) async fn event(events: &mut mpsc::Receiver<Event>) -> Event {
    let next = tokio::time::timeout(PATIENCE, events.recv()).await;
    next.expect("an event in time").expect("the directory is there")
}

/// Waits until NATS is back; before, there may be more words on why it is away.
pub(crate) async fn back(events: &mut mpsc::Receiver<Event>) {
    while event(events).await != Event::Back {}
}

/// Starts a directory that comes to be connected.
pub(crate) async fn connected(options: Options) -> (Directory, mpsc::Receiver<Event>) {
    let (directory, mut events) = Directory::start(options).expect("good options");
    assert_eq!(event(&mut events).await, Event::Back);
    assert_eq!(directory.away(), None);
    (directory, events)
}

/// Why a directory with these options is away.
pub(crate) async fn refused(options: Options) -> String {
    let (_directory, mut events) = Directory::start(options).expect("good options");
    match event(&mut events).await {
        Event::Away { why } => why,
        Event::Back => panic!("it was let in"),
    }
}

/// Runs `openssl` in a folder.
pub(crate) fn openssl(program: &Path, folder: &Path, arguments: &str) {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments.split_whitespace()).stdin(Stdio::null());
    let output = command.output().expect("openssl runs");
    assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
