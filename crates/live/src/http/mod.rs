//! HTTP: streams in and out as MPEG-TS, the API, metrics and the status page.
//!
//! A connection's first request is read here (`front`). A plain `GET /NAME.ts` leaves HTTP at
//! once: the response head goes out, and the socket itself goes to the worker that owns the stream
//! (`play`). Everything else is hyper's and axum's.

mod credentials;
mod error;
mod front;
mod ingest;
mod play;

use axum::Router;
use axum::routing::get;

use crate::control::Control;
pub(crate) use front::serve;

/// Everything that is served, besides streams on connections of their own.
pub(crate) fn router(control: Control) -> Router {
    let streams = get(play::through_http).put(ingest::publish).post(ingest::publish);
    Router::new().route("/{*stream}", streams).with_state(control)
}
