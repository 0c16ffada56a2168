//! Whether the relay goes on and is ready, by its heartbeats, for the program that supervises it. Open to every
//! client: it tells nothing else.

use axum::Json;
use axum::extract::State;
use outflow_control::Control;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{ErrorBody, Http, HttpError};

/// What a supervisor wants to know.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// "ok"; what is not well is told by the error.
    #[schema(example = "ok")]
    status: &'static str,
}

pub(super) fn router() -> OpenApiRouter<Http> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

/// Whether the relay goes on: its workers and its control plane have been heard of lately
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses(
    (status = OK, body = Health),
    (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "A thread hangs; which one it is")
))]
async fn alive(State(control): State<Control>) -> Result<Json<Health>, HttpError> {
    control.health().check().map_err(|late| HttpError::unavailable(&late))?;
    Ok(Json(Health { status: "ok" }))
}

/// Whether streams, sources and sinks are set up, the relay goes on, and it was not told to end
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = OK, body = Health),
    (status = SERVICE_UNAVAILABLE, body = ErrorBody)
))]
async fn ready(State(control): State<Control>) -> Result<Json<Health>, HttpError> {
    // The first snapshot is made once everything that is configured has been started.
    if control.state().version.is_empty() {
        return Err(HttpError::unavailable("the relay is starting: ask again in a moment"));
    }
    if let Some(drain) = control.health().ending().drain(&control.state()) {
        let why = format!("the relay ends: {} receivers are left", drain.receivers);
        return Err(HttpError::unavailable(&why));
    }
    alive(State(control)).await
}
