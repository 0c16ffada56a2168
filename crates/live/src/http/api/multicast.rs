//! Multicast.

use axum::Json;
use axum::extract::State;

use super::super::error::{ErrorBody, HttpError};
use crate::control::{Control, MulticastState};

/// Who wants which groups by IGMP, and who brings them there
#[utoipa::path(
    get, path = "/api/v1/multicast", tag = "multicast",
    responses((status = OK, body = MulticastState), (status = SERVICE_UNAVAILABLE, body = ErrorBody))
)]
pub(super) async fn show(State(control): State<Control>) -> Result<Json<MulticastState>, HttpError> {
    Ok(Json(control.multicast().await?))
}
