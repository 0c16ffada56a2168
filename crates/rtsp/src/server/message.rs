//! What a session and its driver tell each other.

use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use outflow_media::{Time, Track};

use super::address::Address;
use super::notice::Notice;
use super::reply::Reply;
use crate::auth::{Authorization, Known, Realm, Verdict};
use crate::{DecodeError, Lower, Pair};

/// What the driver tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<S> {
    /// The answer to the open question; an error is what the peer is told.
    Answer(Result<Answer<S>, Reply>),
    /// The session is over: nothing is played or published any more.
    End(Notice),
    /// Receivers want a key frame of this track of the peer's.
    KeyFrame {
        /// Index of the track as announced.
        track: u8,
    },
}

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output<S> {
    /// Send this on the connection: by what [`Output::Start`] gave the write side to, once that was said.
    Send(Bytes),
    /// Find this out, and answer it; the session waits.
    Ask(Question<S>),
    /// The answer to PLAY is out: packets may follow.
    Start {
        /// Packets go out within the connection: what writes them has its write side from now on.
        within: bool,
    },
    /// Send no packets until there is another PLAY.
    Pause,
    /// A packet came within the connection.
    Media {
        /// Index of the track.
        track: u8,
        /// Whether it is RTCP. Of players it always is.
        rtcp: bool,
        /// One packet.
        bytes: Bytes,
    },
    /// The session is over, or has not come to be: give back all that was taken for it.
    Release,
    /// A request was refused, which the log may tell.
    Refused {
        /// Its method.
        method: String,
        /// The status that it is answered with.
        status: u16,
        /// What the peer is told.
        why: String,
    },
    /// Nothing else follows. After the last message, if there is one, the connection stays until it has arrived.
    Close {
        /// Why.
        why: Closed,
        /// The last message: an answer, or a [`Notice`].
        last: Option<Bytes>,
    },
    /// Nothing until then, or until there is an input.
    Wait(Option<(Time, Wake)>),
}

/// Why a session wants to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A message has to be complete by then.
    Request,
    /// The peer has to have shown that it is there by then.
    Life,
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The peer has torn a session down whose media went within the connection.
    #[error("the peer has torn its session down")]
    TornDown,
    /// The driver wants no more of the peer, see [`Reply::and_leave`].
    #[error("the peer was sent away")]
    SentAway,
    /// The driver has ended the session ([`Input::End`]): all that was sent is out.
    #[error("the relay has ended the session")]
    Ended,
    /// A message was not complete in time.
    #[error("the peer did not send a whole request in time")]
    Slow,
    /// No sign of life for as long as the session lives.
    #[error("the session has timed out")]
    TimedOut,
    /// What came is no RTSP.
    #[error(transparent)]
    Broken(#[from] DecodeError),
}

/// What a session has to know. `S` is what the driver takes an address for: a stream, and what of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Question<S> {
    /// What an address is about, and whether the peer may do that.
    Enter(Entry),
    /// What stands in a session description.
    Describe(S),
    /// How many tracks there are.
    Tracks(S),
    /// The ports that all tracks are sent from by UDP; they are the session's until [`Output::Release`].
    Site(S),
    /// The group that a stream is sent to; the peer has a seat there until [`Output::Release`].
    Group(S),
    /// Whether these tracks can be published as this.
    Announce(S, Vec<Track>),
    /// The ports that take a track of a publisher; they are the session's until [`Output::Release`].
    Ports(u8),
    /// Begin to play; packets follow after [`Output::Start`].
    Play(S, Delivery),
    /// Play on after [`Output::Pause`], likewise.
    Resume,
    /// Publish what was announced, carried like this.
    Record(Lower),
    /// Set parameters of what is played: names in lower case, and values.
    Set(Vec<(String, String)>),
    /// Whether the peer has shown itself elsewhere than on the connection, since the last time.
    Life,
}

/// What a session is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<S> {
    /// To [`Question::Enter`]: it may.
    Entered {
        /// What the address is about.
        selection: S,
        /// What of the stream is wanted, to be put into the path of its tracks: `level=3,gray=1`.
        wanted: String,
    },
    /// To [`Question::Describe`]: the description.
    Described(String),
    /// To [`Question::Tracks`].
    Tracks {
        /// How many.
        count: usize,
        /// Whether they may go to a group.
        groups: bool,
    },
    /// To [`Question::Site`] and [`Question::Ports`].
    Ports(Pair<u16>),
    /// To [`Question::Group`].
    Group {
        /// Where the first track goes to; each of the others has two ports above the last one.
        to: SocketAddr,
        /// Where it comes from.
        source: IpAddr,
        /// Time to live of its packets.
        ttl: u8,
    },
    /// To [`Question::Play`] and [`Question::Resume`]: where tracks begin, as far as that is known.
    Playing(Vec<TrackStart>),
    /// To [`Question::Announce`], [`Question::Record`] and [`Question::Set`]: it is done.
    Done,
    /// To [`Question::Life`].
    Life(bool),
}

/// How a player gets its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Within the connection: tracks and their channels.
    Interleaved(Vec<(u8, Pair<u8>)>),
    /// By UDP: tracks and the peer's ports.
    Datagrams(Vec<(u8, Pair<u16>)>),
    /// As a member of a group.
    Group,
}

/// Where a track begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackStart {
    /// The track.
    pub track: u8,
    /// RTP sequence number of its first packet.
    pub sequence: u16,
    /// RTP timestamp of that.
    pub timestamp: u32,
}

/// What a peer wants to do with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Play it.
    Play,
    /// Publish it.
    Publish,
}

/// A peer that wants to do something with a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it wants to do.
    pub right: Right,
    /// With which stream.
    pub address: Address,
    /// The password that it has shown, or the proof of one.
    pub shown: Option<Shown>,
}

/// What a peer shows to be let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub(super) realm: Realm,
    pub(super) method: String,
    /// `None` if it is malformed, or about another stream.
    pub(super) answer: Option<Authorization>,
}

impl Shown {
    /// Whether this shows knowledge of one of `passwords`.
    pub fn judge<'a>(&self, passwords: impl IntoIterator<Item = impl Into<Known<'a>>>) -> Verdict {
        match &self.answer {
            Some(answer) => answer.judge(&self.realm, &self.method, passwords),
            None => Verdict::Wrong,
        }
    }
}
