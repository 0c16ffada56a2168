//! A session that goes on in another process, on the same connection: what was agreed on with the peer, and what it has
//! sent that was not taken yet. CBOR in maps with numbered fields, as everything that is handed over.

use bytes::BytesMut;
use minicbor::{Decode, Encode};
use outflow_media::Time;

use super::{Options, Player, Publication, Role, Session};

/// A session. Times are nanoseconds since the zero of the driver that saved it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSession {
    /// What it plays.
    #[n(0)]
    pub player: Option<SavedPlayer>,
    /// What it publishes.
    #[n(1)]
    pub publication: Option<SavedPublication>,
    /// What was received, and is not a whole message yet.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub buffer: Vec<u8>,
    /// When the peer last showed that it is there.
    #[n(3)]
    pub heard_at_ns: u64,
    /// When a message began that is not whole yet.
    #[n(4)]
    pub begun_at_ns: Option<u64>,
    /// Its name.
    #[n(5)]
    pub id: String,
    /// What passwords are to be shown with.
    #[n(6)]
    pub nonce: String,
    /// The source that asks publishers for key frames.
    #[n(7)]
    pub ssrc: u32,
}

/// What a session plays.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPlayer {
    /// A stream, and what of it, in the driver's words.
    #[n(0)]
    pub selection: String,
    /// The URL that tracks are named below of.
    #[n(1)]
    pub base: String,
    /// The tracks that were set up, each with its `Transport`.
    #[n(2)]
    pub setups: Vec<(u8, String)>,
    /// How far it is.
    #[n(3)]
    pub stage: SavedStage,
}

/// How far a player is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum SavedStage {
    /// Its tracks are set up.
    #[n(0)]
    Setup,
    /// It plays.
    #[n(1)]
    Playing,
    /// It pauses.
    #[n(2)]
    Paused,
}

/// What a session publishes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedPublication {
    /// The URL that it was announced by.
    #[n(0)]
    pub announced: String,
    /// Its tracks.
    #[n(1)]
    pub media: Vec<SavedMedia>,
    /// It records.
    #[n(2)]
    pub is_recording: bool,
    /// Key frames that were asked for.
    #[n(3)]
    pub requests: u8,
}

/// A track of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedMedia {
    /// `a=control` of its description.
    #[n(0)]
    pub control: Option<String>,
    /// Its `Transport`, once it was set up.
    #[n(1)]
    pub setup: Option<String>,
    /// Of the last packet within the connection.
    #[n(2)]
    pub ssrc: Option<u32>,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an RTSP session cannot go on: {0}; its peer has to connect again")]
pub struct Unfit(&'static str);

impl Unfit {
    pub(super) const fn new(why: &'static str) -> Self {
        Unfit(why)
    }
}

impl<S: Clone + PartialEq> Session<S> {
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
            (Some(_), Some(_)) => return Err(Unfit("it plays and publishes")),
        };
        Ok(session)
    }
}
