//! The relay as a whole.

use axum::Json;
use axum::extract::State;
use outflow_control::Control;
use serde::Serialize;
use utoipa::ToSchema;

use crate::view::Overview;
use crate::{ErrorBody, HttpError};

/// What a reload changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reloaded {
    /// A line for each change, and for each that needs a restart.
    changes: Vec<String>,
}

/// The whole relay, each stream with its receivers that fare worst
#[utoipa::path(get, path = "/api/v1/relay", tag = "relay", responses((status = OK, body = Overview)))]
pub(super) async fn show(State(control): State<Control>) -> Json<Overview> {
    Json(Overview::of(&control))
}

/// Loads the configuration file again; unchanged streams are not disturbed
#[utoipa::path(post, path = "/api/v1/reload", tag = "relay", responses(
    (status = OK, body = Reloaded),
    (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "The file is not valid; nothing changed")
))]
pub(super) async fn reload(State(control): State<Control>) -> Result<Json<Reloaded>, HttpError> {
    Ok(Json(Reloaded { changes: control.reload().await? }))
}
