//! What a receiver gets while processes take over, one after the other or in vain: each packet follows the one before.

use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{env, fs, io, thread};

use outflow_handover::Line;

use super::{Folder, PATIENCE, PROGRAM, ask, end, relays_of, sink, wait_until};

/// What tells this test program to stand between the two processes: the kind of message that the new one does not come
/// to say, and the file that both run with.
const BETWEEN: &str = "OUTFLOW_TEST_BETWEEN";

/// What the new process says, in its order, as `crates/control/src/upgrade/saved.rs` numbers it.
const HELLO: u8 = 1;
const READY: u8 = 3;
const CONNECTED: u8 = 5;
const RESTORED: u8 = 7;
const ON: u8 = 9;

/// The status of a relay without which something cannot go on.
const FAILED: i32 = 70;

/// How many packets are waited for, to see that they go on: a second of them.
const SOME: usize = 40;

/// No test of its own: what the relay starts in the tests below. It passes on what the two processes say to each other,
/// until the new one is about to say this; that one is killed then, and this one ends.
#[test]
fn stands_between_the_two_processes() {
    let Ok(told) = env::var(BETWEEN) else { return };
    let (kind, file) = told.split_once(' ').expect("two words");
    let kind = kind.parse().expect("a number");
    let input = io::stdin();
    let old = input.as_fd().try_clone_to_owned().and_then(Line::taken).expect("a line");
    let (new, other) = Line::pair().expect("there is room");
    let mut program = Command::new(PROGRAM);
    program.args(["run", "--take-over", file]).stdin(other).stdout(Stdio::null());
    let mut process = program.spawn().expect("it can be run");
    drop(program);
    thread::scope(|scope| {
        scope.spawn(|| pass_on(&old, &new, None));
        pass_on(&new, &old, Some(kind));
        process.kill().expect("it is this one's child");
        process.wait().expect("it ends");
        // The line to the old process ends with this one.
        std::process::exit(0);
    });
}

/// Until this kind of message comes, or none any more.
fn pass_on(from: &Line, to: &Line, until: Option<u8>) {
    while let Ok(message) = from.receive(PATIENCE)
        && until != Some(message.kind)
        && to.send(message, PATIENCE).is_ok()
    {}
}

/// A relay that sends the demo, run from a program of its own, and what its sink gets.
struct Scene {
    relay: Child,
    http: String,
    sink: UdpSocket,
    folder: Folder,
}

impl Scene {
    /// What is said of the stream stands behind its source, and of the sink behind its address.
    fn new(ports: &str, (of_stream, of_sink): (&str, &str)) -> Self {
        let sink = sink();
        let to = sink.local_addr().expect("bound");
        let (folder, sinks) =
            (Folder::new(), format!("[[sinks]]\nstream = \"demo\"\nto = \"rtp://{to}\"\n{of_sink}"));
        let streams = format!("[streams.demo]\nsource = \"demo://\"\n{of_stream}{sinks}");
        let http = folder.configure(&format!("rtp_ports = \"{ports}\""), &streams);
        put(&format!("cp '{PROGRAM}' '{}'", folder.of("outflow").display()));
        let log = fs::File::create(folder.of("log")).expect("a file");
        let relay = folder.relay(folder.of("outflow")).stderr(log).spawn().expect("it can be run");
        wait_until("it does not listen", || TcpStream::connect(&http).is_ok());
        Scene { relay, http, sink, folder }
    }

    /// The numbers of what its sink gets from now on.
    fn hear(&self) -> Receiver<u16> {
        let (told, heard) = channel();
        let sink = self.sink.try_clone().expect("a copy");
        thread::spawn(move || numbers(&sink, &told));
        heard
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.of("log")).expect("written")
    }

    /// The status of an upgrade to a process that ends when it would say this.
    fn upgrade_that_ends(&self, kind: u8) -> Option<u16> {
        let test = env::current_exe().expect("it runs");
        let name = "ends::stands_between_the_two_processes";
        let told = format!("{kind} {}", self.folder.file().display());
        let test = format!("exec '{}' --exact {name} --nocapture >/dev/null", test.display());
        let (new, program) = (self.folder.of("new"), self.folder.of("outflow"));
        let (new, program) = (new.display(), program.display());
        put(&format!(
            "cat >'{new}' <<'END' && chmod 755 '{new}' && mv '{new}' '{program}'\n\
             #!/bin/sh\nexport {BETWEEN}='{told}'\n{test}\nEND\n"
        ));
        ask(&self.http, "POST /api/v1/upgrade")
    }
}

/// Makes a program by a shell. A process of which others are started meanwhile cannot write one itself and run it: they
/// may still have it open.
fn put(script: &str) {
    assert!(Command::new("sh").args(["-euc", script]).status().expect("it can be run").success());
}

/// The numbers of RTP packets, as they come, until the sender has gone.
fn numbers(sink: &UdpSocket, to: &Sender<u16>) {
    let mut packet = [0; 2048];
    while let Ok(length) = sink.recv(&mut packet)
        && let [_, _, high, low, ..] = packet[..length]
        && to.send(u16::from_be_bytes([high, low])).is_ok()
    {}
}

/// Some packets more, each of which is the one behind the one before.
fn go_on(numbers: &Receiver<u16>, last: &mut Option<u16>, after: &str) {
    for _ in 0..SOME {
        let number = numbers.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no packets after {after}"));
        assert_eq!(
            number,
            last.map_or(number, |last| last.wrapping_add(1)),
            "packets are missing after {after}"
        );
        *last = Some(number);
    }
}

#[test]
fn a_relay_goes_on_when_the_new_process_ends_before_it_has_it_and_fails_with_one_that_ends_later() {
    let mut scene = Scene::new("47200-47249", ("", ""));
    let (heard, mut last) = (scene.hear(), None);
    go_on(&heard, &mut last, "the start");
    for kind in [HELLO, READY, CONNECTED, RESTORED] {
        assert_eq!(scene.upgrade_that_ends(kind), Some(409), "{kind}");
        // The log has a thread of its own.
        wait_until("the log does not say why", || scene.log().contains("the other process has ended"));
        go_on(&heard, &mut last, &format!("an upgrade that ended at {kind}"));
        assert_eq!(ask(&scene.http, "GET /readyz"), Some(200), "{kind}");
        assert_eq!(relays_of(&scene.folder.file()), [scene.relay.id().to_string()], "{kind}");
    }
    assert_eq!(scene.upgrade_that_ends(ON), Some(503));
    let status = scene.relay.wait().expect("it ends");
    assert_eq!(status.code(), Some(FAILED), "{}", scene.log());
    let said = "the process that took the relay over has ended";
    assert!(scene.log().contains(said), "{}", scene.log());
    end(&scene.folder.file());
}

#[test]
fn what_another_program_makes_of_a_stream_is_numbered_on() {
    let program = "[streams.demo.elements.copy]\nelement = \"external\"\ncommand = [\"cat\"]\n\
                   [streams.demo.branches.copied]\ninput = \"copy\"\n";
    let mut scene = Scene::new("47250-47299", (program, "branch = \"copied\"\n"));
    let (heard, mut last) = (scene.hear(), None);
    go_on(&heard, &mut last, "the start");
    for upgrade in ["an upgrade", "another one"] {
        assert_eq!(ask(&scene.http, "POST /api/v1/upgrade"), Some(200));
        go_on(&heard, &mut last, upgrade);
    }
    assert!(scene.relay.wait().expect("it ends").success());
    end(&scene.folder.file());
}
