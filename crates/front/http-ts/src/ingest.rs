//! `PUT /NAME.ts`: a stream published as MPEG-TS over HTTP.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use futures_util::StreamExt;
use outflow_api::{ErrorBody, HttpError, Peer, credentials};
use outflow_control::{Control, PublishOptions, Push};
use outflow_door::{Request, Right};
use outflow_engine::message::CloseReason;
use outflow_media::Format;
use outflow_ts::TsFramer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::names::PLAIN;

/// What was published, told when it is over.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Published {
    /// Transport stream bytes that were taken.
    bytes: u64,
    /// Bytes that were no transport stream packets and were skipped.
    skipped: u64,
}

/// Publishes a stream: the request's body, until it ends
#[utoipa::path(
    put, path = "/{stream}.ts", tag = "media",
    params(("stream" = String, Path, description = "Name of a stream whose source is \"push\"")),
    request_body(content = Vec<u8>, content_type = "video/mp2t", description = "MPEG-TS, chunked or not"),
    responses(
        (status = OK, body = Published),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody,
            description = "The token gives something else, or is no longer good"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = REQUEST_TIMEOUT, body = ErrorBody, description = "No media came for `publish_timeout`"),
        (status = CONFLICT, body = ErrorBody,
            description = "It is published already, takes no publisher, or another one has taken it over"),
        (status = GONE, body = ErrorBody, description = "It was removed, or has another source now")
    )
)]
pub(super) async fn publish(
    State(control): State<Control>,
    Extension(Peer { address: peer, .. }): Extension<Peer>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Published>, HttpError> {
    let name = path.strip_suffix(".ts").unwrap_or(&path);
    let request = credentials::request(peer, &headers, (&path, name), query.as_deref())?;
    let request = Request { protocol: PLAIN, ..request };
    let grant = control.door().enter(Right::Publish, &request).await?;
    let name = request.stream;
    let options = PublishOptions { format: Format::Ts, peer: format!("HTTP from {peer}"), configured: false };
    let mut publisher = control.publish(&grant, options).await?;
    let mut chunks = body.into_data_stream();
    let mut framer = TsFramer::default();
    let mut bytes = 0;
    loop {
        let chunk = tokio::select! {
            chunk = chunks.next() => chunk,
            why = publisher.closed() => return Err(ended(&name, why)),
        };
        let chunk = match chunk {
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => return Err(broken(&error)),
            None => return Ok(Json(Published { bytes, skipped: framer.skipped() })),
        };
        framer.push(chunk);
        while let Some(datagram) = framer.next_datagram() {
            bytes += datagram.len() as u64;
            if publisher.send(0, datagram).await == Push::Closed {
                return Err(ended(&name, publisher.closed().await));
            }
        }
    }
}

fn ended(name: &str, why: CloseReason) -> HttpError {
    let (status, what) = match why {
        CloseReason::TakenOver => {
            (StatusCode::CONFLICT, "has another publisher now, which has taken it over (see takeover)")
        }
        CloseReason::Revoked => (
            StatusCode::FORBIDDEN,
            "is no longer for this publisher: its token has expired, or was taken out",
        ),
        CloseReason::NoMedia => (StatusCode::REQUEST_TIMEOUT, "got no media for publish_timeout"),
        _ => (StatusCode::GONE, "was removed or has another source now"),
    };
    HttpError::new(status, format!("stream '{name}' {what}: publish again if that is wrong"))
}

fn broken(error: &axum::Error) -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, format!("the body ended early: {error}"))
}
