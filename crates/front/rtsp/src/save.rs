//! A connection that goes on in another process, as a value beside its descriptor: CBOR in maps with numbered fields, as
//! everything that is handed over.

use std::io;
use std::net::SocketAddr;

use minicbor::{Decode, Encode};
use outflow_door::SavedGrant;
use outflow_engine::message::UdpSite;
use outflow_front_groups::SavedSeat;
use outflow_rtp::save::SavedTrack;
use outflow_rtsp::server::SavedSession;

/// What parts are called that these connections give.
pub(super) const PARTS: &str = "rtsp";

/// A connection. It holds secrets of its session, and is never shown.
#[derive(PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedConnection {
    #[n(0)]
    pub(super) peer: String,
    #[n(1)]
    pub(super) local: String,
    /// How long the session's time has run.
    #[n(2)]
    pub(super) ran_ns: u64,
    #[n(3)]
    pub(super) session: SavedSession,
    /// What lets the peer have what the session plays.
    #[n(4)]
    pub(super) wanted: Option<SavedGrant>,
    /// What it was let in to last: to play, and to publish.
    #[n(5)]
    pub(super) granted: (Option<SavedGrant>, Option<SavedGrant>),
    #[n(6)]
    pub(super) player: Option<SavedPlaying>,
    #[n(7)]
    pub(super) publication: Option<SavedPublishing>,
    /// A worker writes to it.
    #[n(8)]
    pub(super) is_given_away: bool,
}

/// What a player has of the relay.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPlaying {
    #[n(0)]
    pub(super) grant: SavedGrant,
    /// What of the stream.
    #[n(1)]
    pub(super) selection: String,
    /// The ports that it was told.
    #[n(2)]
    pub(super) site: Option<SavedSite>,
    /// Its number, once it has a place.
    #[n(3)]
    pub(super) receiver: Option<u64>,
    /// By which group it gets the stream, if it was told one.
    #[n(4)]
    pub(super) seat: Option<SavedSeat>,
}

/// A worker's ports.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedSite {
    #[n(0)]
    worker: u64,
    #[n(1)]
    from: String,
    #[n(2)]
    rtp: u16,
    #[n(3)]
    rtcp: u16,
}

/// What a publisher has of the relay.
#[derive(Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct SavedPublishing {
    #[n(0)]
    pub(super) grant: SavedGrant,
    #[n(1)]
    pub(super) tracks: Vec<SavedTrack>,
    /// Its turn, once it has one.
    #[n(2)]
    pub(super) source: Option<u64>,
    /// Packets of the stream as they were counted when last looked at.
    #[n(3)]
    pub(super) packets: u64,
}

impl SavedConnection {
    /// As it is handed over.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Nothing that is written to memory fails.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// One that was handed over.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        minicbor::decode(bytes).map_err(|error| unfit(&error.to_string()))
    }
}

impl From<UdpSite> for SavedSite {
    fn from(UdpSite { worker, from, rtp, rtcp }: UdpSite) -> Self {
        SavedSite { worker: worker as u64, from: from.to_string(), rtp, rtcp }
    }
}

impl TryFrom<SavedSite> for UdpSite {
    type Error = io::Error;

    fn try_from(SavedSite { worker, from, rtp, rtcp }: SavedSite) -> io::Result<Self> {
        let from = from.parse().map_err(|_| unfit("an address cannot be read"))?;
        Ok(UdpSite { worker: worker as usize, from, rtp, rtcp })
    }
}

/// Reads an address that was handed over.
///
/// # Errors
/// It is none.
pub(super) fn address(text: &str) -> io::Result<SocketAddr> {
    text.parse().map_err(|_| unfit("an address cannot be read"))
}

/// Why a connection cannot go on.
pub(super) fn unfit(why: &str) -> io::Error {
    io::Error::other(format!("an RTSP session cannot go on: {why}; its peer has to connect again"))
}
