//! Publishing a stream: the handle that a publisher or a source that is pulled gives its packets
//! to.

use std::net::{IpAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use outflow_engine::Caller;
use outflow_engine::message::{
    CloseReason, Command, ControlError, Feed, Ingest, LastMedia, SocketRole, SourceId, SourceSocket,
    SourceSpec,
};
use outflow_media::Format;
use outflow_packet::{DropReason, Incoming};
use outflow_relay::Feedback;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep};

use crate::control::Control;
use crate::events::Happened;
use crate::grants::Wanted;
use crate::limits::{FEEDBACK_MAX, INGEST_QUEUE_PACKETS};
use crate::turn::Turn;
use crate::workers::Owner;

/// Which peer publishes, and what.
#[derive(Debug, Clone)]
pub struct PublishOptions {
    /// What the packets will be.
    pub format: Format,
    /// Its protocol and address, for people: "HTTP from 10.0.0.7:51234".
    pub peer: String,
    /// Publish to a stream whose configured source is this one (a pulled camera, the built-in
    /// clip), instead of one that takes pushes.
    pub configured: bool,
}

/// A source's turn at a stream; it ends when this is dropped.
#[derive(Debug)]
pub struct Publisher {
    control: Control,
    stream: String,
    /// Which peer it is, once that was told to publish.
    told: Option<String>,
    owner: Owner,
    source: SourceId,
    queue: mpsc::Sender<Ingest>,
    /// To the worker that takes from the queue.
    caller: Caller,
    feedback: Option<mpsc::Receiver<Feedback>>,
    media: LastMedia,
    /// Why the turn is over, once it is.
    ended: Arc<OnceLock<CloseReason>>,
    /// Until when media is waited for, as it was when last looked at; none if it may be silent for ever.
    patience: Option<Pin<Box<Sleep>>>,
    /// Packets that found the queue full and are not counted yet.
    full: AtomicU64,
}

/// What receivers say of a stream, as it comes ([`Publisher::take_feedback`]).
#[derive(Debug, Default)]
pub struct Heard(Option<mpsc::Receiver<Feedback>>);

impl Heard {
    /// Waits until they want a key frame, and says of which track; for ever when the turn is over. What else they say
    /// meanwhile is passed over. Nothing is lost if this is cancelled.
    pub async fn key_frame(&mut self) -> u8 {
        while let Some(feedback) = &mut self.0
            && let Some(said) = feedback.recv().await
        {
            if let Feedback::KeyFrame { track, .. } = said {
                return track;
            }
        }
        std::future::pending().await
    }
}

/// A peer's word that it will publish a stream. It holds nothing, and counts for so long only.
#[derive(Debug)]
pub struct Announced {
    control: Control,
    patience: Pin<Box<Sleep>>,
}

/// A publisher that sends by UDP to sockets of the relay.
#[derive(Debug)]
pub struct UdpPorts {
    sockets: Vec<SourceSocket>,
    /// Port for RTP and port for RTCP, per track.
    pub ports: Vec<(u16, u16)>,
}

/// What became of a packet that was given to [`Publisher::try_send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// It is on its way.
    Taken,
    /// The worker is too busy: the packet is dropped, and counted.
    Full,
    /// The stream was removed, or its source taken away: stop publishing.
    Closed,
}

impl UdpPorts {
    /// Binds a port pair for each of `tracks` tracks; only packets from `from` will count.
    ///
    /// # Errors
    /// No free pair in the configured range.
    pub fn bind(control: &Control, tracks: usize, from: IpAddr) -> Result<Self, ControlError> {
        let mut bound = UdpPorts { sockets: Vec::new(), ports: Vec::new() };
        for track in 0..tracks {
            let any = if from.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
            let pair = outflow_engine::bind_pair(any, &control.config().listen.rtp_ports)?;
            bound.ports.push(pair.ports);
            let track = u8::try_from(track).unwrap_or(u8::MAX);
            bound.add(pair.rtp, track, SocketRole::Rtp, from);
            bound.add(pair.rtcp, track, SocketRole::Rtcp, from);
        }
        Ok(bound)
    }

    fn add(&mut self, socket: UdpSocket, track: u8, role: SocketRole, from: IpAddr) {
        self.sockets.push(SourceSocket::new(socket, track, role, Some(from)));
    }
}

impl Control {
    /// Begins to publish a stream through a queue. What a peer publishes is wanted by its grant.
    ///
    /// # Errors
    /// Unknown stream, one that takes no publisher, or one that has one already.
    pub async fn publish(
        &self,
        wanted: impl Into<Wanted<'_>>,
        options: PublishOptions,
    ) -> Result<Publisher, ControlError> {
        let (queue, feed) = mpsc::channel(INGEST_QUEUE_PACKETS);
        Publisher::open(self, wanted.into(), options, (Feed::Queue(feed), queue), None).await
    }

    /// Begins to publish a stream through UDP sockets, bound before by [`UdpPorts::bind`]. The
    /// queue of the returned [`Publisher`] only shows when the turn is over.
    ///
    /// # Errors
    /// As of [`Control::publish`].
    pub async fn publish_udp(
        &self,
        wanted: impl Into<Wanted<'_>>,
        options: PublishOptions,
        ports: UdpPorts,
    ) -> Result<Publisher, ControlError> {
        self.publish_sockets(wanted, options, ports.sockets).await
    }

    /// Begins to publish a stream through sockets that the worker reads.
    pub(crate) async fn publish_sockets(
        &self,
        wanted: impl Into<Wanted<'_>>,
        options: PublishOptions,
        sockets: Vec<SourceSocket>,
    ) -> Result<Publisher, ControlError> {
        let (queue, feed) = mpsc::channel(1);
        let feed = Feed::Sockets(sockets, feed);
        Publisher::open(self, wanted.into(), options, (feed, queue), None).await
    }

    /// Whether a publisher could publish this stream now. What comes back says how long it may take to.
    ///
    /// # Errors
    /// Unknown stream, one that takes no publisher, or one that has one already.
    pub fn takes_publisher(&self, stream: &str) -> Result<Announced, ControlError> {
        let entry = self.entry(stream)?;
        if !entry.is_pushed {
            return Err(ControlError::NotPushed(stream.to_owned()));
        }
        if !entry.is_free(self.now()) {
            return Err(ControlError::Busy(stream.to_owned()));
        }
        self.health().overload().publish(entry.receivers)?;
        Ok(Announced::new(self, entry.turns.publish_timeout))
    }
}

impl Publisher {
    /// Begins to publish a rendition, of which media has come when it has of any other that a peer publishes.
    pub(crate) async fn beside(
        control: &Control,
        wanted: Wanted<'_>,
        options: PublishOptions,
        first: Option<&Publisher>,
    ) -> Result<Self, ControlError> {
        let (queue, feed) = mpsc::channel(INGEST_QUEUE_PACKETS);
        let media = first.map(|first| first.media.clone());
        Publisher::open(control, wanted, options, (Feed::Queue(feed), queue), media).await
    }

    async fn open(
        control: &Control,
        wanted: Wanted<'_>,
        options: PublishOptions,
        (feed, queue): (Feed, mpsc::Sender<Ingest>),
        media: Option<LastMedia>,
    ) -> Result<Self, ControlError> {
        let stream = wanted.stream;
        let options = match wanted.token() {
            Some(token) => PublishOptions { peer: format!("{}, by token {token}", options.peer), ..options },
            None => options,
        };
        let entry = control.entry(stream)?;
        if !entry.is_pushed && !options.configured {
            return Err(ControlError::NotPushed(stream.to_owned()));
        }
        if !options.configured {
            control.health().overload().publish(entry.receivers)?;
        }
        let source = control.new_id();
        let (told, feedback) = mpsc::channel(FEEDBACK_MAX);
        let turn = Turn::new(source, &options.peer, control.now()).of(wanted.grant).heard_by(media);
        let peer = options.peer.clone();
        let (media, ended) = (turn.media(), turn.ended());
        let (reply, answer) = oneshot::channel();
        let format = Some(options.format);
        let spec = SourceSpec { format, peer: options.peer, feed, feedback: told, media: media.clone() };
        let open = |owner: Owner| {
            let begin = Command::OpenSource { stream: owner.stream, source, spec, reply };
            control.workers().tell(&owner, begin);
        };
        let owner = control.registry().claim(stream, turn, control.now(), open)?;
        // Made before waiting, so that the claim is given back however this ends.
        let mut publisher = Publisher {
            control: control.clone(),
            stream: stream.to_owned(),
            told: None,
            owner,
            source,
            queue,
            caller: control.workers().get(owner.worker).caller(owner.stream),
            feedback: Some(feedback),
            media,
            ended,
            // What is configured is tried again by its own front.
            patience: (!options.configured).then(|| Box::pin(sleep(entry.turns.publish_timeout))),
            full: AtomicU64::new(0),
        };
        wanted.check(control)?;
        answer.await.map_err(|_| ControlError::ShuttingDown)??;
        publisher.told = Some(peer.clone());
        control.events().tell(Happened::Published { stream: stream.to_owned(), peer });
        Ok(publisher)
    }

    /// One that had its turn in the process before. Its packets come to these sockets; to none if they are given.
    pub(crate) fn go_on(
        control: &Control,
        stream: &str,
        turn: &Turn,
        sockets: Vec<SourceSocket>,
    ) -> Option<Self> {
        let entry = control.registry().get(stream)?;
        let (owner, source) = (entry.owner, turn.source);
        let (queue, feed) = mpsc::channel(if sockets.is_empty() { INGEST_QUEUE_PACKETS } else { 1 });
        let feed = if sockets.is_empty() { Feed::Queue(feed) } else { Feed::Sockets(sockets, feed) };
        let (told, feedback) = mpsc::channel(FEEDBACK_MAX);
        let spec =
            SourceSpec { format: None, peer: turn.peer.clone(), feed, feedback: told, media: turn.media() };
        // If it cannot be, the worker drops the queue, which ends the turn.
        let (reply, _) = oneshot::channel();
        let begin = Command::OpenSource { stream: owner.stream, source, spec, reply };
        control.workers().tell(&owner, begin);
        Some(Publisher {
            control: control.clone(),
            stream: stream.to_owned(),
            told: Some(turn.peer.clone()),
            owner,
            source,
            queue,
            caller: control.workers().get(owner.worker).caller(owner.stream),
            feedback: Some(feedback),
            media: turn.media(),
            ended: turn.ended(),
            patience: entry.is_pushed.then(|| Box::pin(sleep(entry.turns.publish_timeout))),
            full: AtomicU64::new(0),
        })
    }

    /// The number of its turn.
    pub fn id(&self) -> SourceId {
        self.source
    }

    /// Gives a packet: RTP with its header, or whole transport stream packets. Never waits.
    pub fn try_send(&self, track: u8, bytes: impl Into<Incoming>) -> Push {
        self.give(Ingest::Media { track, bytes: bytes.into() })
    }

    /// Gives a packet, waiting while the worker is busy; for publishers whose connection pushes
    /// back.
    pub async fn send(&self, track: u8, bytes: impl Into<Incoming>) -> Push {
        let ingest = Ingest::Media { track, bytes: bytes.into() };
        match self.queue.send(ingest).await {
            Ok(()) => {
                self.caller.ring();
                Push::Taken
            }
            Err(_) => Push::Closed,
        }
    }

    /// Gives a compound RTCP packet of a track.
    pub fn rtcp(&self, track: u8, bytes: Bytes) -> Push {
        self.give(Ingest::Rtcp { track, bytes })
    }

    /// What receivers say of the stream; a front says it to its publisher in the words of its protocol. To be
    /// taken once. Of sockets that a worker reads ([`Control::publish_udp`]), the worker does.
    pub fn take_feedback(&mut self) -> Heard {
        Heard(self.feedback.take())
    }

    /// Counts packets that the publisher itself left out.
    pub fn dropped(&self, reason: DropReason, packets: u64) {
        if packets > 0 {
            // A counter is not worth waiting for.
            let _ = self.give(Ingest::Dropped { reason, packets });
        }
    }

    /// The packets come from another peer from now on, which goes on where the one before ended.
    pub fn set_peer(&self, peer: String) {
        let (stream, source) = (self.owner.stream, self.source);
        self.control.registry().rename(&self.stream, source, &peer);
        self.control.workers().tell(&self.owner, Command::NameSource { stream, source, peer });
    }

    /// Waits until the relay ends this turn, and says why: the stream was removed, another publisher has it, or no
    /// media has come for too long. Nothing is lost if this is cancelled.
    pub async fn closed(&mut self) -> CloseReason {
        loop {
            tokio::select! {
                () = self.queue.closed() => return self.why(),
                () = passed(&mut self.patience) => {}
            }
            let (control, now) = (&self.control, self.control.now());
            match (control.registry().look_for_media(&self.stream, self.source, now), &mut self.patience) {
                (Some(until), Some(patience)) => patience.as_mut().reset(Instant::now() + until.since(now)),
                _ if self.ended.get() == Some(&CloseReason::NoMedia) => return CloseReason::NoMedia,
                // It has been taken over, or has to go: the worker closes the queue.
                _ => self.patience = None,
            }
        }
    }

    fn why(&self) -> CloseReason {
        self.ended.get().copied().unwrap_or(CloseReason::StreamRemoved)
    }

    fn give(&self, ingest: Ingest) -> Push {
        let (reason, packets) = (DropReason::IngestFull, self.full.swap(0, Ordering::Relaxed));
        if packets > 0 && self.queue.try_send(Ingest::Dropped { reason, packets }).is_err() {
            self.full.fetch_add(packets, Ordering::Relaxed);
        }
        match self.queue.try_send(ingest) {
            Ok(()) => {
                self.caller.ring();
                Push::Taken
            }
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.full.fetch_add(1, Ordering::Relaxed);
                Push::Full
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Push::Closed,
        }
    }
}

impl Announced {
    fn new(control: &Control, patience: Duration) -> Self {
        Announced { control: control.clone(), patience: Box::pin(sleep(patience)) }
    }

    /// Waits until the peer has had its time, and says so. Nothing is lost if this is cancelled.
    pub async fn over(&mut self) -> CloseReason {
        self.patience.as_mut().await;
        self.control.registry().count_ended(CloseReason::NoMedia);
        CloseReason::NoMedia
    }
}

/// Waits until then; for ever if there is no such time.
async fn passed(patience: &mut Option<Pin<Box<Sleep>>>) {
    match patience {
        Some(patience) => patience.as_mut().await,
        None => std::future::pending().await,
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.control
            .workers()
            .tell(&self.owner, Command::CloseSource { stream: self.owner.stream, source: self.source });
        self.control.registry().release(&self.stream, self.source);
        if let Some(peer) = self.told.take() {
            self.control.events().tell(Happened::Gone { stream: self.stream.clone(), peer });
        }
    }
}
