//! One RTSP connection: requests in, answers out, and the session that it holds.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use outflow_control::Control;
use outflow_door::{Permit, Right};
use outflow_rtsp::header::Session as SessionHeader;
use outflow_rtsp::{DecodeError, Decoder, Item, Method, Request, StatusCode, Version, headers};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::access::Access;
use super::limits::{
    ANSWER_WITHIN, LINGER, READ_BYTES, READ_BYTES_PUBLISHER, REQUEST_WITHIN, SESSION_TIMEOUT,
};
use super::play::Player;
use super::publish::Publication;
use super::reply::Reply;
use super::target::Target;
use super::wire::Wire;

const PUBLIC: &str =
    "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER, ANNOUNCE, RECORD";

/// A connection and its session, of which there is at most one.
pub(super) struct Connection {
    pub(super) wire: Wire,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    pub(super) control: Control,
    permit: Permit,
    access: Access,
    pub(super) role: Role,
    session: String,
    decoder: Decoder,
    input: BytesMut,
    /// When the peer last showed that it is there.
    heard_at: Instant,
    /// When a message began that is not complete yet; at first, when the connection did.
    begun_at: Option<Instant>,
}

/// What the session is for.
pub(super) enum Role {
    None,
    Player(Box<Player>),
    Publisher(Box<Publication>),
}

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    /// Once the last answer has arrived.
    Leave,
}

impl Connection {
    pub(super) fn new(
        wire: Wire,
        peer: SocketAddr,
        local: SocketAddr,
        control: Control,
        permit: Permit,
    ) -> Self {
        let now = Instant::now();
        let [a, b] = std::array::from_fn(|_| outflow_engine::system::random_u32());
        Connection {
            access: Access::new(peer.ip(), wire.is_encrypted()),
            wire,
            peer,
            local,
            control,
            permit,
            role: Role::None,
            session: format!("{a:08x}{b:08x}"),
            decoder: Decoder::new(),
            input: BytesMut::new(),
            heard_at: now,
            begun_at: Some(now),
        }
    }

    /// Serves the peer until it leaves, or has to.
    pub(super) async fn run(mut self) -> io::Result<()> {
        loop {
            while let Some(item) = self.next_item().await? {
                // Answering takes far more room than waiting does, and thousands of players wait.
                if Box::pin(self.on_item(item)).await? == Then::Leave {
                    return self.linger().await;
                }
            }
            let deadline = match self.begun_at {
                Some(begun) => begun + REQUEST_WITHIN,
                None => self.heard_at + self.role.timeout(),
            };
            tokio::select! {
                read = self.wire.read(&mut self.input, self.role.read_bytes()) => {
                    if read? == 0 {
                        return Ok(());
                    }
                }
                news = self.role.news() => match news {
                    News::Say(bytes) => self.send(bytes).await?,
                    News::Ended(why) => {
                        tracing::info!(peer = %self.peer, why, "an RTSP session was ended");
                        return Ok(());
                    }
                },
                () = sleep_until(deadline) => {
                    if self.is_overdue() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether the deadline that has passed ends the connection.
    fn is_overdue(&mut self) -> bool {
        if self.begun_at.is_some() {
            self.permit.count_slow();
            return true;
        }
        if self.role.shows_life(&self.control) {
            self.heard_at = Instant::now();
            return false;
        }
        tracing::info!(peer = %self.peer, "an RTSP session has timed out");
        true
    }

    /// The next message that is complete.
    ///
    /// # Errors
    /// What came is none; the peer has been told.
    async fn next_item(&mut self) -> io::Result<Option<Item>> {
        match self.decoder.decode(&mut self.input) {
            Ok(Some(item)) => {
                // Media of no session is no sign of a client.
                let is_stray = matches!(item, Item::Interleaved { .. }) && matches!(self.role, Role::None);
                if !is_stray {
                    (self.begun_at, self.heard_at) = (None, Instant::now());
                }
                Ok(Some(item))
            }
            Ok(None) => {
                if self.begun_at.is_none() && !self.input.is_empty() {
                    self.begun_at = Some(Instant::now());
                }
                Ok(None)
            }
            Err(error) => {
                self.permit.count_malformed();
                let status = match error {
                    DecodeError::BodyTooLarge(_) => StatusCode::RequestMessageBodyTooLarge,
                    _ => StatusCode::BadRequest,
                };
                if !matches!(error, DecodeError::NotRtsp(_)) {
                    self.send(Reply::error(status, error.to_string()).encode(None, None)).await?;
                    self.linger().await?;
                }
                Err(io::Error::other(error))
            }
        }
    }

    async fn on_item(&mut self, item: Item) -> io::Result<Then> {
        match item {
            Item::Request(request) => self.on_request(&request).await,
            Item::Interleaved { channel, bytes } => self.role.on_interleaved(channel, bytes).await,
            // Nothing is asked of peers, so there is nothing to answer.
            Item::Response(_) => Ok(Then::GoOn),
        }
    }

    async fn on_request(&mut self, request: &Request) -> io::Result<Then> {
        let method: &str = request.method().into();
        let reply = match self.answer(request).await {
            Ok(reply) => reply,
            Err(reply) => {
                let status = u16::from(reply.status);
                let why = reply.why().unwrap_or_default();
                tracing::debug!(peer = %self.peer, method, status, why, "an RTSP request was refused");
                reply
            }
        };
        let ok = reply.is_ok();
        let in_session = ok && !matches!(self.role, Role::None);
        let session = || SessionHeader { id: self.session.clone(), timeout: self.role.timeout() }.to_string();
        let bytes = reply.encode(Some(request), in_session.then(session));
        self.send(bytes).await?;
        if ok {
            match request.method() {
                Method::Play => self.begin_to_play()?,
                Method::Teardown => return Ok(self.tear_down()),
                _ => {}
            }
        }
        Ok(if self.access.has_to_wait() { Then::Leave } else { Then::GoOn })
    }

    /// The answer, good or bad.
    async fn answer(&mut self, request: &Request) -> Result<Reply, Reply> {
        if request.version() != Version::V1_0 {
            let why = "RTSP 1.0 is spoken here";
            return Err(Reply::error(StatusCode::RTSPVersionNotSupported, why));
        }
        if let Some(required) = request.header(&headers::REQUIRE) {
            let reply = Reply::error(StatusCode::OptionNotSupported, "no extension is supported");
            return Err(reply.with(headers::UNSUPPORTED, required.as_str()));
        }
        self.check_session(request)?;
        match request.method() {
            Method::Options => Ok(Reply::ok().with(headers::PUBLIC, PUBLIC)),
            Method::GetParameter => Ok(Reply::ok()),
            Method::SetParameter => self.set_parameters(request).await,
            Method::Describe => self.describe(request).await,
            Method::Announce => self.announce(request).await,
            Method::Setup if matches!(self.role, Role::Publisher(_)) => self.setup_publisher(request),
            Method::Setup => self.setup_player(request).await,
            Method::Play => self.play().await,
            Method::Pause => self.pause(),
            Method::Record => self.record().await,
            Method::Teardown if matches!(self.role, Role::None) => Err(out_of_order("there is no session")),
            Method::Teardown => Ok(Reply::ok()),
            _ => {
                Err(Reply::error(StatusCode::NotImplemented, "unknown method").with(headers::PUBLIC, PUBLIC))
            }
        }
    }

    /// A request that names a session must name this one.
    fn check_session(&self, request: &Request) -> Result<(), Reply> {
        let Some(value) = request.header(&headers::SESSION) else { return Ok(()) };
        let named = SessionHeader::parse(value.as_str()).map(|session| session.id);
        if named.as_deref() == Some(&self.session) && !matches!(self.role, Role::None) {
            return Ok(());
        }
        let why = "sessions live on the connection that set them up";
        Err(Reply::error(StatusCode::SessionNotFound, why))
    }

    /// What the request is about, if the peer may do that.
    pub(super) fn target(&mut self, right: Right, request: &Request) -> Result<Target, Reply> {
        let Some(url) = request.request_uri() else {
            return Err(Reply::error(StatusCode::BadRequest, "this method needs the URL of a stream"));
        };
        let target = Target::of(url)?;
        self.access.check(self.control.door(), right, request, &target)?;
        Ok(target)
    }

    /// Answers go through the worker once it has the write side.
    async fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        if let Role::Player(player) = &self.role
            && player.inject(&bytes)
        {
            return Ok(());
        }
        match timeout(ANSWER_WITHIN, self.wire.write(&bytes)).await {
            Ok(written) => written,
            Err(_) => {
                self.permit.count_slow();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Ends the session. Where its media went within the connection, that is over, too: the worker
    /// may have left a packet half written.
    fn tear_down(&mut self) -> Then {
        let role = std::mem::replace(&mut self.role, Role::None);
        match role {
            Role::Player(player) if player.has_connection() => Then::Leave,
            _ => Then::GoOn,
        }
    }

    /// Waits a moment for the peer to leave first, so that what was sent last is not lost.
    async fn linger(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + LINGER;
        // Which it does once it knows that nothing else comes. If the worker has the last answer,
        // only the worker knows.
        if !self.wire.is_given_away() {
            self.wire.finish().await?;
        }
        while let Ok(Ok(1..)) = timeout_at(deadline, self.wire.read(&mut self.input, READ_BYTES)).await {
            self.input.clear();
        }
        Ok(())
    }
}

/// What the relay has to say of a session.
pub(super) enum News {
    /// It is over: why.
    Ended(String),
    /// The peer is to be told this.
    Say(Bytes),
}

impl Role {
    fn read_bytes(&self) -> usize {
        if matches!(self, Role::Publisher(_)) { READ_BYTES_PUBLISHER } else { READ_BYTES }
    }

    /// How long the session lives without a sign of life.
    fn timeout(&self) -> Duration {
        match self {
            Role::Player(player) => player.timeout(),
            _ => SESSION_TIMEOUT,
        }
    }

    /// Waits for what the relay has to say of the session.
    async fn news(&mut self) -> News {
        match self {
            Role::Player(player) => News::Ended(player.ended().await),
            Role::Publisher(publication) => publication.news().await,
            Role::None => std::future::pending().await,
        }
    }

    /// Whether the peer has shown itself elsewhere than on the connection, since the last time.
    fn shows_life(&mut self, control: &Control) -> bool {
        match self {
            Role::Player(player) => player.shows_life(control),
            Role::Publisher(publication) => publication.shows_life(control),
            Role::None => false,
        }
    }

    async fn on_interleaved(&mut self, channel: u8, bytes: Bytes) -> io::Result<Then> {
        let goes_on = match self {
            Role::Player(player) => {
                player.on_interleaved(channel, bytes);
                true
            }
            Role::Publisher(publication) => publication.on_interleaved(channel, bytes).await,
            // Left over from a session that is over.
            Role::None => true,
        };
        Ok(if goes_on { Then::GoOn } else { Then::Leave })
    }
}

/// The answer to a method that does not fit the session's state.
pub(super) fn out_of_order(why: &str) -> Reply {
    Reply::error(StatusCode::MethodNotValidInThisState, why)
}
