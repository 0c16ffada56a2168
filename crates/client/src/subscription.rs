//! Subscribing to a URL, whatever carries it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Instant;

use minicbor::{Decode, Encode};
use outflow_media::{Format, Time};
use outflow_rtp::save::SavedTrack;
use outflow_ts::TsFramer;
use tokio::time::timeout_at;
use url::Url;

use crate::datagrams::{RtpDatagrams, TsDatagrams};
use crate::described::Described;
use crate::http::{Download, Granted, Session};
use crate::poc::{PocSession, SavedPoc};
use crate::rtsp::{RtspSession, SavedRtsp};
use crate::{Clock, Error, Options, Packet, Received, Rejected};

/// Begins to receive `url`:
///
/// - `rtsp://[user:password@]host[:port]/path`, `rtsps://…`;
/// - `http://host[:port]/path.ts`, `https://…`: a transport stream;
/// - `udp://[address]:port`: a transport stream, bare or in RTP; the address may be a group, with
///   `?source=ADDRESS` and `?interface=NAME`;
/// - `poc://host:port/path`: the partial-order transport of a relay, with [`Options::poc`];
/// - `rtp://[address]:port`: a transport stream in RTP, or what [`Options::sdp`] describes.
///
/// Returns when the stream is agreed on; the first packet may take longer.
///
/// # Errors
/// The URL is not usable, no server answers, or the answer is no.
pub async fn subscribe(url: &str, options: Options) -> Result<Subscription, Error> {
    let parsed = Url::parse(url).map_err(|e| Error::url(url, e.to_string()))?;
    let mut queue = VecDeque::new();
    let (source, described) = match parsed.scheme() {
        "rtsp" | "rtsps" => {
            let (session, described) = RtspSession::start(url, &options, &mut queue).await?;
            (Source::Rtsp(Box::new(session)), described)
        }
        "http" | "https" => {
            let (download, session) = Download::start(&parsed, &options).await?;
            let source = HttpTs { download, session, framer: TsFramer::default() };
            (Source::Http(Box::new(source)), Format::Ts.into())
        }
        "udp" => (Source::Udp(TsDatagrams::bind(&parsed, &options)?), Format::Ts.into()),
        "rtp" => {
            let (source, format) = RtpDatagrams::bind(&parsed, &options)?;
            (Source::Rtp(source), format.into())
        }
        "poc" => {
            let (session, described) = PocSession::start(url, &options).await?;
            (Source::Poc(Box::new(session)), described)
        }
        _ => {
            return Err(Error::url(url, "it begins with none of rtsp, rtsps, http, https, poc, udp and rtp"));
        }
    };
    let heard_at = options.clock.now();
    Ok(Subscription { source, described, queue, heard_at, options })
}

/// A stream that is being received.
#[derive(Debug)]
pub struct Subscription {
    source: Source,
    described: Described,
    queue: VecDeque<Received>,
    /// When the last packet came.
    heard_at: Time,
    options: Options,
}

/// A subscription as it is handed over. Times are nanoseconds since the clock's zero.
#[derive(Encode, Decode)]
#[cbor(map)]
struct SavedSubscription {
    #[n(0)]
    session: SavedSession,
    /// How much later than the time that both processes share the clock began.
    #[n(1)]
    after_ns: i64,
    #[n(2)]
    heard_at_ns: u64,
    /// The tracks, unless they are one transport stream.
    #[n(3)]
    tracks: Option<Vec<SavedTrack>>,
}

/// What goes on elsewhere.
#[derive(Encode, Decode)]
enum SavedSession {
    #[n(0)]
    Rtsp(#[n(0)] SavedRtsp),
    #[n(1)]
    Poc(#[n(0)] SavedPoc),
}

#[derive(Debug)]
enum Source {
    Rtsp(Box<RtspSession>),
    Http(Box<HttpTs>),
    Udp(TsDatagrams),
    Rtp(RtpDatagrams),
    Poc(Box<PocSession>),
}

impl Subscription {
    /// What came and was not handed on yet, before another process goes on with it.
    pub fn take_received(&mut self) -> impl Iterator<Item = Received> {
        self.queue.drain(..)
    }

    /// What another process needs to go on with it on the same connection and sockets: a value with secrets of its
    /// session, and descriptors. `epoch` is when the time began that both share. None where it has to begin again: what
    /// is neither RTSP nor the partial-order transport, or goes through TLS. To be followed by [`go_on`](Self::go_on)
    /// or [`vanish`](Self::vanish).
    pub async fn save(&mut self, epoch: Instant) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        // `&mut self`: threads may hand a TLS or TCP connection on, but not share it, and `.await` may change threads.
        let mut descriptors = Vec::new();
        let session = match &self.source {
            Source::Rtsp(session) => SavedSession::Rtsp(session.save(&mut descriptors)?),
            Source::Poc(session) => SavedSession::Poc(session.save(epoch, &mut descriptors).await?),
            Source::Http(_) | Source::Udp(_) | Source::Rtp(_) => return None,
        };
        let (after_ns, heard_at_ns) = (self.options.clock.after(epoch), self.heard_at.as_nanos());
        let tracks = match self.format() {
            Format::Rtp(tracks) => Some(tracks.iter().map(SavedTrack::from).collect()),
            Format::Ts => None,
            Format::Images | Format::Data => return None,
        };
        let saved = SavedSubscription { session, after_ns, heard_at_ns, tracks };
        Some((minicbor::to_vec(&saved).ok()?, descriptors))
    }

    /// It goes on here after all.
    pub fn go_on(&self) {
        if let Source::Poc(session) = &self.source {
            session.go_on();
        }
    }

    /// Another process goes on with it: the server is told nothing of its end here.
    pub fn vanish(self) {
        if let Source::Poc(session) = &self.source {
            session.vanish();
        }
    }

    /// Goes on with what another process has saved of a subscription to this URL. None if that cannot be, or if it is
    /// to be asked for in another way now: it begins again then.
    pub fn restore(
        url: &str,
        options: Options,
        (value, descriptors): (&[u8], Vec<OwnedFd>),
        epoch: Instant,
    ) -> Option<Self> {
        let saved: SavedSubscription = minicbor::decode(value).ok()?;
        let options = Options { clock: Clock::begun(epoch, saved.after_ns)?, ..options };
        let source = match saved.session {
            SavedSession::Rtsp(saved) => {
                Source::Rtsp(Box::new(RtspSession::restore(url, &options, saved, descriptors)?))
            }
            SavedSession::Poc(saved) => {
                Source::Poc(Box::new(PocSession::restore(&options, saved, descriptors, epoch)?))
            }
        };
        let tracks = saved.tracks.map(|all| all.into_iter().map(Into::into).collect());
        let format = tracks.map_or(Format::Ts, Format::Rtp);
        Some(Subscription {
            source,
            described: format.into(),
            queue: VecDeque::new(),
            heard_at: Time::from_nanos(saved.heard_at_ns),
            options,
        })
    }

    /// What the packets are.
    pub fn format(&self) -> &Format {
        &self.described.format
    }

    /// How many levels there were to choose from when this began, if that was said then; a client that asks
    /// for a level is told ([`Received::Levels`]).
    pub fn levels(&self) -> Option<u8> {
        self.described.levels
    }

    /// The tracks of the stream that are not in what comes, if the server said so: MPEG-TS has no place for
    /// some.
    pub fn left_out(&self) -> Option<&str> {
        match &self.source {
            Source::Http(http) => http.download.left_out.as_deref(),
            Source::Rtsp(_) | Source::Udp(_) | Source::Rtp(_) | Source::Poc(_) => None,
        }
    }

    /// What arrival times are told in.
    pub fn now(&self) -> Time {
        self.options.clock.now()
    }

    /// The next packet or report. Nothing is lost if this is cancelled.
    ///
    /// # Errors
    /// The stream is over, or nothing came for longer than [`Options::silence`]. Nothing comes
    /// after an error.
    pub async fn recv(&mut self) -> Result<Received, Error> {
        loop {
            if let Some(received) = self.queue.pop_front() {
                return Ok(received);
            }
            let after = self.options.silence;
            let patience_ends = self.options.clock.instant(self.heard_at + after);
            let advanced =
                timeout_at(patience_ends, self.source.advance(&self.options, &mut self.queue)).await;
            advanced.map_err(|_| Error::Silence { after, hint: self.source.hint() })??;
            if self.queue.iter().any(|received| matches!(received, Received::Packet(_))) {
                self.heard_at = self.now();
            }
        }
    }

    /// Asks for a level: 1 is the best, the number of levels the base. It is asked for until the relay answers
    /// ([`Received::Levels`]). Over RTCP it is asked again twice a second, so that a relay that was restarted
    /// knows it; a download has ended then, and a client that begins another one asks again.
    ///
    /// # Errors
    /// No server can be asked: the stream comes as plain MPEG-TS, or from an HTTP server without a session.
    pub fn ask_level(&mut self, level: u8) -> Result<(), Error> {
        let (now, track) = (self.now(), self.described.format.main_track());
        match &mut self.source {
            Source::Rtsp(session) => session.ask(now, track, level),
            Source::Rtp(source) => source.ask(now, track, level),
            Source::Poc(session) => session.ask(now, track, level),
            Source::Http(source) => source.session.as_mut().ok_or(Error::NoLevels)?.ask(level),
            Source::Udp(_) => return Err(Error::NoLevels),
        }
        Ok(())
    }

    /// Asks for a key frame of a track, where what carries the stream has a way to say that: RTCP.
    pub fn ask_key_frame(&mut self, track: u8) {
        match &mut self.source {
            Source::Rtsp(session) => session.ask_key_frame(track),
            Source::Rtp(source) => source.ask_key_frame(track),
            Source::Poc(session) => session.ask_key_frame(track),
            Source::Http(_) | Source::Udp(_) => {}
        }
    }

    /// Whether packets have RTP headers, whose timestamps tell how long packets wait on the way.
    pub fn is_by_rtp(&self) -> bool {
        matches!(self.source, Source::Rtsp(_) | Source::Rtp(_) | Source::Poc(_))
    }

    /// The status of RTSP or HTTP with which the server refused the last level that was asked for by
    /// SET_PARAMETER or of the session of a download, if it did.
    pub fn level_refused(&self) -> Option<u16> {
        match &self.source {
            Source::Rtsp(session) => session.refused(),
            Source::Http(source) => source.session.as_ref().and_then(Session::refused),
            _ => None,
        }
    }

    /// What was received and not handed on.
    pub fn rejected(&self) -> Rejected {
        let (malformed, strangers) = match &self.source {
            Source::Rtsp(session) => (session.malformed(), session.strangers()),
            Source::Http(source) => (source.framer.skipped(), 0),
            Source::Udp(source) => (source.malformed, source.strangers()),
            Source::Rtp(source) => (source.malformed(), source.strangers()),
            Source::Poc(session) => (session.malformed(), session.strangers()),
        };
        Rejected { malformed, strangers }
    }

    /// Leaves; a server is told so, and given a moment to answer.
    pub async fn close(self) {
        match self.source {
            Source::Rtsp(session) => session.close().await,
            Source::Poc(session) => session.close().await,
            Source::Http(_) | Source::Udp(_) | Source::Rtp(_) => {}
        }
    }
}

impl Source {
    /// Waits for something to happen, once. Nothing is lost if this is cancelled.
    async fn advance(&mut self, options: &Options, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        match self {
            Source::Rtsp(session) => session.advance(queue).await,
            Source::Http(source) => source.advance(options, queue).await,
            Source::Udp(source) => source.advance(queue).await,
            Source::Rtp(source) => source.advance(queue).await,
            Source::Poc(session) => session.advance(options, queue).await,
        }
    }

    /// What the reason may be if nothing comes.
    fn hint(&self) -> &'static str {
        match self {
            Source::Rtsp(session) if session.is_over_udp() => {
                " (has the stream a source? UDP may be blocked in between: try TCP)"
            }
            Source::Rtsp(_) | Source::Http(_) | Source::Poc(_) => " (has the stream a source?)",
            Source::Udp(_) | Source::Rtp(_) => {
                " (does the sender send to this address and port, and is UDP let in here?)"
            }
        }
    }
}

/// A transport stream in the body of an HTTP response.
#[derive(Debug)]
struct HttpTs {
    download: Download,
    /// Where something else can be asked for, if the server says so.
    session: Option<Session>,
    framer: TsFramer,
}

impl HttpTs {
    async fn advance(&mut self, options: &Options, queue: &mut VecDeque<Received>) -> Result<(), Error> {
        let bytes = tokio::select! {
            bytes = self.download.next() => bytes?.ok_or(Error::Ended)?,
            granted = answered(&mut self.session) => {
                queue.push_back(levels(granted, options.clock.now()));
                return Ok(());
            }
        };
        let arrived = options.clock.now();
        self.framer.push(bytes);
        while let Some(bytes) = self.framer.next_datagram() {
            queue.push_back(Received::Packet(Packet { track: 0, bytes, arrived, rtp: None }));
        }
        Ok(())
    }
}

async fn answered(session: &mut Option<Session>) -> Granted {
    match session {
        Some(session) => session.answered().await,
        None => core::future::pending().await,
    }
}

fn levels(Granted { level, rates }: Granted, arrived: Time) -> Received {
    let bytes = |bps: u64| u32::try_from(bps / 8).unwrap_or(u32::MAX);
    Received::Levels { level, rates: rates.into_iter().map(bytes).collect(), arrived }
}
