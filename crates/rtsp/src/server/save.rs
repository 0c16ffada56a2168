//! A session that goes on in another process, on the same connection: what was agreed on with the peer, and what it has
//! sent that was not taken yet. CBOR in maps with numbered fields, as everything that is handed over.

use minicbor::{Decode, Encode};

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
