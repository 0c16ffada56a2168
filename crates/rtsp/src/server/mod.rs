//! A server's side of a connection, and the session that it holds, of which there is at most one (RFC 2326,
//! appendix A).
//!
//! The driver has the sockets and the streams. What it reads goes to the end of [`Session::buffer`]; then it does
//! what [`Session::poll`] says until that is [`Output::Wait`]. Each [`Output::Ask`] is answered by
//! [`Session::handle`]; requests behind it wait undecoded. At the end of the connection the session is dropped: it
//! has nothing left to say.

mod address;
mod flow;
mod message;
mod notice;
mod offer;
mod play;
mod player;
mod publication;
mod publish;
mod reply;
mod save;
mod step;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use outflow_media::Time;
use rtsp_types::StatusCode;
use url::Url;

pub use address::Address;
pub use message::{Answer, Closed, Delivery, Entry, Input, Output, Question, Right, Shown, TrackStart, Wake};
pub use notice::Notice;
pub use reply::Reply;
pub use save::{SavedMedia, SavedPlayer, SavedPublication, SavedSession, SavedStage, Unfit};

use crate::auth::Realm;
use crate::limits::{GROUP_SESSION_TIMEOUT, REQUEST_WITHIN, SESSION_TIMEOUT};
use crate::{DecodeError, Decoder, Item, Request};
use player::Player;
use publication::Publication;
use step::Step;

/// What passwords are asked for in the name of: it goes into hashes of them.
pub const REALM: &str = "Outflow";

/// What a session is told at first.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name, which no peer can guess.
    pub id: String,
    /// What passwords are to be shown with, new for every connection.
    pub nonce: String,
    /// The source that asks publishers for key frames.
    pub ssrc: u32,
    /// Whether no third party can listen: else no password is asked for in plain text.
    pub is_encrypted: bool,
    /// The peer's address.
    pub peer: IpAddr,
    /// The address that it has connected to.
    pub local: IpAddr,
}

/// A connection's state. `S` is what the driver takes an address for: a stream, and what of it.
#[derive(Debug)]
pub struct Session<S> {
    options: Options,
    realm: Realm,
    role: Role<S>,
    decoder: Decoder,
    buffer: BytesMut,
    open: Option<Open<S>>,
    /// When the peer last showed that it is there.
    heard_at: Time,
    /// When a message began that is not complete yet; at first, when the connection did.
    begun_at: Option<Time>,
    closed: bool,
    out: VecDeque<Output<S>>,
}

/// What the session is for.
#[derive(Debug)]
enum Role<S> {
    None,
    Player(Box<Player<S>>),
    Publisher(Box<Publication>),
}

/// What waits for an answer.
#[derive(Debug)]
enum Open<S> {
    Request(Box<Request>, Step<S>),
    Life,
}

impl<S: Clone + PartialEq> Session<S> {
    /// A connection that begins now.
    pub fn new(now: Time, options: Options) -> Self {
        Session {
            // Basic is offered only where no third party can listen.
            realm: Realm::new(REALM, options.nonce.clone(), options.is_encrypted),
            options,
            role: Role::None,
            decoder: Decoder::new(),
            buffer: BytesMut::new(),
            open: None,
            heard_at: now,
            begun_at: Some(now),
            closed: false,
            out: VecDeque::new(),
        }
    }

    /// The session as a value, in between of two messages; nothing where a question is open, or something is to be sent,
    /// or it is at its end. The driver says what it plays in words of its own.
    pub fn save(&self, words: impl FnOnce(&S) -> String) -> Option<SavedSession> {
        if self.closed || self.open.is_some() || !self.out.is_empty() {
            return None;
        }
        let (player, publication) = match &self.role {
            Role::None => (None, None),
            Role::Player(player) => (Some(player.save(words)), None),
            Role::Publisher(publication) => (None, Some(publication.save())),
        };
        Some(SavedSession {
            player,
            publication,
            buffer: self.buffer.to_vec(),
            heard_at_ns: self.heard_at.as_nanos(),
            begun_at_ns: self.begun_at.map(Time::as_nanos),
            id: self.options.id.clone(),
            nonce: self.options.nonce.clone(),
            ssrc: self.options.ssrc,
        })
    }

    /// Goes on from what another process has saved, on the same connection: name, nonce and source are those that it
    /// had. The driver finds what it plays by its words.
    ///
    /// # Errors
    /// What cannot be taken up.
    pub fn restore(
        saved: SavedSession,
        options: Options,
        find: impl FnOnce(&str) -> Option<S>,
    ) -> Result<Self, Unfit> {
        let SavedSession { player, publication, buffer, heard_at_ns, begun_at_ns, id, nonce, ssrc } = saved;
        let heard_at = Time::from_nanos(heard_at_ns);
        let mut session = Session::new(heard_at, Options { id, nonce, ssrc, ..options });
        session.begun_at = begun_at_ns.map(Time::from_nanos);
        session.buffer = BytesMut::from(&buffer[..]);
        session.role = match (player, publication) {
            (None, None) => Role::None,
            (Some(player), None) => Role::Player(Box::new(Player::restore(player, find)?)),
            (None, Some(publication)) => Role::Publisher(Box::new(Publication::restore(publication)?)),
            (Some(_), Some(_)) => return Err(Unfit::new("it plays and publishes")),
        };
        Ok(session)
    }

    /// What was received goes to its end.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes an input.
    pub fn handle(&mut self, now: Time, input: Input<S>) {
        match (input, self.open.take()) {
            (Input::Answer(answer), Some(Open::Request(request, step))) => {
                let next = answer.and_then(|answer| self.go_on(&request, step, answer));
                self.conclude(request, next);
            }
            (Input::Answer(Ok(Answer::Life(true))), Some(Open::Life)) => self.heard_at = now,
            (Input::Answer(_), Some(Open::Life)) => self.close(Closed::TimedOut, None),
            (Input::Answer(_), None) => {}
            (Input::End(notice), _) => self.end(notice),
            (Input::KeyFrame { track }, open) => {
                self.open = open;
                let ssrc = self.options.ssrc;
                if let (false, Role::Publisher(publication)) = (self.closed, &mut self.role) {
                    self.out.extend(publication.key_frame_request(ssrc, track).map(Output::Send));
                }
            }
        }
    }

    /// What to do next, until it answers [`Output::Wait`]. What was received changes that, inputs do, and the time
    /// that it names.
    pub fn poll(&mut self, now: Time) -> Output<S> {
        loop {
            if let Some(output) = self.out.pop_front() {
                return output;
            }
            if self.closed || self.open.is_some() {
                return Output::Wait(None);
            }
            let output = match self.decoder.decode(&mut self.buffer) {
                Ok(Some(item)) => self.on_item(now, item),
                Ok(None) => self.wait(now),
                Err(error) => {
                    self.break_off(error);
                    None
                }
            };
            if let Some(output) = output {
                return output;
            }
        }
    }

    fn on_item(&mut self, now: Time, item: Item) -> Option<Output<S>> {
        // Media of no session is no sign of a client.
        let is_stray = matches!((&item, &self.role), (Item::Interleaved { .. }, Role::None));
        if !is_stray {
            (self.begun_at, self.heard_at) = (None, now);
        }
        match item {
            Item::Request(request) => {
                let next = self.begin(&request);
                self.conclude(Box::new(request), next);
                None
            }
            Item::Interleaved { channel, bytes } => self.on_media(channel, bytes),
            // Nothing is asked of peers, so there is nothing to answer.
            Item::Response(_) => None,
        }
    }

    /// Packets on channels that were not agreed on, or are left over from a session that is over, are ignored.
    fn on_media(&mut self, channel: u8, bytes: Bytes) -> Option<Output<S>> {
        let (track, rtcp) = match &mut self.role {
            Role::Player(player) => (player.track_of_reports(channel)?, true),
            Role::Publisher(publication) => publication.on_media(channel, &bytes)?,
            Role::None => return None,
        };
        Some(Output::Media { track, rtcp, bytes })
    }

    /// How long to wait; nothing if there is something to do.
    fn wait(&mut self, now: Time) -> Option<Output<S>> {
        if self.begun_at.is_none() && !self.buffer.is_empty() {
            self.begun_at = Some(now);
        }
        let (at, wake) = match self.begun_at {
            Some(begun_at) => (begun_at + REQUEST_WITHIN, Wake::Request),
            None => (self.heard_at + self.timeout(), Wake::Life),
        };
        if now < at {
            // Thousands of players wait.
            self.out.shrink_to_fit();
            return Some(Output::Wait(Some((at, wake))));
        }
        match (wake, &self.role) {
            (Wake::Request, _) => self.close(Closed::Slow, None),
            // As long as the connection takes packets, which the driver sees to.
            (Wake::Life, Role::Player(player)) if player.is_served_within() => self.heard_at = now,
            (Wake::Life, _) => {
                self.open = Some(Open::Life);
                self.out.push_back(Output::Ask(Question::Life));
            }
        }
        None
    }

    /// How long the session lives without a sign of life. A member of a group shows it on the connection alone, and
    /// keeps the stream coming for no receiver if it has gone without a word.
    fn timeout(&self) -> Duration {
        match &self.role {
            Role::Player(player) if player.is_of_group() => GROUP_SESSION_TIMEOUT,
            _ => SESSION_TIMEOUT,
        }
    }

    /// Ends a session, which the peer is told where it can be: within the connection, a packet may be out in part.
    fn end(&mut self, notice: Notice) {
        if self.closed {
            return;
        }
        let url = match &self.role {
            Role::None => None,
            Role::Player(player) if player.is_served_within() => None,
            Role::Player(player) => Some(Url::parse(player.base()).ok()),
            Role::Publisher(publication) => Some(Some(publication.announced().clone())),
        };
        let last = url.map(|url| notice.encode(url, &self.options.id));
        self.close(Closed::Ended, last);
    }

    fn break_off(&mut self, error: DecodeError) {
        let status = match error {
            DecodeError::BodyTooLarge(_) => StatusCode::RequestMessageBodyTooLarge,
            _ => StatusCode::BadRequest,
        };
        let speaks = !matches!(error, DecodeError::NotRtsp(_));
        let last = speaks.then(|| Reply::error(status, error.to_string()).encode(None, None));
        self.close(Closed::Broken(error), last);
    }

    fn close(&mut self, why: Closed, last: Option<Bytes>) {
        self.closed = true;
        self.out.push_back(Output::Close { why, last });
    }
}
