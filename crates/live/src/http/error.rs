//! Errors as HTTP clients see them: a status, and JSON that says what to do.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::control::{ControlError, Denied};

/// A request that was not granted.
#[derive(Debug)]
pub(crate) struct HttpError {
    status: StatusCode,
    body: ErrorBody,
}

/// What an error's body holds.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong, and what to do.
    pub(crate) error: String,
}

impl HttpError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        HttpError { status, body: ErrorBody { error: error.into() } }
    }

    /// There is nothing at that path.
    pub(crate) fn nothing_at(path: &str) -> Self {
        let text = format!("there is nothing at /{path}: streams are at /NAME.ts, the status page is at /");
        HttpError::new(StatusCode::NOT_FOUND, text)
    }

    /// A value that means nothing.
    pub(crate) fn impossible(invalid: outflow_config::Invalid) -> Self {
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, invalid.to_string())
    }

    /// Not now.
    pub(crate) fn unavailable(why: &str) -> Self {
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// The system refused something.
    pub(crate) fn system(doing: &str, error: &std::io::Error) -> Self {
        ControlError::system(doing, error).into()
    }

    /// The whole response, for connections that are not hyper's.
    pub(crate) fn on_the_wire(&self) -> Vec<u8> {
        let body = serde_json::to_string(&self.body).unwrap_or_default();
        let challenge = match self.status {
            StatusCode::UNAUTHORIZED => format!("WWW-Authenticate: {CHALLENGE}\r\n"),
            _ => String::new(),
        };
        let (status, length) = (self.status, body.len());
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             {challenge}Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// How a client may show its token.
const CHALLENGE: &str = "Basic realm=\"outflow\", charset=\"UTF-8\"";

impl From<ControlError> for HttpError {
    fn from(error: ControlError) -> Self {
        let status = match error {
            ControlError::UnknownStream(_)
            | ControlError::UnknownReceiver(_)
            | ControlError::UnknownSession
            | ControlError::NoMember(_)
            | ControlError::UnknownElement(..)
            | ControlError::UnknownSink(..) => StatusCode::NOT_FOUND,
            ControlError::NotPushed(..)
            | ControlError::Busy(..)
            | ControlError::NameTaken(_)
            | ControlError::AddressTaken(..) => StatusCode::CONFLICT,
            ControlError::NoSource(_) | ControlError::Limit { .. } | ControlError::ShuttingDown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            ControlError::TooOften(_) => StatusCode::TOO_MANY_REQUESTS,
            ControlError::Unsupported(_) | ControlError::Configuration(_) | ControlError::UnknownLink(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ControlError::System { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        HttpError::new(status, error.to_string())
    }
}

impl From<Denied> for HttpError {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::Missing | Denied::Wrong => StatusCode::UNAUTHORIZED,
            Denied::NotLocal => StatusCode::FORBIDDEN,
        };
        HttpError::new(status, denied.to_string())
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let challenged = self.status == StatusCode::UNAUTHORIZED;
        let mut response = (self.status, Json(self.body)).into_response();
        if challenged {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static(CHALLENGE));
        }
        response
    }
}

/// A stream's name as it stands in a path, percent-decoded; `None` if it cannot be one.
pub(super) fn stream_name(path: &str) -> Option<String> {
    let name = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    outflow_config::check_name(&name).is_ok().then(|| name.into_owned())
}
