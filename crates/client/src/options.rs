//! How to subscribe.

use core::time::Duration;

use outflow_rtsp::Lower;
use outflow_rtsp::auth::Credentials;

use crate::Clock;

/// How a session by RTSP is asked for another level. Where there is no RTSP, RTCP is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskBy {
    /// By application-defined packets on the session's RTCP ports: answered with what each level costs, and
    /// repeated until they are answered.
    #[default]
    Rtcp,
    /// By SET_PARAMETER in the session (RFC 2326 section 10.9), where RTCP does not get through.
    Rtsp,
}

/// How to subscribe; the defaults suit most.
#[derive(Clone)]
pub struct Options {
    /// What RTSP is asked to carry the media with.
    pub transport: Lower,
    /// RTSP is asked for the group that the stream goes to, instead. A server that has none refuses.
    pub multicast: bool,
    /// User and password, where the URL holds none.
    pub credentials: Option<Credentials>,
    /// Given as password (RTSP) or bearer token (HTTP) where there are no credentials.
    pub token: Option<String>,
    /// How another level is asked for ([`Subscription::ask_level`](crate::Subscription::ask_level)).
    pub ask_by: AskBy,
    /// Text of the session description of an `rtp://` source.
    pub sdp: Option<String>,
    /// How connections of the partial-order transport are protected, and behave; none can be made without.
    pub poc: Option<outflow_poc_socket::Options>,
    /// For how long packets are sent again there, if not for as long as the server says.
    pub poc_latency: Option<Duration>,
    /// How long connecting may take, and each answer of a server.
    pub patience: Duration,
    /// How long there may be no packet: before the first, and between any two.
    pub silence: Duration,
    /// Bytes of receive buffer that the kernel is asked for, for each UDP socket.
    pub receive_buffer: usize,
    /// Certificates (PEM) that are trusted besides the system's: of an authority, or of the very
    /// server.
    pub certificates: Vec<u8>,
    /// What arrival times are told in.
    pub clock: Clock,
    /// Where synchronization sources and the like are drawn from: different for every receiver.
    pub seed: u64,
}

impl core::fmt::Debug for Options {
    /// Without the token, so that it does not end up in a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Options").field("transport", &self.transport).finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            transport: Lower::Tcp,
            multicast: false,
            credentials: None,
            token: None,
            ask_by: AskBy::default(),
            sdp: None,
            poc: None,
            poc_latency: None,
            patience: Duration::from_secs(10),
            silence: Duration::from_secs(10),
            receive_buffer: 8 << 20,
            certificates: Vec::new(),
            clock: Clock::start(),
            seed: u64::from(std::process::id()),
        }
    }
}
