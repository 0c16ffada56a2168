//! What threads of a running relay may do: as root, as a user with some capabilities, and as one without.

#![allow(clippy::disallowed_methods, reason = "a test of sockets, files and processes")]

mod host;

use std::fs;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::own_host;
use outflow_privilege::{apart, choose_table, start_helper};
use outflow_socket::{Buffer, set_buffer};
use rustix::io::Errno;
use rustix::net::sockopt::socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use tempfile::TempDir;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// Numbers of capabilities (linux/capability.h).
const DAC_OVERRIDE: u64 = 1 << 1;
const DAC_READ_SEARCH: u64 = 1 << 2;
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;

/// What a user is given by systemd's `AmbientCapabilities=`; it may be less than the relay knows to use.
const GIVEN: &str = "+net_admin,+net_bind_service";

/// A relay that listens.
struct Running {
    program: Child,
    _folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Running {
    /// Starts it by a command that takes a command.
    fn start(before: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its owner's");
        let free = TcpListener::bind((own_host(), 0)).expect("a port");
        let http = free.local_addr().expect("bound");
        drop(free);
        let file = folder.path().join("relay.toml");
        // Services of their own context, so that there is such a thread.
        let text = format!(
            "[listen]\nhttp = \"{http}\"\nrtsp = \"off\"\nrtp_ports = \"46900-47099\"\n[limits]\nworkers = 2\n\
             [fanout]\nudp = \"user\"\n\
             [streams.demo]\nsource = \"demo://\"\n[streams.demo.elements.all]\nelement = \"pass\"\n\
             input = \"source\"\ncontext = \"aside\"\n[streams.demo.branches.b]\ninput = \"all\"\n"
        );
        fs::write(&file, text).expect("written");
        let words = [before, &[env!("CARGO_BIN_EXE_outflow"), "run"]].concat();
        let mut program = Command::new(words[0]);
        program.args(&words[1..]).arg(&file);
        let program = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = Running { program: program.expect("it can be run"), _folder: folder };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(http).is_err() {
            let ended = running.program.try_wait().expect("known");
            assert!(ended.is_none() && Instant::now() < until, "it does not listen: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        running
    }

    /// The names of its threads, and the files in which their state stands.
    fn threads(&self) -> Vec<(String, String)> {
        let folder = format!("/proc/{}/task", self.program.id());
        let all = fs::read_dir(folder).expect("it runs").filter_map(Result::ok);
        let read = |file: &Path| fs::read_to_string(file).ok();
        // One that has ended meanwhile has none.
        all.filter_map(|thread| read(&thread.path().join("status")))
            .map(|status| (of(&status, "Name").to_owned(), status))
            .collect()
    }
}

/// A line of a status file.
fn of<'t>(status: &'t str, key: &str) -> &'t str {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {status}")).trim()
}

/// A set of capabilities in a status file.
fn set(status: &str, key: &str) -> u64 {
    u64::from_str_radix(of(status, key), 16).expect("hexadecimal digits")
}

/// What is wrong with the threads of a relay that was given these capabilities.
fn wrong(threads: &[(String, String)], given: u64) -> Vec<String> {
    let reads = if given & DAC_READ_SEARCH > 0 { DAC_READ_SEARCH } else { DAC_OVERRIDE };
    let mut wrong = Vec::new();
    for (name, status) in threads {
        let needed = match name.as_str() {
            name if name.starts_with("tokio-") => NET_RAW | NET_BIND_SERVICE | reads,
            // Threads of the kernel's that work for a worker; they end when they idle.
            name if name.starts_with("iou-") => continue,
            _ => 0,
        };
        for key in ["CapPrm", "CapEff"] {
            if set(status, key) != given & needed {
                wrong.push(format!("{name}: {key} {}", of(status, key)));
            }
        }
        if set(status, "CapInh") != 0 || set(status, "CapAmb") != 0 || of(status, "NoNewPrivs") != "1" {
            wrong.push(format!("{name}: a program could get more: {status}"));
        }
    }
    wrong
}

/// Expects all threads of a relay to have what they need of what it was given, soon.
fn check(relay: &Running, given: u64) {
    let until = Instant::now() + PATIENCE;
    loop {
        let threads = relay.threads();
        let has = |name: &str| threads.iter().any(|(thread, _)| thread.starts_with(name));
        let wrong = wrong(&threads, given);
        // A thread is started with what the one has that starts it, and gives that up first.
        if wrong.is_empty()
            && ["outflow", "worker-1", "tokio-", "log", "end", "context-"].into_iter().all(has)
        {
            return;
        }
        let names: Vec<_> = threads.iter().map(|(name, _)| name).collect();
        assert!(Instant::now() < until, "{wrong:?} of {names:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Expects the helper to have what it is for, if the relay was given that, and nothing else; and the starter to have all
/// that the relay was given.
fn check_helpers(relay: &Running, given: u64) {
    let main = relay.program.id();
    let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).expect("it runs");
    let called = |name: &str| {
        let is_it = |child: &&str| {
            let words = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            words.split('\0').next() == Some(name)
        };
        children.split_whitespace().filter(is_it).collect::<Vec<_>>()
    };
    let (helpers, starters) = (called("outflow-helper"), called("outflow-starter"));
    assert_eq!(children.split_whitespace().count(), helpers.len() + starters.len(), "{children}");
    assert_eq!(helpers.len() as u64, (given & NET_ADMIN) / NET_ADMIN, "{helpers:?}");
    for helper in helpers {
        let status = fs::read_to_string(format!("/proc/{helper}/status")).expect("it runs");
        assert_eq!((set(&status, "CapPrm"), set(&status, "CapInh")), (NET_ADMIN, 0), "{status}");
        assert_eq!(of(&status, "NoNewPrivs"), "1");
    }
    let [starter] = starters[..] else { panic!("{starters:?}") };
    let status = fs::read_to_string(format!("/proc/{starter}/status")).expect("it runs");
    assert_eq!(set(&status, "CapPrm"), given, "{status}");
}

/// What this test may do itself.
fn ours() -> u64 {
    set(&fs::read_to_string("/proc/self/status").expect("Linux"), "CapPrm")
}

#[test]
fn each_thread_keeps_what_it_needs_of_what_the_relay_was_given() {
    let relay = Running::start(&[]);
    check(&relay, ours());
    check_helpers(&relay, ours());
}

#[test]
fn the_helper_gives_sockets_what_they_may_not_take() {
    if ours() & NET_ADMIN == 0 {
        outflow_skip::skipped("buffers beyond the system's limit", "CAP_NET_ADMIN is needed");
        return;
    }
    start_helper(Command::new(env!("CARGO_BIN_EXE_outflow")).arg0("outflow-helper")).expect("it starts");
    // Beyond what a thread without privileges is given, on any machine; the kernel doubles it.
    let bytes = 48 << 20;
    let enlarged = apart(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        set_buffer(&socket, Buffer::Receive, bytes);
        let until = Instant::now() + PATIENCE;
        while socket_recv_buffer_size(&socket).expect("known") < 2 * bytes && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        socket_recv_buffer_size(&socket).expect("known")
    });
    assert_eq!(enlarged.expect("a thread"), 2 * bytes);
    // A table of multicast routing, where the kernel has several.
    let Ok(igmp) = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::IGMP)) else { return };
    let chosen = apart(|| choose_table(igmp.as_fd(), 4711)).expect("a thread");
    let number = chosen.err().map(|error| error.raw_os_error());
    assert!([None, Some(Some(Errno::NOPROTOOPT.raw_os_error()))].contains(&number), "{number:?}");
}

#[test]
fn a_user_is_given_some_capabilities_or_none_and_the_relay_runs() {
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let given = [format!("--inh-caps={GIVEN}"), format!("--ambient-caps={GIVEN}")];
    let given: Vec<_> = user.into_iter().chain(given.iter().map(String::as_str)).collect();
    let program = [&given[..], &[env!("CARGO_BIN_EXE_outflow"), "--version"]].concat();
    let tried = Command::new(program[0]).args(&program[1..]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        let why = "no root, no `setpriv`, or a folder that other users may not enter";
        outflow_skip::skipped("a relay of another user", why);
        return;
    }
    let (some, none) = (Running::start(&given), Running::start(&user));
    check(&some, NET_ADMIN | NET_BIND_SERVICE);
    check_helpers(&some, NET_ADMIN | NET_BIND_SERVICE);
    check(&none, 0);
    check_helpers(&none, 0);
}
