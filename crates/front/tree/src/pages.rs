//! The tree of relays.

use axum::Json;
use axum::extract::State;
use outflow_api::Http;
use outflow_control::Control;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::handle::Attached;
use crate::view::RelayView;

#[derive(utoipa::OpenApi)]
#[openapi(tags((name = "tree", description = "Relays of which one takes streams of another")))]
struct Description;

/// What needs the right to control.
pub(super) fn guarded() -> OpenApiRouter<Http> {
    OpenApiRouter::with_openapi(<Description as utoipa::OpenApi>::openapi()).routes(routes!(show))
}

/// The tree of relays as it can be seen from this one; nothing without `[tree]`
#[utoipa::path(
    get, path = "/api/v1/tree", tag = "tree",
    responses((status = OK, body = [RelayView]))
)]
async fn show(State(control): State<Control>) -> Json<Vec<RelayView>> {
    Json(Attached::survey(&control).await)
}
