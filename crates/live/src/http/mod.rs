//! HTTP: streams in and out as MPEG-TS, the API, metrics and the status page.
//!
//! A connection's first request is read here (`front`). A plain `GET /NAME.ts` leaves HTTP at
//! once: the response head goes out, and the socket itself goes to the worker that owns the stream
//! (`play`). Everything else is hyper's and axum's: publishers (`ingest`), what players ask of their own
//! `session`, and behind the right to control (`guard`) the API (`api`), its events, metrics and the
//! status page.

mod api;
mod credentials;
mod error;
mod events;
mod extract;
mod front;
mod guard;
mod health;
mod ingest;
mod metrics;
mod openapi;
mod play;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use axum::extract::{FromRef, Request};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;

use crate::control::Control;
use error::HttpError;
use events::Events;
pub(crate) use front::serve;
pub use front::{FirstRequest, first_request};
use view::Overview;

/// What handlers share.
#[derive(Debug, Clone)]
struct Http {
    control: Control,
    events: Arc<Events>,
}

impl Http {
    fn overview(&self) -> Overview {
        Overview::new(&self.control.state(), self.control.door().counts(), &self.control.config())
    }
}

impl FromRef<Http> for Control {
    fn from_ref(http: &Http) -> Self {
        http.control.clone()
    }
}

/// Everything that is served, besides streams on connections of their own.
pub(crate) fn router(control: Control) -> Router {
    let (router, document) = described(&control).split_for_parts();
    let streams = get(play::through_http).put(ingest::publish).post(ingest::publish);
    let http = Http { control, events: Arc::new(Events::new()) };
    router
        .merge(openapi::route(document))
        .merge(status::assets())
        .route("/{*stream}", streams)
        .method_not_allowed_fallback(not_allowed)
        .with_state(http)
}

/// The routes that the OpenAPI document describes, and what else needs the right to control.
fn described(control: &Control) -> OpenApiRouter<Http> {
    let guard = middleware::from_fn_with_state(control.clone(), guard::control_only);
    let guarded = api::router().route("/metrics", get(metrics::metrics)).route("/", get(status::page));
    let open = OpenApiRouter::with_openapi(openapi::base()).merge(health::router()).merge(session::router());
    let open = open.merge(api::open());
    open.merge(guarded.route_layer(guard))
}

async fn not_allowed(request: Request) -> HttpError {
    let what = format!(
        "{} is not possible at {}: /api/v1/openapi.json describes what is",
        request.method(),
        request.uri().path()
    );
    HttpError::new(StatusCode::METHOD_NOT_ALLOWED, what)
}
