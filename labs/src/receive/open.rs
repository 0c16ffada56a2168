//! One receiver: how it asks for the stream, and the sockets on which it comes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};

use super::rtsp::Client;
use super::stamped::ask_for_stamps;
use super::wire::{Body, Wire};
use crate::media::wall_nanos;
use crate::net::RELAY_OUT;
use crate::receive::Meter;
use crate::relay::{HTTP_PORT, RTSP_PORT};

/// How long a relay may take to answer, on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Open files that root may have without asking for more (`fs.nr_open`).
const FILES: u64 = 1 << 20;

/// How a receiver gets its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    /// Datagrams of transport packets to this port, without asking.
    Udp(u16),
    /// RTP datagrams to this port, without asking.
    Rtp(u16),
    /// RTSP, RTP over UDP.
    RtspUdp,
    /// RTSP, RTP on the same connection.
    RtspTcp,
    /// MPEG-TS over HTTP.
    Http,
}

/// Where a stream is asked for.
#[derive(Debug, Clone)]
pub struct Target {
    /// The relay.
    pub relay: Ipv4Addr,
    /// Name of the stream.
    pub stream: String,
    /// What follows the name in URLs, as in `?token=…`.
    pub query: String,
}

impl Target {
    /// A stream of the relay under test, as its players see it.
    pub fn new(stream: &str) -> Self {
        Self { relay: RELAY_OUT, stream: stream.into(), query: String::new() }
    }
}

/// One socket of a receiver and what comes on it.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) socket: Socket,
    pub(super) wire: Wire,
}

#[derive(Debug)]
pub(super) enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

/// A receiver that has asked for its stream.
#[derive(Debug)]
pub struct Receiver {
    /// How it gets it.
    pub how: How,
    /// When it began to connect: nanoseconds since 1970.
    pub began: u64,
    pub(super) feeds: Vec<Feed>,
    pub(super) control: Option<Client>,
    pub(super) meter: Meter,
    /// What came together with the answer to PLAY or GET.
    pub(super) early: Vec<u8>,
}

impl Receiver {
    /// Asks for the stream. Call this in the namespace of the players.
    pub fn open(how: How, target: &Target) -> Result<Self> {
        allow_many_files();
        let began = wall_nanos();
        let (feeds, control, early) = match how {
            How::Udp(port) => (vec![datagrams(port, Wire::Transport)?], None, Vec::new()),
            How::Rtp(port) => (vec![datagrams(port, Wire::Rtp(0))?], None, Vec::new()),
            How::Http => open_http(target)?,
            How::RtspTcp => open_interleaved(target)?,
            How::RtspUdp => open_rtsp_udp(target)?,
        };
        Ok(Self { how, began, feeds, control, meter: Meter::default(), early })
    }

    /// Opens several of the same kind.
    pub fn open_many(count: usize, how: How, target: &Target) -> Result<Vec<Self>> {
        (0..count).map(|_| Self::open(how, target)).collect()
    }
}

/// A connection for small messages, on which nothing is waited for without end.
pub(super) fn connect(to: SocketAddr) -> Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&to, ANSWER_WITHIN)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(ANSWER_WITHIN))?;
    Ok(socket)
}

/// Raises the limit of open files as far as allowed, for us and for what we start; what is beyond it
/// fails where it is opened.
pub(crate) fn allow_many_files() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        if setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES).is_err()
            && let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        {
            let _as_it_was = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    });
}

type Opened = (Vec<Feed>, Option<Client>, Vec<u8>);

fn open_http(target: &Target) -> Result<Opened> {
    let address = SocketAddr::from((target.relay, HTTP_PORT));
    let mut socket = connect(address)?;
    let path = format!("/{}.ts{}", target.stream, target.query);
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let (chunked, used) = loop {
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "GET {path}: connection closed");
        bytes.extend_from_slice(&buffer[..read]);
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut answer = httparse::Response::new(&mut headers);
        if let httparse::Status::Complete(used) = answer.parse(&bytes)? {
            ensure!(answer.code == Some(200), "GET {path}: {:?} {:?}", answer.code, answer.reason);
            let chunked = answer.headers.iter().any(|header| {
                header.name.eq_ignore_ascii_case("transfer-encoding")
                    && header.value.eq_ignore_ascii_case(b"chunked")
            });
            break (chunked, used);
        }
    };
    ask_for_stamps(&socket)?;
    let feed = Feed { socket: Socket::Tcp(socket), wire: Wire::Http(Body::new(chunked)) };
    Ok((vec![feed], None, bytes.split_off(used)))
}

fn connect_rtsp(target: &Target) -> Result<(Client, Vec<String>)> {
    let path = format!("{}{}", target.stream, target.query);
    let mut client = Client::connect(SocketAddr::from((target.relay, RTSP_PORT)), &path)?;
    let tracks = client.describe()?;
    Ok((client, tracks))
}

fn open_interleaved(target: &Target) -> Result<Opened> {
    let (mut client, tracks) = connect_rtsp(target)?;
    for (index, track) in tracks.iter().enumerate() {
        let channels = format!("{}-{}", 2 * index, 2 * index + 1);
        client.setup(track, &format!("RTP/AVP/TCP;unicast;interleaved={channels}"))?;
    }
    client.play()?;
    let early = std::mem::take(&mut client.rest);
    let socket = client.socket.try_clone()?;
    ask_for_stamps(&socket)?;
    let feed = Feed { socket: Socket::Tcp(socket), wire: Wire::Interleaved(Vec::new()) };
    Ok((vec![feed], Some(client), early))
}

fn open_rtsp_udp(target: &Target) -> Result<Opened> {
    let (mut client, tracks) = connect_rtsp(target)?;
    let mut feeds = Vec::new();
    for (index, track) in (0..).zip(&tracks) {
        let (rtp, rtcp) = pair_of_ports()?;
        let port = rtp.local_addr()?.port();
        client.setup(track, &format!("RTP/AVP;unicast;client_port={port}-{}", port + 1))?;
        feeds.push(Feed { socket: Socket::Udp(rtp), wire: Wire::Rtp(index) });
        feeds.push(Feed { socket: Socket::Udp(rtcp), wire: Wire::Ignored });
    }
    client.play()?;
    Ok((feeds, Some(client), Vec::new()))
}

fn datagrams(port: u16, wire: Wire) -> Result<Feed> {
    Ok(Feed { socket: Socket::Udp(bind(port)?), wire })
}

/// A socket whose datagrams the kernel stamps when they arrive, with room for many.
fn bind(port: u16) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_nonblocking(true)?;
    ask_for_stamps(&socket)?;
    setsockopt(&socket, sockopt::RcvBufForce, &(4 << 20)).context("more receive buffer needs root")?;
    Ok(socket)
}

/// An even port and the next one (RFC 3550, section 11).
pub(crate) fn pair_of_ports() -> Result<(UdpSocket, UdpSocket)> {
    for _ in 0..100 {
        let rtp = bind(0)?;
        let port = rtp.local_addr()?.port();
        if port.is_multiple_of(2)
            && let Ok(rtcp) = bind(port + 1)
        {
            return Ok((rtp, rtcp));
        }
    }
    bail!("no pair of free ports")
}
