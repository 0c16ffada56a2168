//! Playing a stream: the handle that an RTSP session or an HTTP response holds.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use outflow_config::BitRate;
use outflow_poc_socket::media::Form;
use outflow_relay::schedule::StartPoint;
use outflow_relay::{Carriage, Priority, Report, SinkSpec, Timing, TrackMask, Transport};
use tokio::sync::oneshot;

use super::{CloseReason, Control, ControlError, Owner, PushRoute, UdpSite, Wanted};
use super::{Command, JoinSpec, ReceiverId, Route, TrackAddress, TrackChannel};
use crate::message::WriteSide;

/// How a receiver wants to be served.
#[derive(Debug, Clone)]
pub enum Via {
    /// RTP over UDP from this address and these ports of the relay ([`Control::udp_site`]) to proven addresses.
    RtspUdp(UdpSite, Vec<TrackAddress>),
    /// RTP in interleaved frames on the RTSP connection.
    RtspTcp(Vec<TrackChannel>),
    /// Transport stream bytes on a connection.
    HttpTs,
    /// By the partial-order transport, in this form: packets on a connection, each with what it is worth.
    Poc(Form),
}

/// A receiver that wants to play.
#[derive(Debug, Clone)]
pub struct PlayOptions {
    /// How it is to be served.
    pub via: Via,
    /// Its address, for people.
    pub peer: String,
    /// Its class, if it is not the stream's own.
    pub priority: Option<Priority>,
    /// What of the stream it wants.
    pub wanted: Wanted,
    /// What it is called, if it is a configured receiver.
    pub name: Option<String>,
    /// When its packets go, if not as the stream says.
    pub timing: Option<Timing>,
    /// The link that it is behind, if not that of the stream.
    pub link: Option<String>,
}

impl PlayOptions {
    /// As the stream says.
    pub fn new(via: Via, peer: impl ToString, wanted: Wanted) -> Self {
        let (priority, name, timing, link) = (None, None, None, None);
        PlayOptions { via, peer: peer.to_string(), priority, wanted, name, timing, link }
    }
}

/// What a receiver is, and wants.
struct Wish {
    sink: SinkSpec,
    wanted: Wanted,
    route: Route,
    kind: &'static str,
    to: String,
    name: Option<String>,
    link: Option<String>,
}

/// A receiver's place at a stream; it leaves when this is dropped.
#[derive(Debug)]
pub struct Playing {
    control: Control,
    owner: Owner,
    id: ReceiverId,
    starts: Vec<StartPoint>,
    left_out: Vec<String>,
    /// How it ended is heard once, and known from then on.
    closed: Result<CloseReason, oneshot::Receiver<CloseReason>>,
}

/// Tells the worker what a receiver says, and what became of packets.
#[derive(Debug)]
pub(crate) struct Reporter {
    control: Control,
    owner: Owner,
    receiver: ReceiverId,
}

impl Reporter {
    /// An RTCP packet that came in on the receiver's own connection.
    pub(crate) fn rtcp(&self, bytes: Bytes) {
        let (stream, receiver) = (self.owner.stream, self.receiver);
        self.control.tell(&self.owner, Command::ReceiverRtcp { stream, receiver, bytes });
    }

    /// A packet that was handed on has not come.
    pub(crate) fn undelivered(&self, report: Report) {
        let (stream, receiver) = (self.owner.stream, self.receiver);
        self.control.tell(&self.owner, Command::Undelivered { stream, receiver, report });
    }
}

impl Control {
    /// Takes a place at the newest key frame of `stream`. Nothing is sent before
    /// [`Playing::start`], so that the answer can go out first.
    ///
    /// # Errors
    /// Unknown stream, no source yet (RTP only), a limit is reached, or the stream cannot be
    /// carried that way.
    pub async fn play(&self, stream: &str, options: PlayOptions) -> Result<Playing, ControlError> {
        let mut site = None;
        let (kind, carriage, transport, tracks, route) = match options.via {
            Via::RtspUdp(at, addresses) => {
                site = Some(at);
                let tracks = mask(addresses.iter().map(|a| a.track));
                (
                    "rtsp-udp",
                    Carriage::Rtp,
                    Transport::Datagram,
                    tracks,
                    Route::Rtsp { from: at.from, to: addresses },
                )
            }
            Via::RtspTcp(channels) => {
                let tracks = mask(channels.iter().map(|c| c.track));
                ("rtsp-tcp", Carriage::Rtp, Transport::Stream, tracks, Route::Interleaved(channels))
            }
            Via::Poc(Form::Ts) => ("poc", Carriage::Ts, Transport::Stream, TrackMask::ALL, Route::Units),
            Via::Poc(Form::Rtp) => ("poc", Carriage::Rtp, Transport::Stream, TrackMask::ALL, Route::Units),
            Via::HttpTs => ("http-ts", Carriage::Ts, Transport::Stream, TrackMask::ALL, Route::Raw),
        };
        let priority = options.priority.unwrap_or_else(|| self.stream_priority(stream));
        let timing = options.timing.unwrap_or_else(|| self.stream_timing(stream));
        let link = options.link.or_else(|| self.stream_link(stream));
        let sink = SinkSpec { tracks, priority, timing, held: true, ..SinkSpec::new(carriage, transport) };
        self.join(
            stream,
            site,
            Wish { sink, wanted: options.wanted, route, kind, to: options.peer, name: options.name, link },
        )
        .await
    }

    pub(crate) async fn push(
        &self,
        stream: &str,
        (carriage, route): (Carriage, PushRoute),
        (priority, timing): (Priority, Timing),
        wanted: Wanted,
        (name, link): (Option<String>, Option<String>),
    ) -> Result<Playing, ControlError> {
        let kind = if carriage == Carriage::Ts { "udp" } else { "rtp" };
        let to = route.to.to_string();
        let sink = SinkSpec { priority, timing, ..SinkSpec::new(carriage, Transport::Datagram) };
        let route = Route::Push(route);
        self.join(stream, None, Wish { sink, wanted, route, kind, to, name, link }).await
    }

    async fn join(
        &self,
        stream: &str,
        site: Option<UdpSite>,
        Wish { mut sink, wanted, route, kind, to, name, link }: Wish,
    ) -> Result<Playing, ControlError> {
        self.reach_unknown(stream, wanted.level).await?;
        let id = self.new_id();
        let place = link.as_deref().map(|name| self.link(name).map(|link| (link, name))).transpose()?;
        let admitted = self.admit(stream, id, site, (&wanted, place))?;
        let owner = admitted.owner;
        // Who was told ports before the stream was put behind another link is not behind that.
        let link = place.map(|(link, _)| link).filter(|link| link.worker == owner.worker);
        sink.link = link.map(|link| link.id);
        let (closing, closed) = oneshot::channel();
        // Made before asking, so that the receiver is struck out however this ends.
        let (starts, left_out, closed) = (Vec::new(), Vec::new(), Err(closed));
        let mut playing = Playing { control: self.clone(), owner, id, starts, left_out, closed };
        if !admitted.ready().await {
            return Err(ControlError::UnknownStream(stream.to_owned()));
        }
        let spec = Box::new(JoinSpec { sink, wanted, route, kind, to, name, closed: closing });
        let join = |reply| Command::Join { stream: owner.stream, receiver: id, spec, reply };
        let joined = self.ask(&owner, join).await?;
        (playing.starts, playing.left_out) = (joined.starts, joined.left_out);
        Ok(playing)
    }

    pub(crate) fn stream_priority(&self, stream: &str) -> Priority {
        let config = self.config();
        config.streams.get(stream).map_or(Priority::Normal, |s| crate::supervise::priority(s.priority))
    }
}

impl Control {
    /// When a stream's packets go, where a receiver does not say otherwise.
    pub(crate) fn stream_timing(&self, stream: &str) -> Timing {
        let config = self.config();
        config.streams.get(stream).map_or_else(Timing::default, |s| timing(s.latency_budget, s.pace))
    }
}

/// The timing that a configuration says.
pub(crate) fn timing(latency_budget: Duration, pace: Option<BitRate>) -> Timing {
    Timing { latency_budget, pace_bps: pace.map(|rate| rate.0) }
}

impl Playing {
    /// The receiver's number.
    pub fn id(&self) -> ReceiverId {
        self.id
    }

    /// First RTP packets of the tracks (for RTP-Info).
    pub fn starts(&self) -> &[StartPoint] {
        &self.starts
    }

    /// The tracks of the stream that have no place in what it gets ("video AV1" in a transport stream),
    /// as far as that was known when it joined; [`ReceiverState::left_out`](super::ReceiverState) follows.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Begins to send; `connection` is the write side of a byte stream, `None` for UDP. From now on
    /// only the worker writes to it: what else has to go out goes through [`Playing::inject`].
    pub fn start(&self, connection: Option<WriteSide>) {
        self.tell(Command::Start { stream: self.owner.stream, receiver: self.id, connection });
    }

    /// Stops sending until [`Playing::resume`].
    pub fn pause(&self) {
        self.tell(Command::Pause { stream: self.owner.stream, receiver: self.id });
    }

    /// Takes a place at the newest key frame again; call [`Playing::start`] with `None` afterwards.
    ///
    /// # Errors
    /// The stream is gone.
    pub async fn resume(&mut self) -> Result<&[StartPoint], ControlError> {
        let (stream, receiver) = (self.owner.stream, self.id);
        let resume = |reply| Command::Resume { stream, receiver, reply };
        self.starts = self.control.ask(&self.owner, resume).await?;
        Ok(&self.starts)
    }

    /// Sends bytes that are no media (an RTSP response) between two packets.
    pub fn inject(&self, bytes: Bytes) {
        self.tell(Command::Inject { stream: self.owner.stream, receiver: self.id, bytes });
    }

    /// Gives an RTCP packet that came in on the receiver's own connection.
    pub fn rtcp(&self, bytes: Bytes) {
        self.tell(Command::ReceiverRtcp { stream: self.owner.stream, receiver: self.id, bytes });
    }

    /// What tells the worker of the receiver, beside the place itself.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter { control: self.control.clone(), owner: self.owner, receiver: self.id }
    }

    /// Waits until the relay ends this receiver, and says why.
    pub async fn closed(&mut self) -> CloseReason {
        match &mut self.closed {
            Ok(reason) => *reason,
            Err(closing) => {
                let reason = closing.await.unwrap_or(CloseReason::ShuttingDown);
                self.closed = Ok(reason);
                reason
            }
        }
    }

    fn tell(&self, command: Command) {
        self.control.tell(&self.owner, command);
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let reason = CloseReason::PeerGone;
        self.tell(Command::Leave { stream: self.owner.stream, receiver: self.id, reason });
        self.control.registry().discharge(self.id);
    }
}

/// Where the address of a configured receiver leads.
impl PushRoute {
    /// The address of a track.
    pub(crate) fn track(&self, track: u8) -> SocketAddr {
        let mut to = self.to;
        to.set_port(to.port().saturating_add(2 * u16::from(track)));
        to
    }
}

fn mask(tracks: impl Iterator<Item = u8>) -> TrackMask {
    tracks.fold(TrackMask::NONE, |mask, track| mask.with(TrackMask::only(track)))
}
