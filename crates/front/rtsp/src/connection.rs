//! One RTSP connection: it does what its session says, and tells it what the relay says.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use outflow_control::{Control, Member, Part, Upgrade};
use outflow_door::Permit;
use outflow_engine::message::ControlError;
use outflow_media::Time;
use outflow_rtsp::server::{Answer, Closed, Input, Options, Output, Question, Session, Wake};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::limits::{ANSWER_WITHIN, LINGER, READ_BYTES, READ_BYTES_PUBLISHER};
use super::pace::Pace;
use super::play::{self, Player};
use super::publish::{News, Publication};
use super::refusal::Refusal;
use super::save::{PARTS, SavedConnection, address, unfit};
use super::target::{self, Granted, Wanted};
use super::wire::Wire;

/// A connection, and what its session has of the relay.
pub(super) struct Connection {
    wire: Wire,
    peer: SocketAddr,
    local: SocketAddr,
    control: Control,
    permit: Permit,
    player: Option<Box<Player>>,
    publication: Option<Box<Publication>>,
    session: Session<Wanted>,
    granted: Granted,
    pace: Pace,
    /// Asked for what another process needs to go on with it; none where the keys are here.
    member: Option<Member>,
    /// When the session's time began.
    began: Instant,
}

/// What a session's output comes to.
enum Then {
    GoOn,
    /// Until then, or until something happens.
    Wait(Option<(Time, Wake)>),
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
        let options = options(wire.is_encrypted(), peer, local);
        let member = (!wire.is_encrypted()).then(|| control.shared::<Upgrade>().join(PARTS));
        Connection {
            wire,
            peer,
            local,
            control,
            permit,
            player: None,
            publication: None,
            session: Session::new(Time::ZERO, options),
            granted: Granted::default(),
            pace: Pace::new(),
            member,
            began: Instant::now(),
        }
    }

    /// What another process needs to go on with it; nothing if it cannot.
    pub(super) fn save(&self) -> Option<Part> {
        let mut wanted = None;
        let session = self.session.save(|it| {
            wanted = Some(it.grant.save());
            it.words()
        })?;
        let player = self.player.as_ref().map(|player| player.save());
        let publication = match &self.publication {
            Some(publication) => Some(publication.save()?),
            None => None,
        };
        let turn = publication.as_ref().and_then(|publication| publication.source);
        let saved = SavedConnection {
            peer: self.peer.to_string(),
            local: self.local.to_string(),
            ran_ns: self.now().as_nanos(),
            session,
            wanted,
            granted: self.granted.save(),
            player,
            publication,
            is_given_away: self.wire.is_given_away(),
        };
        Some(Part { value: saved.encode(), descriptors: vec![self.wire.copied()?], turn })
    }

    /// Goes on with one of another process. Where a worker has written to it, one does again.
    ///
    /// # Errors
    /// It cannot: its peer has to connect again.
    pub(super) fn restore(control: &Control, part: Part) -> io::Result<Self> {
        let SavedConnection {
            peer,
            local,
            ran_ns,
            session,
            wanted,
            granted,
            player,
            publication,
            is_given_away,
        } = SavedConnection::decode(&part.value)?;
        let (peer, local) = (address(&peer)?, address(&local)?);
        let descriptor = part.descriptors.into_iter().next();
        let wire = Wire::taken(descriptor.ok_or_else(|| unfit("its descriptor is missing"))?)?;
        let permit = control.door().admit(peer.ip()).map_err(|refused| unfit(&refused.to_string()))?;
        let find = |words: &str| Wanted::restore(control, wanted?, words);
        let session = Session::restore(session, options(false, peer, local), find);
        let player = player.map(|player| Player::restore(control, player)).transpose()?;
        let publication = publication.map(|it| Publication::restore(control, it)).transpose()?;
        let began = Instant::now().checked_sub(Duration::from_nanos(ran_ns));
        let mut connection = Connection {
            session: session.map_err(io::Error::other)?,
            granted: Granted::restore(control, granted),
            player: player.map(Box::new),
            began: began.ok_or_else(|| unfit("it is older than this machine"))?,
            ..Connection::new(wire, peer, local, control.clone(), permit)
        };
        publication.into_iter().for_each(|publication| connection.publish(publication));
        if is_given_away {
            let player = connection.player.as_ref().filter(|player| player.is_placed());
            let player = player.ok_or_else(|| unfit("nothing writes to it"))?;
            player.start(Some(connection.wire.give_away()?));
        }
        Ok(connection)
    }

    /// Where its peer is.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Serves the peer until it leaves, or has to, or until another process does.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            let now = self.now();
            let output = self.session.poll(now);
            // Answering takes far more room than waiting does, and thousands of players wait.
            let wait = match Box::pin(self.act(output)).await? {
                Then::GoOn => continue,
                Then::Wait(wait) => wait,
                Then::Leave => return Ok(()),
            };
            let rests_until = self.pace.rests_until(now);
            let deadline = reached(self.began, wait.map(|(at, _)| at));
            let rested = reached(self.began, rests_until);
            let publishes = self.publication.is_some();
            let read_bytes = if publishes { READ_BYTES_PUBLISHER } else { READ_BYTES };
            tokio::select! {
                read = self.wire.read(self.session.buffer(), read_bytes), if rests_until.is_none() => {
                    match read? {
                        0 => return Ok(()),
                        bytes if !publishes => self.pace.read(self.now(), bytes),
                        _ => {}
                    }
                }
                news = news(&self.control, &mut self.player, &mut self.publication) => match news {
                    News::KeyFrame(track) => self.session.handle(now, Input::KeyFrame { track }),
                    News::Ended { why, notice } => {
                        tracing::info!(peer = %self.peer, why, "an RTSP session was ended");
                        self.session.handle(now, Input::End(notice));
                    }
                },
                () = deadline => {}
                () = rested => {}
                () = asked(&mut self.member) => if self.hand_over().await {
                    return Ok(());
                }
            }
        }
    }

    /// Gives what another process needs to go on with it. Answers whether one does: nothing more is said here then.
    async fn hand_over(&mut self) -> bool {
        let part = self.save();
        match &mut self.member {
            Some(member) => member.give(part).await,
            None => false,
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed()
    }

    async fn act(&mut self, output: Output<Wanted>) -> io::Result<Then> {
        match output {
            Output::Send(bytes) => {
                self.pace.answered(self.now());
                self.send(bytes).await?;
            }
            Output::Ask(question) => {
                let answer = self.answer(question).await.map_err(|Refusal(reply)| reply);
                let now = self.now();
                self.session.handle(now, Input::Answer(answer));
            }
            Output::Start { within } => {
                let writer = within.then(|| self.wire.give_away()).transpose()?;
                if let Some(player) = &self.player {
                    player.start(writer);
                }
            }
            Output::Pause => self.player.iter_mut().for_each(|player| player.pause()),
            Output::Media { track, rtcp, bytes } => return self.on_media(track, rtcp, bytes).await,
            Output::Release => (self.player, self.publication) = (None, None),
            Output::Refused { method, status, why } => {
                tracing::debug!(peer = %self.peer, method, status, why, "an RTSP request was refused");
            }
            Output::Close { why, last } => return self.close(why, last).await,
            Output::Wait(wait) => return Ok(Then::Wait(wait)),
        }
        Ok(Then::GoOn)
    }

    async fn answer(&mut self, question: Question<Wanted>) -> Result<Answer<Wanted>, Refusal> {
        match question {
            Question::Enter(entry) => {
                target::enter(&self.control, &mut self.granted, self.peer, &entry).await
            }
            Question::Describe(wanted) => {
                play::describe(&self.control, (self.peer.ip(), self.local.ip()), &wanted).await
            }
            Question::Tracks(wanted) => play::tracks(&self.control, &wanted).await,
            Question::Site(wanted) => {
                let from = self.local.ip().to_canonical();
                Player::of(&mut self.player, wanted).site(&self.control, from)
            }
            Question::Group(wanted) => {
                play::check_group(&wanted)?;
                Player::of(&mut self.player, wanted).group(&self.control, self.peer.ip())
            }
            Question::Announce(wanted, tracks) => {
                let publication = Publication::announce(&self.control, wanted, tracks)?;
                self.publish(publication);
                Ok(Answer::Done)
            }
            Question::Ports(track) => {
                publication(&mut self.publication)?.ports(&self.control, self.peer.ip(), track)
            }
            Question::Play(wanted, delivery) => {
                Player::of(&mut self.player, wanted).play(&self.control, self.peer, delivery).await
            }
            Question::Resume => player(&mut self.player)?.resume().await,
            Question::Record(lower) => {
                publication(&mut self.publication)?.record(&self.control, self.peer, lower).await
            }
            Question::Set(parameters) => player(&mut self.player)?.set_all(&self.control, &parameters).await,
            Question::Life => Ok(Answer::Life(self.shows_life())),
        }
    }

    /// A packet within the connection. Waits while the worker is busy, which slows a publisher down.
    async fn on_media(&mut self, track: u8, rtcp: bool, bytes: Bytes) -> io::Result<Then> {
        let goes_on = match (&mut self.player, &self.publication) {
            (Some(player), _) => {
                player.on_rtcp(&bytes);
                true
            }
            (None, Some(publication)) => publication.on_media(track, rtcp, bytes).await,
            (None, None) => true,
        };
        if goes_on {
            return Ok(Then::GoOn);
        }
        self.linger(false).await?;
        Ok(Then::Leave)
    }

    fn publish(&mut self, publication: Publication) {
        self.publication = Some(Box::new(publication));
        self.member.iter_mut().for_each(Member::brings_media);
    }

    fn shows_life(&mut self) -> bool {
        match (&mut self.player, &mut self.publication) {
            (Some(player), _) => player.shows_life(&self.control),
            (None, Some(publication)) => publication.shows_life(&self.control),
            (None, None) => false,
        }
    }

    async fn close(&mut self, why: Closed, last: Option<Bytes>) -> io::Result<Then> {
        match why {
            Closed::Broken(_) => self.permit.count_malformed(),
            Closed::Slow => self.permit.count_slow(),
            Closed::TimedOut => tracing::info!(peer = %self.peer, "an RTSP session has timed out"),
            Closed::TornDown | Closed::SentAway | Closed::Ended => {}
        }
        let is_ended = why == Closed::Ended;
        let lingers = is_ended || last.is_some();
        if let Some(last) = last {
            self.send(last).await?;
        }
        if lingers {
            (self.player, self.publication) = (None, None);
            self.linger(is_ended).await?;
        }
        match why {
            Closed::Broken(error) => Err(io::Error::other(error)),
            _ => Ok(Then::Leave),
        }
    }

    /// Answers go through the worker once it has the write side.
    async fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        if self.wire.is_given_away() {
            self.player.iter().for_each(|player| player.inject(&bytes));
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

    /// Waits a moment for the peer to leave first, so that what was sent last is not lost. `all_is_out`: the worker has
    /// nothing to send any more, either.
    async fn linger(&mut self, all_is_out: bool) -> io::Result<()> {
        // An upgrade waits for none that are over.
        self.member = None;
        let deadline = Instant::now() + LINGER;
        // Which it does once it knows that nothing else comes. If the worker has the last answer,
        // only the worker knows.
        if all_is_out || !self.wire.is_given_away() {
            self.wire.finish().await?;
        }
        let input = self.session.buffer();
        while let Ok(Ok(1..)) = timeout_at(deadline, self.wire.read(input, READ_BYTES)).await {
            input.clear();
        }
        Ok(())
    }
}

/// What a session is told at first.
fn options(is_encrypted: bool, peer: SocketAddr, local: SocketAddr) -> Options {
    let [a, b, c, d, e, ssrc] = std::array::from_fn(|_| outflow_engine::system::random_u32());
    Options {
        id: format!("{a:08x}{b:08x}"),
        nonce: format!("{c:08x}{d:08x}{e:08x}"),
        ssrc,
        is_encrypted,
        peer: peer.ip(),
        local: local.ip().to_canonical(),
    }
}

/// Waits until an upgrade asks for the connection; for ever if it cannot go on elsewhere.
async fn asked(member: &mut Option<Member>) {
    match member {
        Some(member) => member.asked().await,
        None => std::future::pending().await,
    }
}

/// Waits until this time of a session that began then; for ever without one.
async fn reached(began: Instant, at: Option<Time>) {
    match at {
        Some(at) => sleep_until(began + at.since(Time::ZERO)).await,
        None => std::future::pending().await,
    }
}

/// What plays, if something does.
fn player(player: &mut Option<Box<Player>>) -> Result<&mut Player, Refusal> {
    Ok(player.as_mut().ok_or(ControlError::StreamGone)?)
}

/// What publishes, if something does.
fn publication(publication: &mut Option<Box<Publication>>) -> Result<&mut Publication, Refusal> {
    Ok(publication.as_mut().ok_or(ControlError::StreamGone)?)
}

/// Waits for what the relay has to say of the session.
async fn news(
    control: &Control,
    player: &mut Option<Box<Player>>,
    publication: &mut Option<Box<Publication>>,
) -> News {
    match (player, publication) {
        (Some(player), _) => player.ended(control).await,
        (None, Some(publication)) => publication.news().await,
        (None, None) => std::future::pending().await,
    }
}
