//! The relay as a whole.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outflow_config::parse_duration;
use outflow_control::{Changed, Control, Drain, Upgraded, hand_over};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::OptionalBody;
use crate::view::Overview;
use crate::{ErrorBody, HttpError};

/// How the file is to be loaded.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadRequest {
    /// Take it even if it removes every stream, or most of them.
    #[serde(default)]
    allow_empty: bool,
}

/// What a reload changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reloaded {
    /// A line for each change, and for each that needs a restart.
    changes: Vec<String>,
}

/// What a reload changed, and what it could not.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PartlyReloaded {
    /// What went wrong, and what to do.
    error: String,
    /// A line for each change, and for each that needs a restart.
    changes: Vec<String>,
    /// A line for each thing that could not be made. It is as it was before, and is tried again.
    failed: Vec<String>,
}

/// How the relay is to end.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopRequest {
    /// How long it waits for its receivers to leave: "30 s". Not at all, if this is not given.
    #[serde(default)]
    drain: Option<String>,
}

/// How the relay goes on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GoesOn {
    /// The version that goes on.
    version: String,
    /// Milliseconds in which nothing was sent.
    gap_ms: f64,
}

/// The whole relay, each stream with its receivers that fare worst
#[utoipa::path(get, path = "/api/v1/relay", tag = "relay", responses((status = OK, body = Overview)))]
pub(super) async fn show(State(control): State<Control>) -> Json<Overview> {
    Json(Overview::of(&control))
}

/// Loads the configuration file again; unchanged streams are not disturbed
///
/// Each stream and each sink is made as the file says, or stays as it was. A file that is empty, or that removes most
/// streams, is refused unless the request says that it is meant.
#[utoipa::path(
    post, path = "/api/v1/reload", tag = "relay", request_body = Option<ReloadRequest>,
    responses(
        (status = OK, body = Reloaded),
        (
            status = CONFLICT, body = PartlyReloaded,
            description = "Some of it could not be made: that is as it was, and is tried again"
        ),
        (
            status = UNPROCESSABLE_ENTITY, body = ErrorBody,
            description = "The file is not valid, not whole, or removes too much; nothing changed"
        )
    )
)]
pub(super) async fn reload(
    State(control): State<Control>,
    OptionalBody(wish): OptionalBody<ReloadRequest>,
) -> Result<Response, HttpError> {
    let Changed { lines: changes, failed, .. } = control.reload(wish.allow_empty).await?;
    if failed.is_empty() {
        return Ok(Json(Reloaded { changes }).into_response());
    }
    let error = format!(
        "{} of what the file says could not be made, is as it was, and is tried again: see 'failed'",
        failed.len()
    );
    Ok((StatusCode::CONFLICT, Json(PartlyReloaded { error, changes, failed })).into_response())
}

/// Ends the relay, once its receivers have left or their time is over
///
/// From now on receivers and publishers are refused, and `/readyz` says so. Those that are there go on. Said again, the
/// sooner end holds; it cannot be taken back.
#[utoipa::path(
    post, path = "/api/v1/stop", tag = "relay", request_body = Option<StopRequest>,
    responses(
        (status = ACCEPTED, body = Drain),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "No length of time; nothing changed")
    )
)]
pub(super) async fn stop(
    State(control): State<Control>,
    OptionalBody(wish): OptionalBody<StopRequest>,
) -> Result<(StatusCode, Json<Drain>), HttpError> {
    let drain = wish.drain.map(|text| parse_duration(&text)).transpose().map_err(HttpError::impossible)?;
    let ending = control.health().ending();
    ending.begin(drain.unwrap_or_default());
    let begun = ending.drain(&control.state());
    let begun = begun.ok_or_else(|| HttpError::unavailable("the relay does not end: ask again"))?;
    Ok((StatusCode::ACCEPTED, Json(begun)))
}

/// Has the relay go on as the program that is in its place now
///
/// A new process of it takes over receivers, publishers and sockets. If that cannot be, nothing has changed. The answer
/// is the last of the process before.
#[utoipa::path(
    post, path = "/api/v1/upgrade", tag = "relay",
    responses(
        (status = OK, body = GoesOn),
        (status = CONFLICT, body = ErrorBody, description = "It goes on as before, and this is why"),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "Another upgrade came first")
    )
)]
pub(super) async fn upgrade(State(control): State<Control>) -> Result<Json<GoesOn>, HttpError> {
    // A client that waits no longer does not end it half way.
    let upgrading = tokio::spawn(async move { hand_over(&control).await }).await;
    let Upgraded { version, gap } =
        upgrading.map_err(|_| HttpError::unavailable("the upgrade failed: see the log"))??;
    Ok(Json(GoesOn { version, gap_ms: gap.as_secs_f64() * 1000.0 }))
}
