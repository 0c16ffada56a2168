//! A stream by RTSP, the media over UDP or within the connection.

mod save;

pub(crate) use save::SavedRtsp;

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use outflow_media::{Codec, Format, Time};
use outflow_rtp::sdp;
use outflow_rtp::sdp::Description;
use outflow_rtsp::auth::Credentials;
use outflow_rtsp::client::{ClientOptions, Event, Output, RtspClient, Server, TrackSetup, Wake};
use outflow_rtsp::{Lower, Transport, interleaved_prefix};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep_until;

use crate::described::Described;
use crate::limits::{READ_BYTES, UNSENT_BYTES};
use crate::socket::Place;
use crate::track::RtpTrack;
use crate::udp::UdpTrack;
use crate::wire::{Io, dial};
use crate::{AskBy, Error, Options, Received, socket, udp};

/// A session that plays.
#[derive(Debug)]
pub(crate) struct RtspSession {
    client: RtspClient,
    options: Options,
    wire: Option<Connection>,
    described: Option<Described>,
    tracks: Vec<RtpTrack>,
    udp: Vec<UdpTrack>,
    playing: bool,
    refused: Option<u16>,
}

/// The connection and what waits on it.
struct Connection {
    io: Box<dyn Io>,
    peer: IpAddr,
    local: IpAddr,
    input: BytesMut,
    output: BytesMut,
}

/// What was done on a connection.
enum Exchanged {
    Written,
    /// As many bytes; the peer has closed it if there are none.
    Read(usize),
}

impl Connection {
    /// Writes what waits, or reads. Nothing is lost if this is cancelled.
    async fn exchange(&mut self) -> io::Result<Exchanged> {
        self.input.reserve(READ_BYTES);
        poll_fn(|cx| {
            if !self.output.is_empty()
                && let Poll::Ready(written) = pin!(self.io.write_buf(&mut self.output)).poll(cx)
            {
                return Poll::Ready(written.map(|_| Exchanged::Written));
            }
            pin!(self.io.read_buf(&mut self.input)).poll(cx).map_ok(Exchanged::Read)
        })
        .await
    }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl RtspSession {
    /// Asks for `url` until it plays. What comes before the answer to PLAY goes to `early`.
    pub(crate) async fn start(
        url: &str,
        options: &Options,
        early: &mut VecDeque<Received>,
    ) -> Result<(RtspSession, Described), Error> {
        let mut session = RtspSession::of(RtspClient::new(url, client_options(options))?, options);
        while !session.playing {
            session.advance(early).await?;
        }
        let described = session.described.take().ok_or_else(|| Error::Peer("no description".to_owned()))?;
        Ok((session, described))
    }

    fn of(client: RtspClient, options: &Options) -> Self {
        RtspSession {
            client,
            options: options.clone(),
            wire: None,
            described: None,
            tracks: Vec::new(),
            udp: Vec::new(),
            playing: false,
            refused: None,
        }
    }

    pub(crate) fn is_over_udp(&self) -> bool {
        !self.udp.is_empty()
    }

    pub(crate) fn malformed(&self) -> u64 {
        self.tracks.iter().map(|track| track.malformed).sum()
    }

    pub(crate) fn strangers(&self) -> u64 {
        self.client.strays() + self.udp.iter().map(UdpTrack::strangers).sum::<u64>()
    }

    /// Does what is to be done, then waits for something to happen, once. While it plays, nothing
    /// is lost if this is cancelled.
    pub(crate) async fn advance(&mut self, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        let (before, playing) = (queue.len(), self.playing);
        let until = loop {
            match self.client.poll(self.options.clock.now()) {
                Output::Connect(server) => self.connect(server).await?,
                Output::Send(bytes) => self.send(&[&bytes])?,
                Output::Event(event) => self.on_event(event, queue)?,
                Output::Wait(until) => break until,
            }
        };
        if queue.len() > before || self.playing != playing {
            return Ok(());
        }
        self.send_due()?;
        self.wait(until, queue).await
    }

    /// Asks for a level: by RTCP beside the media of a track, or by the session itself.
    pub(crate) fn ask(&mut self, now: Time, track: u8, level: u8) {
        match self.options.ask_by {
            AskBy::Rtsp => self.client.set_parameter("level", &level.to_string()),
            AskBy::Rtcp => {
                if let Some(track) = self.tracks.get_mut(usize::from(track)) {
                    track.ask(now, level);
                }
            }
        }
    }

    /// Asks for a key frame of a track.
    pub(crate) fn ask_key_frame(&mut self, track: u8) {
        if let Some(track) = self.tracks.get_mut(usize::from(track)) {
            track.ask_key_frame();
        }
    }

    /// The status with which the server refused the last wish, if it did.
    pub(crate) fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// Says goodbye, and waits a moment for the answer.
    pub(crate) async fn close(mut self) {
        self.client.teardown(self.options.clock.now());
        let mut rest = VecDeque::new();
        while self.advance(&mut rest).await.is_ok() {
            rest.clear();
        }
    }

    async fn connect(&mut self, server: Server) -> Result<(), Error> {
        self.wire = None;
        self.tracks.clear();
        self.udp.clear();
        let wire = dial(&server.host, server.port, server.tls, &self.options).await?;
        let (peer, local) = (wire.peer.ip().to_canonical(), wire.local.ip());
        let (input, output) = (BytesMut::with_capacity(READ_BYTES), BytesMut::new());
        self.wire = Some(Connection { io: wire.io, peer, local, input, output });
        self.client.connected(self.options.clock.now());
        Ok(())
    }

    fn send(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        for part in parts {
            wire.output.extend_from_slice(part);
        }
        if wire.output.len() > UNSENT_BYTES {
            return Err(Error::Peer("it reads nothing of what it is sent".to_owned()));
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        let now = self.options.clock.now();
        match event {
            Event::Described { sdp } => self.on_described(&sdp, now)?,
            Event::SetUp(carried) if self.options.multicast => self.join(&carried)?,
            Event::SetUp(carried) => self.on_set_up(&carried),
            Event::Started(_) => self.playing = true,
            Event::Media { track, rtcp, bytes } => {
                let Some(track) = self.tracks.get_mut(track) else { return Ok(()) };
                if rtcp {
                    track.control(&bytes, now, queue);
                } else {
                    track.media(bytes, now, queue);
                }
            }
            Event::ParameterSet { status } => self.refused = (status >= 300).then_some(status),
            Event::Announced => {}
            Event::Closed(why) => return Err(why.into()),
        }
        Ok(())
    }

    fn on_described(&mut self, text: &Bytes, now: Time) -> Result<(), Error> {
        let description = sdp::parse(text).map_err(|e| Error::Description(e.to_string()))?;
        let described = Described::of(&description);
        let mut setups = Vec::new();
        for media in wanted(&description, &described.format) {
            let ports = match self.options.transport {
                Lower::Udp if !self.options.multicast => Some(self.bind()?),
                _ => None,
            };
            setups.push(TrackSetup { control: media.control.clone(), ports });
            let index = u8::try_from(self.tracks.len()).unwrap_or(u8::MAX);
            self.tracks.push(RtpTrack::new(index, &media.track, self.options.seed));
        }
        self.described = Some(described);
        self.client.setup(now, description.control.as_deref(), &setups);
        Ok(())
    }

    fn bind(&mut self) -> Result<outflow_rtsp::Pair<u16>, Error> {
        let local = self.wire.as_ref().map_or(IpAddr::from([0; 4]), |wire| wire.local);
        let (ports, rtp, rtcp) = socket::bind_pair(local, self.options.receive_buffer)?;
        self.udp.push(UdpTrack::new(rtp, Some(rtcp), true));
        Ok(ports)
    }

    fn on_set_up(&mut self, carried: &[Transport]) {
        if carried.iter().all(|transport| transport.lower == Lower::Tcp) {
            self.udp.clear();
        }
        let peer = self.wire.as_ref().map(|wire| wire.peer);
        for ((udp, transport), track) in self.udp.iter_mut().zip(carried).zip(&self.tracks) {
            // A server may send from another address than it listens on, if it says so.
            let named = transport.source.as_deref().and_then(|s| s.parse::<IpAddr>().ok());
            let Some(from) = named.filter(|ip| !ip.is_unspecified()).or(peer) else { continue };
            udp.hear_only(from.to_canonical());
            if let Some(ports) = transport.server_port {
                udp.greet(SocketAddr::new(from, ports.rtp), SocketAddr::new(from, ports.rtcp), track.ssrc());
            }
        }
    }

    /// Joins the groups that the tracks go to, by the interface that leads to the server.
    fn join(&mut self, carried: &[Transport]) -> Result<(), Error> {
        let interface = self.wire.as_ref().map(|wire| wire.local.to_canonical().to_string());
        for transport in carried {
            let named = |host: &Option<String>| host.as_deref().and_then(|host| host.parse::<IpAddr>().ok());
            let group = named(&transport.destination).filter(IpAddr::is_multicast);
            let (Some(group), Some(ports)) = (group, transport.port) else {
                return Err(Error::Peer("it names no group that can be joined".to_owned()));
            };
            let source = named(&transport.source).filter(|source| !source.is_unspecified());
            let place =
                |port| Place { at: SocketAddr::new(group, port), source, interface: interface.clone() };
            let rtp = socket::bind(&place(ports.rtp), self.options.receive_buffer)?;
            let rtcp = socket::bind(&place(ports.rtcp), 0)?;
            let mut track = UdpTrack::new(rtp, Some(rtcp), false);
            if let Some(source) = source {
                track.hear_only(source);
            }
            self.udp.push(track);
        }
        Ok(())
    }

    fn send_due(&mut self) -> Result<(), Error> {
        let now = self.options.clock.now();
        for i in 0..self.tracks.len() {
            while let Some(bytes) = self.tracks[i].rtcp(now) {
                self.send_rtcp(i, &bytes)?;
            }
        }
        Ok(())
    }

    fn send_rtcp(&mut self, track: usize, bytes: &[u8]) -> Result<(), Error> {
        let channels = self.client.carried().get(track).and_then(|transport| transport.interleaved);
        match (channels, u16::try_from(bytes.len())) {
            (Some(channels), Ok(length)) => {
                self.send(&[&interleaved_prefix(channels.rtcp, length), bytes])?;
            }
            _ => {
                if let Some(udp) = self.udp.get(track) {
                    udp.send(bytes);
                }
            }
        }
        Ok(())
    }

    async fn wait(
        &mut self,
        until: Option<(Time, Wake)>,
        queue: &mut VecDeque<Received>,
    ) -> Result<(), Error> {
        let reports = self.tracks.iter().filter_map(RtpTrack::rtcp_at);
        let deadline = reports.chain(until.map(|(at, _)| at)).min();
        let clock = self.options.clock;
        let Some(wire) = &mut self.wire else { return Err(Error::Ended) };
        let deadline = clock.instant(deadline.unwrap_or_else(|| clock.now() + self.options.patience));
        tokio::select! {
            exchanged = wire.exchange() => match exchanged {
                Ok(Exchanged::Read(0)) => self.client.disconnected(None),
                Ok(Exchanged::Read(_)) => self.client.handle(clock.now(), &mut wire.input),
                Ok(Exchanged::Written) => {}
                Err(error) => self.client.disconnected(Some(error.to_string())),
            },
            () = udp::readable(&self.udp) => {
                udp::receive(&mut self.udp, &mut self.tracks, clock.now(), queue)?;
            }
            () = sleep_until(deadline) => {}
        }
        Ok(())
    }
}

fn client_options(options: &Options) -> ClientOptions {
    let token = |token: String| Credentials { user: "token".to_owned(), password: token };
    ClientOptions {
        lower: options.transport,
        multicast: options.multicast,
        credentials: options.credentials.clone().or(options.token.clone().map(token)),
        timeout: options.patience,
        seed: options.seed,
        ..ClientOptions::default()
    }
}

/// The media to set up: all of them, but of a transport stream only itself.
fn wanted<'a>(
    description: &'a Description,
    format: &Format,
) -> impl Iterator<Item = &'a sdp::MediaDescription> {
    let is_ts = *format == Format::Ts;
    let media = description.media.iter().filter(move |m| !is_ts || m.track.codec == Codec::Mp2t);
    media.take(if is_ts { 1 } else { usize::MAX })
}
