//! The tree of relays.

use axum::Json;
use axum::extract::State;

use crate::control::Control;
use crate::tree::RelayView;

/// The tree of relays as it can be seen from this one; nothing without `[tree]`
#[utoipa::path(
    get, path = "/api/v1/tree", tag = "tree",
    responses((status = OK, body = [RelayView]))
)]
pub(super) async fn show(State(control): State<Control>) -> Json<Vec<RelayView>> {
    Json(control.survey().await.unwrap_or_default())
}
