//! What follows on what: answers to our requests, and requests of the server.

use bytes::{Bytes, BytesMut};
use core::time::Duration;
use outflow_media::Time;
use rtsp_types::{Method, StatusCode, Version, headers};
use url::Url;

use super::event::keep_alive_every;
use super::request::{can_be_asked, without_credentials};
use super::{Closed, Connection, Event, Output, Pending, RtspClient, Server, Start, header};
use crate::auth::Challenge;
use crate::header::{RtpInfo, Session};
use crate::limits::{CHALLENGE_ANSWERS, REDIRECTS};
use crate::{Lower, Request, Response, Transport, encode_response};

/// How long the answer to TEARDOWN is waited for: nothing depends on it.
const FAREWELL: Duration = Duration::from_secs(1);

/// A request and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Options,
    Describe,
    Announce,
    /// Of the track with this index.
    Setup(usize),
    /// PLAY or RECORD.
    Start,
    KeepAlive,
    SetParameter,
    Teardown,
}

impl Step {
    /// The method's name, for messages.
    pub(super) fn name(self, client: &RtspClient) -> &'static str {
        match self {
            Step::Options => "OPTIONS",
            Step::Describe => "DESCRIBE",
            Step::Announce => "ANNOUNCE",
            Step::Setup(_) => "SETUP",
            Step::Start if client.options.announce.is_some() => "RECORD",
            Step::Start => "PLAY",
            Step::KeepAlive => "a keep-alive",
            Step::SetParameter => "SET_PARAMETER",
            Step::Teardown => "TEARDOWN",
        }
    }
}

impl RtspClient {
    pub(super) fn send(&mut self, now: Time, step: Step, answers: u32) {
        self.cseq = self.cseq.wrapping_add(1);
        let cseq = self.cseq;
        let bytes = self.request(step, cseq).freeze();
        let patience = if step == Step::Teardown { FAREWELL } else { self.options.timeout };
        self.pending = Some(Pending { step, cseq, deadline: now + patience, answers });
        self.out.push_back(Output::Send(bytes));
    }

    pub(super) fn on_response(&mut self, now: Time, response: Response) -> Connection {
        let Some(pending) = self.pending.take() else { return Connection::Stays };
        let cseq = header(&response, &headers::CSEQ).and_then(|cseq| cseq.trim().parse::<u32>().ok());
        let status = u16::from(response.status());
        if cseq.is_some_and(|cseq| cseq != pending.cseq) || status < 200 {
            self.pending = Some(pending);
            return Connection::Stays;
        }
        match status {
            200..=299 => self.on_success(now, pending.step, response),
            301 | 302 | 303 | 307 | 308 if self.session.is_none() => return self.on_redirect(&response),
            401 => self.on_challenge(now, &pending, &response),
            _ => self.on_failure(now, pending.step, &response),
        }
        Connection::Stays
    }

    fn on_success(&mut self, now: Time, step: Step, response: Response) {
        match step {
            Step::Options => {
                self.read_public(&response);
                self.after_options(now);
            }
            Step::Describe => self.on_described(response),
            Step::Announce => {
                self.read_session(&response);
                self.event(Event::Announced);
            }
            Step::Setup(track) => self.on_set_up(now, track, &response),
            Step::Start => {
                self.read_session(&response);
                let starts = self.starts(header(&response, &headers::RTP_INFO).unwrap_or_default());
                self.event(Event::Started(starts));
                self.keep_alive_later(now);
            }
            Step::KeepAlive => self.keep_alive_later(now),
            Step::SetParameter => self.on_parameter(now, response.status()),
            Step::Teardown => self.close(Closed::Ended),
        }
    }

    /// A session of which the server answers is alive.
    fn on_parameter(&mut self, now: Time, status: StatusCode) {
        self.event(Event::ParameterSet { status: status.into() });
        self.keep_alive_later(now);
    }

    fn after_options(&mut self, now: Time) {
        let next = if self.options.announce.is_some() { Step::Announce } else { Step::Describe };
        self.send(now, next, 0);
    }

    fn on_failure(&mut self, now: Time, step: Step, response: &Response) {
        let status = u16::from(response.status());
        match (step, status) {
            // Devices exist that do not know OPTIONS: what they are asked next will tell.
            (Step::Options, _) => self.after_options(now),
            (Step::Setup(track), 461) if self.asked(track).lower == Lower::Udp && !self.options.multicast => {
                self.options.lower = Lower::Tcp;
                self.send(now, Step::Setup(track), 0);
            }
            (Step::KeepAlive | Step::SetParameter, 454) => self.close(Closed::SessionLost),
            (Step::SetParameter, _) => self.on_parameter(now, response.status()),
            (Step::KeepAlive, _) => {
                self.gets_parameters = false;
                self.keep_alive_later(now);
            }
            (Step::Teardown, _) => self.close(Closed::Ended),
            _ => {
                let (method, phrase) = (step.name(self), response.reason_phrase().to_owned());
                self.close(Closed::Refused { method, status, phrase });
            }
        }
    }

    fn on_challenge(&mut self, now: Time, pending: &Pending, response: &Response) {
        let value = header(response, &headers::WWW_AUTHENTICATE).unwrap_or_default();
        let Some(challenge) = Challenge::strongest(Challenge::parse_all(value)) else {
            return self.close(Closed::UnknownChallenge);
        };
        if self.credentials.is_none() {
            return self.close(Closed::NeedsCredentials(challenge.realm().to_owned()));
        }
        // An answer given to an older nonce says nothing about the password. A server that knows
        // no `stale` shows by another nonce that the old one has run out.
        let renewed = challenge.is_stale()
            || self.challenge.as_ref().is_some_and(|(known, _)| pending.answers == 0 && *known != challenge);
        let first = pending.answers == 0 && self.challenge.is_none();
        if pending.answers >= CHALLENGE_ANSWERS || !(first || renewed) {
            return self.close(Closed::WrongCredentials);
        }
        self.challenge = Some((challenge, 0));
        self.send(now, pending.step, pending.answers + 1);
    }

    fn on_redirect(&mut self, response: &Response) -> Connection {
        let location = header(response, &headers::LOCATION).and_then(|l| self.url.join(l.trim()).ok());
        self.redirects += 1;
        let Some(location) = location.filter(|_| self.redirects <= REDIRECTS) else {
            self.close(Closed::Redirected);
            return Connection::Left;
        };
        if self.follow(location).is_none() {
            self.close(Closed::Redirected);
        }
        Connection::Left
    }

    /// A password goes along to the same host only, and not from TLS to plain text.
    fn follow(&mut self, location: Url) -> Option<()> {
        let (url, in_url) = without_credentials(location).ok()?;
        let (old, new) = (Server::of(&self.url)?, Server::of(&url)?);
        let keeps = old.host == new.host && (new.tls || !old.tls);
        self.credentials = in_url.or(self.credentials.take().filter(|_| keeps));
        self.challenge = None;
        self.url = url.clone();
        self.base = url.clone();
        self.aggregate = url;
        self.decoder = crate::Decoder::new();
        self.connect().ok()
    }

    fn on_described(&mut self, response: Response) {
        let base = [headers::CONTENT_BASE, headers::CONTENT_LOCATION]
            .iter()
            .find_map(|name| header(&response, name).filter(|value| !value.is_empty()))
            .and_then(|base| self.url.join(base).ok())
            .filter(can_be_asked);
        // Servers behind address translation name a base that is theirs alone; it is only written
        // into requests, never connected to.
        if let Some((base, _)) = base.and_then(|base| without_credentials(base).ok()) {
            self.base = base;
        }
        self.read_session(&response);
        let sdp = Bytes::from(response.into_body());
        if sdp.is_empty() {
            return self.close(Closed::Unexpected("DESCRIBE without a description"));
        }
        self.event(Event::Described { sdp });
    }

    fn on_set_up(&mut self, now: Time, track: usize, response: &Response) {
        self.read_session(response);
        if self.session.is_none() {
            return self.close(Closed::Unexpected("SETUP without a session"));
        }
        let answered = header(response, &headers::TRANSPORT).and_then(Transport::parse);
        let asked = self.asked(track);
        let carried = match answered {
            Some(answered) if answered.lower == Lower::Udp && asked.lower == Lower::Tcp => {
                return self.close(Closed::Unexpected("UDP where TCP was asked for"));
            }
            Some(answered)
                if asked.multicast && (answered.destination.is_none() || answered.port.is_none()) =>
            {
                return self.close(Closed::Unexpected("no group where multicast was asked for"));
            }
            Some(answered) => Transport {
                interleaved: answered
                    .interleaved
                    .or(asked.interleaved)
                    .filter(|_| answered.lower == Lower::Tcp),
                client_port: asked.client_port,
                ..answered
            },
            None => return self.close(Closed::Unexpected("SETUP without a usable Transport")),
        };
        if carried.lower == Lower::Tcp && carried.interleaved.is_none() {
            return self.close(Closed::Unexpected("TCP without channels"));
        }
        self.carried.push(carried);
        if track + 1 < self.tracks.len() {
            return self.send(now, Step::Setup(track + 1), 0);
        }
        self.event(Event::SetUp(self.carried.clone()));
        self.send(now, Step::Start, 0);
    }

    /// What RTP-Info says of each track. Some servers name tracks by other URLs than they were set
    /// up with; if there is one entry a track, their order tells.
    fn starts(&self, value: &str) -> Vec<Start> {
        let infos = RtpInfo::parse_all(value);
        let start = |info: &RtpInfo| Start { seq: info.seq, rtptime: info.rtptime };
        let in_order = infos.len() == self.tracks.len();
        let of_track = |(i, (url, _)): (usize, &(Url, _))| {
            let named = infos.iter().find(|info| {
                !info.url.is_empty()
                    && (info.url == url.as_str() || url.as_str().ends_with(&format!("/{}", info.url)))
            });
            named.or_else(|| infos.get(i).filter(|_| in_order)).map(start).unwrap_or_default()
        };
        self.tracks.iter().enumerate().map(of_track).collect()
    }

    fn read_public(&mut self, response: &Response) {
        let public = header(response, &headers::PUBLIC).unwrap_or_default();
        self.gets_parameters = public.split(',').any(|m| m.trim().eq_ignore_ascii_case("GET_PARAMETER"));
    }

    fn read_session(&mut self, response: &Response) {
        if let Some(session) = header(response, &headers::SESSION).and_then(Session::parse) {
            // Only SETUP's answer need name the time-out.
            let timeout = match &self.session {
                Some(known) if session.timeout == Session::DEFAULT_TIMEOUT => known.timeout,
                _ => session.timeout,
            };
            self.session = Some(Session { timeout, ..session });
        }
    }

    fn keep_alive_later(&mut self, now: Time) {
        let timeout = self.session.as_ref().map_or(Session::DEFAULT_TIMEOUT, |session| session.timeout);
        self.keep_alive_at = Some(now + keep_alive_every(timeout));
    }

    /// Servers ask for signs of life, too.
    pub(super) fn on_request(&mut self, request: &Request) {
        let status = match request.method() {
            Method::Options | Method::GetParameter | Method::SetParameter => StatusCode::Ok,
            _ => StatusCode::NotImplemented,
        };
        let mut response = rtsp_types::Response::builder(Version::V1_0, status);
        if let Some(cseq) = request.header(&headers::CSEQ) {
            response = response.header(headers::CSEQ, cseq.as_str());
        }
        let mut bytes = BytesMut::new();
        encode_response(&response.empty(), &mut bytes);
        self.out.push_back(Output::Send(bytes.freeze()));
    }
}
