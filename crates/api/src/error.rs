//! Errors as HTTP clients see them: a status, and JSON that says what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use outflow_config::Invalid;
use outflow_door::Refused;
use outflow_engine::message::ControlError;
use serde::Serialize;
use utoipa::ToSchema;

/// A request that was not granted.
#[derive(Debug)]
pub struct HttpError {
    status: StatusCode,
    body: ErrorBody,
    retry_after_s: Option<u64>,
}

/// What an error's body holds.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorBody {
    /// What went wrong, and what to do.
    pub error: String,
}

impl HttpError {
    /// One with this status; the text says what went wrong, and what to do.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        HttpError { status, body: ErrorBody { error: error.into() }, retry_after_s: None }
    }

    /// There is nothing at that path: what would have to be a stream's name is none.
    pub fn no_name(path: &str, why: &Invalid) -> Self {
        HttpError::new(StatusCode::NOT_FOUND, format!("there is nothing at /{path}: {why}"))
    }

    /// There is nothing at that path.
    pub fn nothing_at(path: &str) -> Self {
        let text = format!("there is nothing at /{path}: streams are at /NAME.ts, the status page is at /");
        HttpError::new(StatusCode::NOT_FOUND, text)
    }

    /// A value that means nothing.
    pub fn impossible(invalid: outflow_config::Invalid) -> Self {
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, invalid.to_string())
    }

    /// Not now.
    pub fn unavailable(why: &str) -> Self {
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// The system refused something.
    pub fn system(doing: &str, error: &std::io::Error) -> Self {
        ControlError::system(doing, error).into()
    }

    /// The whole response, for connections that are not hyper's.
    pub fn on_the_wire(&self) -> Vec<u8> {
        let body = serde_json::to_string(&self.body).unwrap_or_default();
        let more = match (self.status, self.retry_after_s) {
            (StatusCode::UNAUTHORIZED, _) => format!("WWW-Authenticate: {CHALLENGE}\r\n"),
            (_, Some(wait_s)) => format!("Retry-After: {wait_s}\r\n"),
            _ => String::new(),
        };
        let (status, length) = (self.status, body.len());
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             {more}Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// How a client may show its token.
const CHALLENGE: &str = "Basic realm=\"outflow\", charset=\"UTF-8\"";

impl From<ControlError> for HttpError {
    fn from(error: ControlError) -> Self {
        let status = match error {
            ControlError::Refused(refused) => return refused.into(),
            ControlError::UnknownStream(_)
            | ControlError::StreamGone
            | ControlError::UnknownReceiver(_)
            | ControlError::UnknownSession
            | ControlError::NoMember(_)
            | ControlError::UnknownElement(..)
            | ControlError::UnknownSink(..) => StatusCode::NOT_FOUND,
            ControlError::NotPushed(..)
            | ControlError::Busy(..)
            | ControlError::NameTaken(_)
            | ControlError::NotUpgraded(_)
            | ControlError::AddressTaken(..) => StatusCode::CONFLICT,
            ControlError::NoSource(_)
            | ControlError::Limit { .. }
            | ControlError::NoRoom(_)
            | ControlError::HandedOver
            | ControlError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            ControlError::TooOften(_) => StatusCode::TOO_MANY_REQUESTS,
            ControlError::Unsupported(_) | ControlError::Configuration(_) | ControlError::UnknownLink(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ControlError::System { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        HttpError::new(status, error.to_string())
    }
}

impl From<Refused> for HttpError {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::BadName(_) => StatusCode::NOT_FOUND,
            Refused::BadSelection(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refused::TokenMissing | Refused::TokenWrong | Refused::Revoked => StatusCode::UNAUTHORIZED,
            Refused::NotLocal | Refused::NotGiven { .. } => StatusCode::FORBIDDEN,
            Refused::TooOften { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refused::Full { .. } | Refused::Draining | Refused::Overloaded | Refused::NotAnswered => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        let retry_after_s = refused.retry_after_s();
        HttpError { retry_after_s, ..HttpError::new(status, refused.to_string()) }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        if let Some(wait_s) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, wait_s.into());
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_being_removed_is_not_there() {
        let gone = HttpError::from(ControlError::StreamGone);
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
        assert!(!gone.body.error.contains("shutting down"), "{}", gone.body.error);
    }
}
