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
        read(&whole(request, state).await?).map(Body)
    }
}

/// A body as it came. What it is says its content type.
pub struct Raw(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        whole(request, state).await.map(Raw)
    }
}

/// A JSON body that may be left out: then it is what there is without one.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &S) -> Result<Self, HttpError> {
        let bytes = whole(request, state).await?;
        if bytes.is_empty() { Ok(OptionalBody(T::default())) } else { read(&bytes).map(OptionalBody) }
    }
}

/// What a request brings, all of it.
async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, HttpError> {
    let body = tokio::time::timeout(REQUEST_TIMEOUT, Bytes::from_request(request, state)).await;
    let refuse = |status, what: String| Err(HttpError::new(status, what));
    match body {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            let what = format!("the body is larger than {API_BODY_BYTES} bytes: send less");
            refuse(StatusCode::PAYLOAD_TOO_LARGE, what)
        }
        Ok(Err(rejection)) => refuse(StatusCode::BAD_REQUEST, rejection.body_text()),
        Err(_) => {
            let what = "the body did not come in time: send it at once".to_owned();
            refuse(StatusCode::REQUEST_TIMEOUT, what)
        }
    }
}

fn read<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, HttpError> {
    Json::from_bytes(bytes).map(|Json(value)| value).map_err(|rejection| {
        let what = format!("{}: see /api/v1/openapi.json for what is possible", rejection.body_text());
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, what)
    })
}

/// The number of a receiver, as it stands in a path.
pub(crate) fn receiver_id(text: &str) -> Result<u64, HttpError> {
    let what = || format!("'{text}' is no number of a receiver: /api/v1/receivers lists them");
    text.parse().map_err(|_| HttpError::new(StatusCode::BAD_REQUEST, what()))
}
