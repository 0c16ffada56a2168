//! What a client tells its driver.

use core::time::Duration;

use bytes::Bytes;
use outflow_media::Time;
use url::Url;

use crate::{DecodeError, Transport};

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether TLS comes first.
    pub tls: bool,
}

impl Server {
    /// Where a URL points to; `None` if it is not one of RTSP.
    pub(super) fn of(url: &Url) -> Option<Server> {
        let (tls, default) = match url.scheme() {
            "rtsp" | "rtspt" => (false, 554),
            "rtsps" => (true, 322),
            _ => return None,
        };
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Server { host, port: url.port().unwrap_or(default), tls })
    }
}

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Leave the connection, if there is one, open this one, and call
    /// [`connected`](super::RtspClient::connected).
    Connect(Server),
    /// Send this on the connection.
    Send(Bytes),
    /// Something happened.
    Event(Event),
    /// Nothing until then, or until something is received.
    Wait(Option<(Time, Wake)>),
}

/// Why a client wants to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The answer to a request is overdue by then.
    Answer,
    /// The server wants a sign of life.
    KeepAlive,
}

/// Where a track begins, as PLAY was answered (RTP-Info).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Start {
    /// Sequence number of the first packet.
    pub seq: Option<u16>,
    /// RTP timestamp of the beginning.
    pub rtptime: Option<u32>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The answer to DESCRIBE: [`setup`](super::RtspClient::setup) is to be called.
    Described {
        /// The session description.
        sdp: Bytes,
    },
    /// The server took the description: [`setup`](super::RtspClient::setup) is to be called.
    Announced,
    /// All tracks are set up; how each is carried. For TCP, `interleaved` is given.
    SetUp(Vec<Transport>),
    /// PLAY or RECORD was answered: media flows. One entry a track.
    Started(Vec<Start>),
    /// A packet came interleaved.
    Media {
        /// Index of the track as given to [`setup`](super::RtspClient::setup).
        track: usize,
        /// Whether it is RTCP.
        rtcp: bool,
        /// One packet.
        bytes: Bytes,
    },
    /// The answer to [`set_parameter`](super::RtspClient::set_parameter).
    ParameterSet {
        /// Status code: 200 if it was taken.
        status: u16,
    },
    /// It is over. Nothing else follows.
    Closed(Closed),
}

/// Why it is over, which side is to blame, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// We ended it.
    #[error("ended as asked")]
    Ended,
    /// The URL is not usable.
    #[error("'{0}' is not a usable RTSP URL: write it as rtsp://[user:password@]host[:port]/path")]
    BadUrl(String),
    /// The server answered with an error.
    #[error("the server refused {method}: {status} {phrase}{}", advice(*.status))]
    Refused {
        /// What was asked.
        method: &'static str,
        /// Status code.
        status: u16,
        /// Reason phrase.
        phrase: String,
    },
    /// A password is needed and there is none.
    #[error("the server asks for a password ('{0}'): put user:password@ before the host in the URL")]
    NeedsCredentials(String),
    /// The password is not accepted.
    #[error("the server does not accept this user and password")]
    WrongCredentials,
    /// None of the challenges can be answered.
    #[error("the server asks for a kind of authentication other than Basic and Digest (MD5, SHA-256)")]
    UnknownChallenge,
    /// Redirected too often, or to nowhere.
    #[error("the server redirects without end, or to what is no RTSP URL")]
    Redirected,
    /// The bytes make no sense.
    #[error(transparent)]
    Broken(#[from] DecodeError),
    /// The answer makes no sense.
    #[error("the server's answer cannot be used: {0}")]
    Unexpected(&'static str),
    /// No answer in time.
    #[error("the server did not answer {0} in time")]
    TimedOut(&'static str),
    /// The session is gone.
    #[error("the server has forgotten the session")]
    SessionLost,
    /// The connection is gone.
    #[error("the connection was closed{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Disconnected(Option<String>),
}

fn advice(status: u16) -> &'static str {
    match status {
        403 => " (this user may not do that)",
        404 => " (no such stream: check the path of the URL)",
        406 | 415 => " (it cannot take this description)",
        453 | 503 => " (it is at its limit: try later)",
        461 => " (it has none of the transports asked for)",
        _ => "",
    }
}

/// How often a session with this time-out is to show a sign of life.
pub(super) fn keep_alive_every(timeout: Duration) -> Duration {
    (timeout / 2).clamp(Duration::from_secs(1), Duration::from_secs(30))
}
