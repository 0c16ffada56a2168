//! The API: REST with its OpenAPI document, events, metrics and the status page.
//!
//! [`router`] makes all of it, with what fronts have added ([`Pages`]). Requests come through the front that
//! serves HTTP, which says where each comes from ([`Peer`]). What looks at the relay or changes it needs the right
//! to control ([`guard`]).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

pub mod credentials;
mod error;
mod events;
mod extract;
pub mod guard;
mod health;
pub mod limits;
pub mod metrics;
mod openapi;
mod pages;
mod routes;
pub mod session;
mod state;
mod status;
mod stream_pages;
mod view;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Router, middleware};
use outflow_control::Control;
use utoipa_axum::router::OpenApiRouter;

pub use error::{ErrorBody, HttpError};
pub use extract::{Body, Peer, Raw};
pub use pages::{Measure, Page, Pages};
pub use state::Http;
pub use status::asset;
pub use stream_pages::{StreamPage, StreamPages};

/// Everything that is served, besides streams on connections of their own.
pub fn router(control: Control) -> Router {
    let (router, document) = described(&control).split_for_parts();
    router
        .merge(openapi::route(document))
        .merge(status::assets())
        .method_not_allowed_fallback(not_allowed)
        .with_state(Http::new(control))
}

/// The routes that the OpenAPI document describes, and what else needs the right to control.
fn described(control: &Control) -> OpenApiRouter<Http> {
    let guard = middleware::from_fn_with_state(control.clone(), guard::control_only);
    let Page { guarded, open, .. } = control.shared::<Pages>().together();
    let guarded = guarded
        .merge(routes::router())
        .route("/metrics", get(metrics::metrics))
        .route("/", get(status::page));
    let all = OpenApiRouter::with_openapi(openapi::base()).merge(health::router()).merge(session::router());
    all.merge(open).merge(guarded.route_layer(guard))
}

async fn not_allowed(request: Request) -> HttpError {
    let what = format!(
        "{} is not possible at {}: /api/v1/openapi.json describes what is",
        request.method(),
        request.uri().path()
    );
    HttpError::new(StatusCode::METHOD_NOT_ALLOWED, what)
}
