//! The course of things: from requests, and what the driver says to them, to answers.

use rtsp_types::{Method, StatusCode, Version, headers};

use super::address::{Address, base, is_about};
use super::message::{Answer, Closed, Entry, Output, Question, Right, Shown};
use super::reply::{Reply, out_of_order};
use super::step::{Next, Setup, Step};
use super::{Open, Role, Session};
use crate::Request;
use crate::auth::Authorization;
use crate::header::Session as SessionHeader;

const PUBLIC: &str =
    "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER, ANNOUNCE, RECORD";

impl<S: Clone + PartialEq> Session<S> {
    /// The first step to an answer.
    ///
    /// # Errors
    /// The answer that refuses it.
    pub(super) fn begin(&mut self, request: &Request) -> Result<Next<S>, Reply> {
        if request.version() != Version::V1_0 {
            let why = "RTSP 1.0 is spoken here";
            return Err(Reply::error(StatusCode::RTSPVersionNotSupported, why));
        }
        if let Some(required) = request.header(&headers::REQUIRE) {
            let reply = Reply::error(StatusCode::OptionNotSupported, "no extension is supported");
            return Err(reply.with(headers::UNSUPPORTED, required.as_str()));
        }
        self.check_session(request)?;
        match request.method() {
            Method::Options => Ok(Next::Done(Reply::ok().with(headers::PUBLIC, PUBLIC))),
            Method::GetParameter => Ok(Next::Done(Reply::ok())),
            Method::SetParameter => self.set_parameters(request),
            Method::Announce => self.enter(Right::Publish, request),
            Method::Setup if matches!(self.role, Role::Publisher(_)) => self.set_up_publisher(request),
            Method::Describe | Method::Setup => self.enter(Right::Play, request),
            Method::Play => self.play(),
            Method::Pause => self.pause(),
            Method::Record => self.record(),
            Method::Teardown if matches!(self.role, Role::None) => Err(out_of_order("there is no session")),
            Method::Teardown => Ok(Next::TearDown),
            _ => {
                Err(Reply::error(StatusCode::NotImplemented, "unknown method").with(headers::PUBLIC, PUBLIC))
            }
        }
    }

    /// The next step, as the driver says.
    ///
    /// # Errors
    /// The answer that refuses the request.
    pub(super) fn go_on(
        &mut self,
        request: &Request,
        step: Step<S>,
        answer: Answer<S>,
    ) -> Result<Next<S>, Reply> {
        match (step, answer) {
            (Step::Entering, Answer::Entered { selection, wanted }) => {
                self.entered(request, selection, &wanted)
            }
            (Step::Describing { base }, Answer::Described(text)) => {
                let reply = Reply::ok().with(headers::CONTENT_TYPE, "application/sdp");
                Ok(Next::Done(reply.with(headers::CONTENT_BASE, base).with_body(text)))
            }
            (Step::Counting(setup), Answer::Tracks { count, groups }) => {
                self.choose(request, setup, count, groups)
            }
            (Step::Placing(setup, to), Answer::Ports(from)) => self.set_up_datagrams(setup, to, from),
            (Step::Joining(setup), Answer::Group { to, source, ttl }) => {
                self.set_up_group(setup, to, source, ttl)
            }
            (Step::Announcing(publication), Answer::Done) => {
                self.role = Role::Publisher(publication);
                Ok(Next::Done(Reply::ok()))
            }
            (Step::Opening(track, from), Answer::Ports(to)) => self.opened(track, from, to),
            (Step::Playing, Answer::Playing(starts)) => self.played(&starts),
            (Step::Recording, Answer::Done) => self.recorded(),
            (Step::Setting, Answer::Done) => Ok(Next::Done(Reply::ok())),
            _ => Err(Reply::error(StatusCode::InternalServerError, "this answers another question")),
        }
    }

    /// A step is done: asks what comes next, or answers.
    pub(super) fn conclude(&mut self, request: Box<Request>, next: Result<Next<S>, Reply>) {
        match next {
            Ok(Next::Ask(question, step)) => {
                self.open = Some(Open::Request(request, step));
                self.out.push_back(Output::Ask(question));
            }
            Ok(Next::Done(reply)) => self.say(&request, reply),
            Ok(Next::Start { reply, within }) => {
                self.say(&request, reply);
                self.out.push_back(Output::Start { within });
            }
            Ok(Next::TearDown) => self.tear_down(&request),
            Err(reply) => self.refuse(&request, reply),
        }
    }

    fn say(&mut self, request: &Request, reply: Reply) {
        let in_session = !matches!(self.role, Role::None);
        let session = in_session.then(|| self.session_header());
        self.out.push_back(Output::Send(reply.encode(Some(request), session)));
    }

    fn refuse(&mut self, request: &Request, reply: Reply) {
        if *request.method() == Method::Setup && matches!(self.role, Role::None) {
            self.out.push_back(Output::Release);
        }
        let method: &str = request.method().into();
        let why = reply.why().unwrap_or_default().to_owned();
        self.out.push_back(Output::Refused { method: method.to_owned(), status: reply.status().into(), why });
        let leaves = reply.leaves();
        let bytes = reply.with_challenges(&self.realm).encode(Some(request), None);
        if leaves {
            self.close(Closed::SentAway, Some(bytes));
        } else {
            self.out.push_back(Output::Send(bytes));
        }
    }

    /// Ends the session. Where its media went within the connection, that is over, too: a packet may be half
    /// written.
    fn tear_down(&mut self, request: &Request) {
        let is_within = matches!(&self.role, Role::Player(player) if player.is_served_within());
        let bytes = Reply::ok().encode(Some(request), Some(self.session_header()));
        self.role = Role::None;
        if is_within {
            self.close(Closed::TornDown, Some(bytes));
        } else {
            self.out.extend([Output::Send(bytes), Output::Release]);
        }
    }

    fn session_header(&self) -> String {
        SessionHeader { id: self.options.id.clone(), timeout: self.timeout() }.to_string()
    }

    /// A request that names a session must name this one.
    fn check_session(&self, request: &Request) -> Result<(), Reply> {
        let Some(value) = request.header(&headers::SESSION) else { return Ok(()) };
        let named = SessionHeader::parse(value.as_str()).map(|session| session.id);
        if named.as_deref() == Some(&self.options.id) && !matches!(self.role, Role::None) {
            return Ok(());
        }
        let why = "sessions live on the connection that set them up";
        Err(Reply::error(StatusCode::SessionNotFound, why))
    }

    /// Asks what the request is about, and whether the peer may do that.
    fn enter(&self, right: Right, request: &Request) -> Result<Next<S>, Reply> {
        let Some(url) = request.request_uri() else {
            return Err(Reply::error(StatusCode::BadRequest, "this method needs the URL of a stream"));
        };
        let shown = request.header(&headers::AUTHORIZATION).map(|value| Shown {
            realm: self.realm.clone(),
            method: <&str>::from(request.method()).to_owned(),
            answer: Authorization::parse(value.as_str())
                .filter(|answer| answer.uri().is_none_or(|uri| is_about(uri, url))),
        });
        let entry = Entry { right, address: Address::of(url), shown };
        Ok(Next::Ask(Question::Enter(entry), Step::Entering))
    }

    fn entered(&mut self, request: &Request, selection: S, wanted: &str) -> Result<Next<S>, Reply> {
        if *request.method() == Method::Announce {
            return self.announce(request, selection);
        }
        let base = request.request_uri().map(|url| base(url, wanted)).unwrap_or_default();
        Ok(if *request.method() == Method::Describe {
            Next::Ask(Question::Describe(selection), Step::Describing { base })
        } else {
            let track = request.request_uri().and_then(|url| Address::of(url).track);
            Next::Ask(Question::Tracks(selection.clone()), Step::Counting(Setup { selection, base, track }))
        })
    }
}
