//! Parts of requests, with errors that say what to do.

use std::net::SocketAddr;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use outflow_door::local::User;

use crate::HttpError;
use crate::limits::{API_BODY_BYTES, REQUEST_TIMEOUT};

/// The other end of a connection, for handlers.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Where it is.
    pub address: SocketAddr,
    /// Which user it belongs to, if it is on this machine.
    pub user: Option<User>,
}

/// A JSON body. No other content type is asked for: what counts is what the body says.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let body = tokio::time::timeout(REQUEST_TIMEOUT, Bytes::from_request(request, state)).await;
        let refuse = |status, what: String| Err(HttpError::new(status, what));
        let bytes = match body {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                let what = format!("the body is larger than {API_BODY_BYTES} bytes: send less");
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, what);
            }
            Ok(Err(rejection)) => return refuse(StatusCode::BAD_REQUEST, rejection.body_text()),
            Err(_) => {
                return refuse(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body did not come in time: send it at once".to_owned(),
                );
            }
        };
        match Json::from_bytes(&bytes) {
            Ok(Json(value)) => Ok(Body(value)),
            Err(rejection) => {
                let what =
                    format!("{}: see /api/v1/openapi.json for what is possible", rejection.body_text());
                refuse(StatusCode::UNPROCESSABLE_ENTITY, what)
            }
        }
    }
}

/// The number of a receiver, as it stands in a path.
pub(crate) fn receiver_id(text: &str) -> Result<u64, HttpError> {
    let what = || format!("'{text}' is no number of a receiver: /api/v1/receivers lists them");
    text.parse().map_err(|_| HttpError::new(StatusCode::BAD_REQUEST, what()))
}
