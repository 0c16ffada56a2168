//! The transports: which programs carry the media, and how these are given it and give it back.
//!
//! All have the same shape: a program at each end, whose processor time counts. The lab gives the first one the
//! units when they are due, and takes note of when the second one gives them back. For UDP and TCP, which are in the
//! kernel, the programs are the least that is possible: this one, once more, which hands on datagrams or bytes.
//!
//! The latency bound is that of `srt-live-transmit` (`latency`, both ends) and of RIST (`buffer`, main profile).

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use outflow_labs::process::Program;
use outflow_labs::programs::missing;
use outflow_petri::net::{Shape, mpeg_gop, mpeg_shape, of_gop};
use serde_json::{Value, json};

use crate::path::SINK;
use crate::stream::{GOP, PICTURE, UNITS};

/// What the service is declared to need, in kbit/s: congestion control goes no lower. SRT and RIST have none, and send
/// whatever they are given.
const FLOOR_KBPS: &str = "2500";

/// How long a program at one end waits for the other.
const PATIENCE: Duration = Duration::from_secs(20);

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Transport {
    Udp,
    Tcp,
    Poc,
    Srt,
    Rist,
}

/// How media goes in and comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In datagrams of the lab, by UDP within the namespace.
    Datagrams,
    /// Units one behind the other, by a pipe.
    Bytes,
    /// The same with what `outflow poc --format units` wants in front of each.
    Units,
}

/// What programs are told.
#[derive(Debug, Clone)]
pub(crate) struct Terms<'a> {
    pub(crate) latency: Duration,
    /// The `outflow` that is measured.
    pub(crate) outflow: Option<&'a Path>,
    /// For files that programs want.
    pub(crate) folder: &'a Path,
}

impl Transport {
    pub(crate) const ALL: [Transport; 5] =
        [Transport::Udp, Transport::Tcp, Transport::Poc, Transport::Srt, Transport::Rist];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Poc => "poc",
            Transport::Srt => "srt",
            Transport::Rist => "rist",
        }
    }

    /// The receiver's port.
    pub(crate) fn port(self) -> u16 {
        7000 + 2 * self as u16
    }

    /// Where the sending program is given datagrams, and where the receiving one gives them back.
    pub(crate) fn local(self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 5000 + 2 * self as u16).into()
    }

    pub(crate) fn form(self) -> Form {
        match self {
            Transport::Udp | Transport::Srt | Transport::Rist => Form::Datagrams,
            Transport::Tcp => Form::Bytes,
            Transport::Poc => Form::Units,
        }
    }

    /// Whether its ends say something to each other before there is media.
    pub(crate) fn connects(self) -> bool {
        self != Transport::Udp
    }

    /// Why it cannot be measured here, if it cannot.
    pub(crate) fn lacks(self, outflow: Option<&Path>) -> Option<String> {
        match self {
            Transport::Udp | Transport::Tcp => None,
            Transport::Srt => missing("srt-live-transmit"),
            Transport::Rist => missing("ristsender").or_else(|| missing("ristreceiver")),
            Transport::Poc => match outflow {
                None => Some("there is no outflow program".into()),
                Some(program) => (!has_poc(program)).then(|| "this outflow has no `poc send`".into()),
            },
        }
    }

    /// What its programs have counted themselves, if they did; asked once a run.
    pub(crate) fn told(self, folder: &Path) -> Option<Value> {
        let ends = ["send", "recv"].map(|what| {
            let file = statistics(folder, what);
            let text = std::fs::read_to_string(&file).ok()?;
            // It is not to be taken for that of the next run.
            std::fs::remove_file(&file).ok()?;
            serde_json::from_str::<Value>(&text).ok()
        });
        let [send, recv] = ends;
        (self == Transport::Poc && (send.is_some() || recv.is_some()))
            .then(|| json!({ "send": send, "recv": recv }))
    }

    /// The program at the source.
    pub(crate) fn sender(self, terms: &Terms) -> Result<Program> {
        let (local, to) = (self.local(), SocketAddr::from((SINK, self.port())));
        let ms = terms.latency.as_millis();
        Ok(match self {
            Transport::Udp => own()?.args(["forward".into(), local.to_string(), to.to_string()]),
            Transport::Tcp => own()?.args(["tcp-send".into(), to.to_string()]),
            Transport::Srt => Program::words(&format!(
                "srt-live-transmit -loglevel:error -chunk:1316 udp://{local} srt://{to}?mode=caller&latency={ms}"
            )),
            Transport::Rist => Program::words(&format!(
                "ristsender -p 1 -S 0 -v 3 -b {ms} -i udp://@{local} -o rist://{to}?buffer={ms}"
            )),
            Transport::Poc => poc("send", &format!("poc://{to}/lab"), terms)?
                .args(["--from", "-", "--min-rate", FLOOR_KBPS, "--net"])
                .arg(net(terms.folder)?),
        })
    }

    /// The program at the sink, which is started first.
    pub(crate) fn receiver(self, terms: &Terms) -> Result<Program> {
        let (local, at) = (self.local(), SocketAddr::from((SINK, self.port())));
        let ms = terms.latency.as_millis();
        Ok(match self {
            Transport::Udp => own()?.args(["forward".into(), at.to_string(), local.to_string()]),
            Transport::Tcp => own()?.args(["tcp-receive".into(), at.to_string()]),
            Transport::Srt => Program::words(&format!(
                "srt-live-transmit -loglevel:error -chunk:1316 srt://{at}?mode=listener&latency={ms} udp://{local}"
            )),
            Transport::Rist => Program::words(&format!(
                "ristreceiver -p 1 -S 0 -v 3 -b {ms} -i rist://@{at}?buffer={ms} -o udp://{local}"
            )),
            Transport::Poc => poc("recv", &format!("poc://{at}/lab"), terms)?.arg("--listen"),
        })
    }
}

/// This program, for an end of UDP or TCP.
fn own() -> Result<Program> {
    Ok(Program::new(std::env::current_exe()?.display().to_string()))
}

fn poc(what: &str, address: &str, terms: &Terms) -> Result<Program> {
    let program = terms.outflow.context("it was looked for")?;
    let latency = format!("{} ms", terms.latency.as_millis());
    Ok(Program::new(program.display().to_string())
        .args(["poc", what, address, "--format", "units", "--insecure", "--latency"])
        .args([latency, "--json-stats".into(), statistics(terms.folder, what).display().to_string()]))
}

/// Where `outflow poc send` and `recv` write what they have counted.
fn statistics(folder: &Path, what: &str) -> PathBuf {
    folder.join(format!("poc-{what}.json"))
}

/// The paper's net, with the picture's header as one more object of each picture, the first.
fn net(folder: &Path) -> Result<String> {
    let shape = Shape { objects_per_frame: UNITS as u32, ..mpeg_shape() };
    let file = folder.join("mpeg.tspn");
    let period = PICTURE.as_millis() as usize * GOP;
    let net = of_gop(&mpeg_gop(), &shape)?;
    std::fs::write(&file, format!("period {period} ms\ndependent\n{net}"))?;
    Ok(file.display().to_string())
}

/// Whether an `outflow` has `poc send`.
fn has_poc(program: &Path) -> bool {
    let says = |arguments: &[&str], word: &str| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            output.status.success() && text.lines().any(|line| line.split_whitespace().next() == Some(word))
        })
    };
    says(&["--help"], "poc") && says(&["poc", "--help"], "send")
}

/// What this program does as an end of UDP or TCP. Nothing but errors ends it, or that there is no more.
pub(crate) fn be_end(arguments: &[OsString]) -> Option<Result<()>> {
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    match words[..] {
        ["forward", from, to] => Some(forward(from, to)),
        ["tcp-send", to] => Some(tcp_send(to)),
        ["tcp-receive", at] => Some(tcp_receive(at)),
        _ => None,
    }
}

fn forward(from: &str, to: &str) -> Result<()> {
    let (from, on) = (UdpSocket::bind(from)?, UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?);
    on.connect(to)?;
    let mut datagram = [0; 2048];
    loop {
        let bytes = from.recv(&mut datagram)?;
        // No listener yet (ECONNREFUSED) is no reason to end.
        let _nobody_there = on.send(&datagram[..bytes]);
    }
}

fn tcp_send(to: &str) -> Result<()> {
    let mut connection = TcpStream::connect_timeout(&to.parse()?, PATIENCE)?;
    connection.set_nodelay(true)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut connection)?;
    Ok(())
}

fn tcp_receive(at: &str) -> Result<()> {
    let (mut connection, _) = TcpListener::bind(at)?.accept()?;
    // Not by way of `Stdout`, which waits for the end of a line.
    let mut out = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    std::io::copy(&mut connection, &mut out)?;
    Ok(())
}
