//! A client: plays a stream from a server, or publishes one to it.
//!
//! ```text
//! Connect → OPTIONS → DESCRIBE → (setup) SETUP … → PLAY   → media, keep-alives → TEARDOWN
//!                     ANNOUNCE → (setup) SETUP … → RECORD → keep-alives        → TEARDOWN
//! ```
//!
//! The driver owns the connection and, for media over UDP, the sockets; it is told what to do by
//! [`RtspClient::poll`].

mod event;
mod flow;
mod request;
mod save;
#[cfg(test)]
mod tests;

pub use event::{Closed, Event, Output, Server, Start, Wake};
pub use save::SavedClient;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use core::time::Duration;
use outflow_media::Time;
use url::Url;

use crate::auth::{Challenge, Credentials};
use crate::header::Session;
use crate::limits::TRACKS;
use crate::{Decoder, Item, Lower, Pair, Response, Transport};
use flow::Step;

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How the media is asked for. A server that has no UDP is asked for TCP instead.
    pub lower: Lower,
    /// The media is asked for by multicast, whatever `lower` says: the server names a group, or refuses.
    pub multicast: bool,
    /// The name given in User-Agent.
    pub user_agent: String,
    /// Answers challenges; those in the URL come first.
    pub credentials: Option<Credentials>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Where the client's nonces come from: different for every client.
    pub seed: u64,
    /// Publish what this session description says, instead of playing.
    pub announce: Option<Bytes>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            lower: Lower::Tcp,
            multicast: false,
            user_agent: concat!("Outflow/", env!("CARGO_PKG_VERSION")).to_owned(),
            credentials: None,
            timeout: Duration::from_secs(10),
            seed: 0,
            announce: None,
        }
    }
}

/// One track to set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrackSetup {
    /// `a=control` of its media description, if there is one.
    pub control: Option<String>,
    /// The UDP ports that the driver has bound for it. Without them it is set up over TCP.
    pub ports: Option<Pair<u16>>,
}

/// The client's state. See the [module](self) for the course of things.
#[derive(Debug)]
pub struct RtspClient {
    options: ClientOptions,
    url: Url,
    credentials: Option<Credentials>,
    decoder: Decoder,
    /// What relative control URLs are appended to.
    base: Url,
    /// What PLAY, RECORD and TEARDOWN are about.
    aggregate: Url,
    session: Option<Session>,
    tracks: Vec<(Url, Option<Pair<u16>>)>,
    carried: Vec<Transport>,
    challenge: Option<(Challenge, u32)>,
    gets_parameters: bool,
    /// What SET_PARAMETER says, and what it is to say next.
    parameter: String,
    parameter_next: Option<String>,
    pending: Option<Pending>,
    keep_alive_at: Option<Time>,
    cseq: u32,
    cnonces: u64,
    redirects: u32,
    strays: u64,
    closed: bool,
    out: VecDeque<Output>,
}

/// A request without its answer.
#[derive(Debug)]
struct Pending {
    step: Step,
    cseq: u32,
    deadline: Time,
    /// Challenges that were answered for it.
    answers: u32,
}

impl RtspClient {
    /// A client for `rtsp://[user[:password]@]host[:port]/path` or `rtsps://…`.
    pub fn new(url: &str, options: ClientOptions) -> Result<Self, Closed> {
        let mut client = RtspClient::begin(url, options)?;
        client.connect()?;
        Ok(client)
    }

    /// One that has not said anything yet.
    fn begin(url: &str, options: ClientOptions) -> Result<Self, Closed> {
        let url = Url::parse(url).map_err(|_| Closed::BadUrl(url.to_owned()))?;
        let (url, in_url) = request::without_credentials(url)?;
        Ok(RtspClient {
            credentials: in_url.or_else(|| options.credentials.clone()),
            decoder: Decoder::new(),
            base: url.clone(),
            aggregate: url.clone(),
            url,
            session: None,
            tracks: Vec::new(),
            carried: Vec::new(),
            challenge: None,
            gets_parameters: false,
            parameter: String::new(),
            parameter_next: None,
            pending: None,
            keep_alive_at: None,
            cseq: 0,
            cnonces: options.seed,
            redirects: 0,
            strays: 0,
            closed: false,
            out: VecDeque::new(),
            options,
        })
    }

    /// What is asked for, after redirections, without credentials.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How each track is carried, as far as they are set up.
    pub fn carried(&self) -> &[Transport] {
        &self.carried
    }

    /// Interleaved packets on channels that no track has; they are dropped.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The connection that [`Output::Connect`] asked for is there.
    pub fn connected(&mut self, now: Time) {
        if !self.closed && self.pending.is_none() {
            self.send(now, Step::Options, 0);
        }
    }

    /// The connection is no more, for the reason given (`None`: the peer closed it).
    pub fn disconnected(&mut self, why: Option<String>) {
        let leaving = self.pending.as_ref().is_some_and(|p| p.step == Step::Teardown);
        self.close(if leaving { Closed::Ended } else { Closed::Disconnected(why) });
    }

    /// Takes received bytes from the front of `buffer`; an incomplete message stays in it.
    pub fn handle(&mut self, now: Time, buffer: &mut BytesMut) {
        while !self.closed {
            match self.decoder.decode(buffer) {
                Ok(None) => return,
                Ok(Some(Item::Interleaved { channel, bytes })) => self.on_media(channel, bytes),
                Ok(Some(Item::Request(request))) => self.on_request(&request),
                Ok(Some(Item::Response(response))) => {
                    if self.on_response(now, response) == Connection::Left {
                        break;
                    }
                }
                Err(why) => self.close(Closed::Broken(why)),
            }
        }
        buffer.clear();
    }

    /// Sets up `tracks`, in answer to [`Event::Described`] or [`Event::Announced`], and starts.
    /// `aggregate` is the session level's `a=control`, if there is one.
    pub fn setup(&mut self, now: Time, aggregate: Option<&str>, tracks: &[TrackSetup]) {
        if self.closed || self.pending.is_some() {
            return;
        }
        if tracks.is_empty() || tracks.len() > TRACKS {
            return self.close(Closed::Unexpected("no track that can be set up"));
        }
        let aggregate = request::resolve(&self.base, aggregate);
        let controls = tracks.iter().map(|t| request::resolve(&self.base, t.control.as_deref()));
        let (Some(aggregate), Some(controls)) = (aggregate, controls.collect::<Option<Vec<_>>>()) else {
            return self.close(Closed::Unexpected("a control URL that is none"));
        };
        self.aggregate = aggregate;
        self.tracks = controls.into_iter().zip(tracks.iter().map(|t| t.ports)).collect();
        self.send(now, Step::Setup(0), 0);
    }

    /// Sets a parameter of the session (RFC 2326 section 10.9), as soon as it plays and nothing else is being
    /// asked. [`Event::ParameterSet`] tells the answer; of several that wait, only the last one is sent.
    pub fn set_parameter(&mut self, name: &str, value: &str) {
        self.parameter_next = Some(format!("{name}: {value}\r\n"));
    }

    /// Ends the session. [`Event::Closed`] follows when the server has answered, or soon after.
    pub fn teardown(&mut self, now: Time) {
        if self.closed {
            return;
        }
        if self.session.is_some() {
            self.send(now, Step::Teardown, 0);
        } else {
            self.close(Closed::Ended);
        }
    }

    /// What to do next. To be called after every other method until it answers
    /// [`Output::Wait`], and again at the time named there; earlier calls are harmless.
    pub fn poll(&mut self, now: Time) -> Output {
        if let Some(output) = self.out.pop_front() {
            return output;
        }
        self.on_time(now);
        self.out.pop_front().unwrap_or_else(|| self.wait())
    }

    fn wait(&self) -> Output {
        match (&self.pending, self.keep_alive_at) {
            _ if self.closed => Output::Wait(None),
            (Some(pending), _) => Output::Wait(Some((pending.deadline, Wake::Answer))),
            (None, Some(at)) => Output::Wait(Some((at, Wake::KeepAlive))),
            (None, None) => Output::Wait(None),
        }
    }

    fn on_time(&mut self, now: Time) {
        if self.closed {
            return;
        }
        if let Some(pending) = self.pending.take_if(|pending| pending.deadline <= now) {
            self.close(match pending.step {
                Step::Teardown => Closed::Ended,
                step => Closed::TimedOut(step.name(self)),
            });
            return;
        }
        let Some(keep_alive_at) = self.keep_alive_at.filter(|_| self.pending.is_none()) else { return };
        if let Some(parameter) = self.parameter_next.take() {
            self.parameter = parameter;
            self.send(now, Step::SetParameter, 0);
        } else if keep_alive_at <= now {
            self.keep_alive_at = None;
            self.send(now, Step::KeepAlive, 0);
        }
    }

    fn on_media(&mut self, channel: u8, bytes: Bytes) {
        for (track, transport) in self.carried.iter().enumerate() {
            let Some(pair) = transport.interleaved else { continue };
            if pair.rtp == channel || pair.rtcp == channel {
                let rtcp = pair.rtp != channel;
                return self.out.push_back(Output::Event(Event::Media { track, rtcp, bytes }));
            }
        }
        self.strays += 1;
    }

    fn connect(&mut self) -> Result<(), Closed> {
        let server = Server::of(&self.url).ok_or_else(|| Closed::BadUrl(self.url.to_string()))?;
        self.out.push_back(Output::Connect(server));
        Ok(())
    }

    fn close(&mut self, why: Closed) {
        if !self.closed {
            self.closed = true;
            self.pending = None;
            self.out.push_back(Output::Event(Event::Closed(why)));
        }
    }

    fn event(&mut self, event: Event) {
        self.out.push_back(Output::Event(event));
    }
}

/// Whether the connection goes on behind an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Stays,
    Left,
}

/// The answer's header as text.
fn header<'a>(response: &'a Response, name: &rtsp_types::HeaderName) -> Option<&'a str> {
    response.header(name).map(rtsp_types::HeaderValue::as_str)
}
