//! Answers.

use bytes::{Bytes, BytesMut};
use outflow_door::Refused;
use outflow_engine::message::ControlError;
use outflow_rtsp::{HeaderName, Request, StatusCode, encode_response, headers};

/// An answer before it is written.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: String,
    /// What people are told about an error.
    why: Option<String>,
}

impl Reply {
    pub(super) fn ok() -> Self {
        Reply { status: StatusCode::Ok, headers: Vec::new(), body: String::new(), why: None }
    }

    /// An error; `why` is for people.
    pub(super) fn error(status: StatusCode, why: impl Into<String>) -> Self {
        Reply { status, why: Some(why.into()), ..Reply::ok() }
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn is_ok(&self) -> bool {
        self.status == StatusCode::Ok
    }

    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The bytes that answer `request`, which may have been none.
    pub(super) fn encode(self, request: Option<&Request>, session: Option<String>) -> Bytes {
        let mut response = outflow_rtsp::response(self.status);
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

impl From<ControlError> for Reply {
    fn from(error: ControlError) -> Self {
        let status = match &error {
            ControlError::Refused(refused) => return Reply::from(refused.clone()),
            ControlError::UnknownStream(_) | ControlError::StreamGone => StatusCode::NotFound,
            ControlError::NotPushed(..) | ControlError::Busy(..) => StatusCode::Forbidden,
            ControlError::NoSource(_) | ControlError::Limit { .. } | ControlError::ShuttingDown => {
                StatusCode::ServiceUnavailable
            }
            ControlError::UnknownReceiver(_) => StatusCode::SessionNotFound,
            ControlError::Unsupported(_) => StatusCode::UnsupportedMediaType,
            _ => StatusCode::InternalServerError,
        };
        Reply::error(status, error.to_string())
    }
}

impl From<Refused> for Reply {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::BadName(_) => StatusCode::NotFound,
            Refused::BadSelection(_) => StatusCode::UnsupportedMediaType,
            Refused::TokenMissing | Refused::TokenWrong => StatusCode::Unauthorized,
            Refused::NotLocal => StatusCode::Forbidden,
            Refused::TooOften { .. } | Refused::Full { .. } => StatusCode::ServiceUnavailable,
        };
        let reply = Reply::error(status, refused.to_string());
        match refused.retry_after_s() {
            Some(wait_s) => reply.with(headers::RETRY_AFTER, wait_s.to_string()),
            None => reply,
        }
    }
}
