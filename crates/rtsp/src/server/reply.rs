//! Answers.

use bytes::{Bytes, BytesMut};
use rtsp_types::{HeaderName, StatusCode, headers};

use crate::auth::Realm;
use crate::{Request, encode_response, response};

/// An answer before it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    body: String,
    /// What people are told about an error.
    why: Option<String>,
    and: And,
}

/// What comes with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum And {
    Nothing,
    Challenge,
    Leave,
}

impl Reply {
    pub(super) fn ok() -> Self {
        Reply {
            status: StatusCode::Ok,
            headers: Vec::new(),
            body: String::new(),
            why: None,
            and: And::Nothing,
        }
    }

    /// An error; `why` is for people.
    pub fn error(status: StatusCode, why: impl Into<String>) -> Self {
        Reply { status, why: Some(why.into()), ..Reply::ok() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with challenges: the peer may show another password.
    #[must_use]
    pub fn and_challenge(self) -> Self {
        Reply { and: And::Challenge, ..self }
    }

    /// The same as the last answer on its connection.
    #[must_use]
    pub fn and_leave(self) -> Self {
        Reply { and: And::Leave, ..self }
    }

    pub(super) fn with_body(self, body: String) -> Self {
        Reply { body, ..self }
    }

    pub(super) fn with_challenges(self, realm: &Realm) -> Self {
        match self.and {
            And::Challenge => self.with(headers::WWW_AUTHENTICATE, realm.challenges()),
            And::Nothing | And::Leave => self,
        }
    }

    pub(super) fn leaves(&self) -> bool {
        self.and == And::Leave
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The bytes that answer `request`, which may have been none.
    pub(super) fn encode(self, request: Option<&Request>, session: Option<String>) -> Bytes {
        let mut response = response(self.status);
        if let Some(cseq) = request.and_then(|request| request.header(&headers::CSEQ)) {
            response = response.header(headers::CSEQ, cseq.as_str());
        }
        response = response.header(headers::SERVER, concat!("Outflow/", env!("CARGO_PKG_VERSION")));
        if let Some(session) = session {
            response = response.header(headers::SESSION, session);
        }
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let mut body = self.body;
        if let Some(why) = self.why {
            response = response.header(headers::CONTENT_TYPE, "text/plain");
            body = why + "\n";
        }
        let mut bytes = BytesMut::with_capacity(256 + body.len());
        // Content-Length is not written for a body that is not there: some clients then wait.
        if body.is_empty() {
            encode_response(&response.empty(), &mut bytes);
        } else {
            encode_response(&response.build(body.into_bytes()), &mut bytes);
        }
        bytes.freeze()
    }
}

/// The answer to a method that does not fit the session's state.
pub(super) fn out_of_order(why: &str) -> Reply {
    Reply::error(StatusCode::MethodNotValidInThisState, why)
}
