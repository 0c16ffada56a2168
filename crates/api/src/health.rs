//! Whether the relay lives and is ready, for the program that supervises it. Open to every client: it tells
//! nothing else.

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
    /// Always "ok".
    #[schema(example = "ok")]
    status: &'static str,
}

pub(super) fn router() -> OpenApiRouter<Http> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

/// Whether the relay answers
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = OK, body = Health)))]
async fn alive() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether streams, sources and sinks are set up
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = OK, body = Health),
    (status = SERVICE_UNAVAILABLE, body = ErrorBody)
))]
async fn ready(State(control): State<Control>) -> Result<Json<Health>, HttpError> {
    // The first snapshot is made once everything that is configured has been started.
    if control.state().version.is_empty() {
        return Err(HttpError::unavailable("the relay is starting: ask again in a moment"));
    }
    Ok(Json(Health { status: "ok" }))
}
