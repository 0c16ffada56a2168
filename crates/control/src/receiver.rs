//! Playing a stream: the handle that a session holds.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outflow_config::BitRate;
use outflow_engine::message::{
    CloseReason, Command, ControlError, Delivery, Ends, JoinSpec, LinkChoice, Peer, PeerPath, Receiver,
    ReceiverId, RtcpGate, TakenReceiver, WriteSide,
};
use outflow_relay::schedule::StartPoint;
use outflow_relay::{Priority, SinkSpec, Timing, Transport};
use outflow_udp::Inbox;
use tokio::sync::oneshot;

use crate::control::Control;
use crate::events::Happened;
use crate::grants::Wanted;
use crate::upgrade::Upgrade;
use crate::workers::Owner;

/// A receiver's place at a stream; it leaves when this is dropped.
#[derive(Debug)]
pub struct Playing {
    control: Control,
    owner: Owner,
    id: ReceiverId,
    starts: Vec<StartPoint>,
    left_out: Vec<String>,
    /// What its RTCP has to pass.
    rtcp: RtcpGate,
    /// The stream, once it was told that it takes it.
    joined: Option<String>,
    /// How it ended is heard once, and known from then on.
    closed: Result<CloseReason, oneshot::Receiver<CloseReason>>,
}

impl Control {
    /// Takes a place at the newest key frame of a stream. Nothing is sent before
    /// [`Playing::start`], so that the answer can go out first. What a peer plays is wanted by its grant.
    ///
    /// # Errors
    /// Unknown stream, no source yet (RTP only), a limit is reached, or the stream cannot be
    /// delivered that way.
    pub async fn play(
        &self,
        wanted: impl Into<Wanted<'_>>,
        receiver: Receiver,
        delivery: Delivery,
    ) -> Result<Playing, ControlError> {
        let wanted = wanted.into();
        if let Some(playing) = self.shared::<Upgrade>().named(wanted.stream, &receiver) {
            return Ok(playing);
        }
        self.health().overload().join()?;
        let stream = wanted.stream;
        let receiver = Receiver { token: wanted.token().map(str::to_owned), ..receiver };
        self.others().reach_unknown(self.registry(), stream, receiver.selection.level).await?;
        let id = self.new_id();
        let link = match &receiver.link {
            LinkChoice::OfStream => self.stream_link(stream),
            LinkChoice::Direct => None,
            LinkChoice::Named(name) => Some(name.clone()),
        };
        let place =
            link.as_deref().map(|name| self.links().get(name).map(|link| (link, name))).transpose()?;
        let site = match &delivery {
            Delivery::Datagrams(_, Ends::Negotiated(site, _)) => Some(*site),
            _ => None,
        };
        let admitted = self.admit(wanted, id, site, (&receiver.selection, place))?;
        let owner = admitted.owner;
        // A receiver that was told ports before the stream was put behind another link is not behind that.
        let link = place.map(|(link, _)| link).filter(|link| link.worker == owner.worker);
        let sink = SinkSpec { link: link.map(|link| link.id), ..sink(self, stream, &receiver, &delivery) };
        let (closed, closing) = oneshot::channel();
        // Made before asking, so that the receiver is struck out however this ends.
        let (starts, left_out, rtcp) = (Vec::new(), Vec::new(), RtcpGate::default());
        let counts = Arc::clone(rtcp.counts());
        let (control, closed_when) = (self.clone(), Err(closing));
        let mut playing =
            Playing { control, owner, id, starts, left_out, rtcp, joined: None, closed: closed_when };
        wanted.check(self)?;
        if !admitted.ready().await {
            return Err(ControlError::UnknownStream(stream.to_owned()));
        }
        let (kind, peer) = (receiver.kind, receiver.address.clone());
        let spec = Box::new(JoinSpec { receiver, delivery, sink, rtcp: counts, closed });
        let join = |reply| Command::Join { stream: owner.stream, receiver: id, spec, reply };
        let joined = self.workers().ask(&owner, join).await?;
        (playing.starts, playing.left_out) = (joined.starts, joined.left_out);
        playing.joined = Some(stream.to_owned());
        self.events().tell(Happened::Joined { stream: stream.to_owned(), receiver: id, kind, peer });
        Ok(playing)
    }

    /// When a stream's packets go, where a receiver does not say otherwise.
    pub fn stream_timing(&self, stream: &str) -> Timing {
        let config = self.config();
        config.streams.get(stream).map_or_else(Timing::default, |s| timing(s.latency_budget, s.pace))
    }
}

/// A receiver as the core knows it, where it is behind no link.
fn sink(control: &Control, stream: &str, receiver: &Receiver, delivery: &Delivery) -> SinkSpec {
    let transport = match delivery {
        Delivery::Datagrams(..) => Transport::Datagram,
        // Both push back when the receiver is slow.
        Delivery::Bytes(..) | Delivery::Peer(..) => Transport::Stream,
    };
    SinkSpec {
        tracks: delivery.tracks(),
        priority: receiver.class.unwrap_or_else(|| priority_of(control, stream)),
        timing: receiver.timing.unwrap_or_else(|| control.stream_timing(stream)),
        marks: is_routed(delivery),
        claim: receiver.claim,
        held: true,
        ..SinkSpec::new(delivery.encapsulation(), transport)
    }
}

/// Whether routers may be between that leave out what no receiver behind them wants.
fn is_routed(delivery: &Delivery) -> bool {
    matches!(delivery, Delivery::Datagrams(_, Ends::Configured(to)) if to.to.ip().is_multicast())
}

fn priority_of(control: &Control, stream: &str) -> Priority {
    let config = control.config();
    config.streams.get(stream).map_or(Priority::Normal, |stream| priority(stream.priority))
}

/// The class that the configuration names.
pub(crate) fn priority(priority: outflow_config::Priority) -> Priority {
    match priority {
        outflow_config::Priority::High => Priority::High,
        outflow_config::Priority::Normal => Priority::Normal,
        outflow_config::Priority::Low => Priority::Low,
    }
}

/// The timing that a configuration says.
pub(crate) fn timing(latency_budget: Duration, pace: Option<BitRate>) -> Timing {
    Timing { latency_budget, pace_bps: pace.map(|rate| rate.0) }
}

impl Playing {
    /// A receiver of the process before. Answers it, and what its worker has of it.
    pub(crate) fn go_on(
        control: &Control,
        owner: Owner,
        id: ReceiverId,
        stream: &str,
    ) -> (Self, TakenReceiver) {
        let (closed, closing) = oneshot::channel();
        let (starts, left_out, rtcp) = (Vec::new(), Vec::new(), RtcpGate::default());
        let taken = TakenReceiver { kind: "", rtcp: Arc::clone(rtcp.counts()), closed };
        let (control, joined, closed) = (control.clone(), Some(stream.to_owned()), Err(closing));
        (Playing { control, owner, id, starts, left_out, rtcp, joined, closed }, taken)
    }

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

    /// Begins to send by a state machine ([`Delivery::Peer`]), which the worker drives from now on.
    pub fn start_peer(&self, peer: Box<dyn Peer>, path: PeerPath) {
        self.tell(Command::StartPeer { stream: self.owner.stream, receiver: self.id, peer, path });
    }

    /// Where datagrams for that are to be put, with the [number](Self::id) of the receiver.
    pub fn inbox(&self) -> Inbox {
        self.control.workers().get(self.owner.worker).inbox()
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
        self.starts = self.control.workers().ask(&self.owner, resume).await?;
        Ok(&self.starts)
    }

    /// Sends bytes that are no media (a response) between two packets.
    pub fn inject(&self, bytes: Bytes) {
        self.tell(Command::Inject { stream: self.owner.stream, receiver: self.id, bytes });
    }

    /// Gives an RTCP packet that came in on the receiver's own connection. One that is too long, or one of too
    /// many, goes no further, and is counted (`rtcp_drops` of the receiver).
    pub fn rtcp(&mut self, bytes: &[u8]) {
        if let Some(rtcp) = self.rtcp.take(self.control.now(), bytes) {
            self.tell(Command::ReceiverRtcp { stream: self.owner.stream, receiver: self.id, rtcp });
        }
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
        self.control.workers().tell(&self.owner, command);
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let reason = CloseReason::PeerGone;
        self.tell(Command::Leave { stream: self.owner.stream, receiver: self.id, reason });
        self.control.registry().discharge(self.id);
        if let Some(stream) = self.joined.take() {
            let why = match &mut self.closed {
                Ok(why) => *why,
                Err(closing) => closing.try_recv().unwrap_or(reason),
            };
            let why = why.to_string();
            self.control.events().tell(Happened::Left { stream, receiver: self.id, why });
        }
    }
}
