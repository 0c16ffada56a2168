//! `PUT /NAME.ts`: a stream published as MPEG-TS over HTTP.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use futures_util::StreamExt;
use outflow_api::{ErrorBody, HttpError, Peer, credentials};
use outflow_control::{Control, PublishOptions, Push};
use outflow_door::Right;
use outflow_media::Format;
use outflow_ts::TsFramer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::limits::INGEST_SILENCE;

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
        (status = NOT_FOUND, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "It is published already, or takes no publisher")
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
    control.door().enter(Right::Publish, &request)?;
    let name = request.stream;
    let options = PublishOptions { format: Format::Ts, peer: format!("HTTP from {peer}"), configured: false };
    let publisher = control.publish(&name, options).await?;
    let mut chunks = body.into_data_stream();
    let mut framer = TsFramer::default();
    let mut bytes = 0;
    loop {
        let chunk = tokio::select! {
            chunk = tokio::time::timeout(INGEST_SILENCE, chunks.next()) => chunk,
            () = publisher.closed() => return Err(taken_away(&name)),
        };
        let chunk = match chunk {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(error))) => return Err(broken(&error)),
            Ok(None) => return Ok(Json(Published { bytes, skipped: framer.skipped() })),
            Err(_) => return Err(silent()),
        };
        framer.push(chunk);
        while let Some(datagram) = framer.next_datagram() {
            bytes += datagram.len() as u64;
            if publisher.send(0, datagram).await == Push::Closed {
                return Err(taken_away(&name));
            }
        }
    }
}

fn taken_away(name: &str) -> HttpError {
    let text =
        format!("stream '{name}' was removed or has another source now: publish again if that is wrong");
    HttpError::new(StatusCode::GONE, text)
}

fn broken(error: &axum::Error) -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, format!("the body ended early: {error}"))
}

fn silent() -> HttpError {
    let text =
        format!("nothing came for {} s: publish again when there is something", INGEST_SILENCE.as_secs());
    HttpError::new(StatusCode::REQUEST_TIMEOUT, text)
}
