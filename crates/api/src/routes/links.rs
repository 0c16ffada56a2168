//! Links.

use axum::Json;
use axum::extract::State;
use outflow_control::Control;
use outflow_engine::message::LinkState;

/// The links that receivers are behind
#[utoipa::path(
    get, path = "/api/v1/links", tag = "links",
    responses((status = OK, body = [LinkState]))
)]
pub(super) async fn list(State(control): State<Control>) -> Json<Vec<LinkState>> {
    Json(control.state().links.clone())
}
