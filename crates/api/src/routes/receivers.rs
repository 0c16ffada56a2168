//! Receivers.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use outflow_control::Control;
use outflow_door::query_value;
use outflow_engine::message::{ControlError, ReceiverState, read_view};
use outflow_packet::Level;
use outflow_relay::Priority;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::{Body, receiver_id};
use crate::{ErrorBody, HttpError};

/// Which receivers are served first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PriorityName {
    /// Before all others.
    High,
    /// What is not said otherwise.
    Normal,
    /// After all others.
    Low,
}

impl From<PriorityName> for Priority {
    fn from(name: PriorityName) -> Self {
        match name {
            PriorityName::High => Priority::High,
            PriorityName::Normal => Priority::Normal,
            PriorityName::Low => Priority::Low,
        }
    }
}

/// What can be changed of a receiver.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiverRequest {
    /// Its class; as it is if left out.
    priority: Option<PriorityName>,
    /// What it sees of images from now on; as it is if left out.
    #[schema(example = "part=640x360+16+0&size=320x180&gray=1")]
    view: Option<String>,
    /// The quality that it gets from now on, 1 is the best; as it is if left out.
    #[schema(example = 3)]
    level: Option<u8>,
}

/// All receivers, or those of one stream
#[utoipa::path(
    get, path = "/api/v1/receivers", tag = "receivers",
    params(("stream" = Option<String>, Query, description = "Only those of this stream")),
    responses((status = OK, body = [ReceiverState]))
)]
pub(super) async fn list(
    State(control): State<Control>,
    RawQuery(query): RawQuery,
) -> Json<Vec<ReceiverState>> {
    let stream = query.as_deref().and_then(|query| query_value(query, "stream"));
    let state = control.state();
    let wanted = match &stream {
        Some(name) => state.stream(name).map_or(&[][..], std::slice::from_ref),
        None => &state.streams,
    };
    Json(wanted.iter().flat_map(|stream| stream.receivers.iter().cloned()).collect())
}

/// A receiver
#[utoipa::path(
    get, path = "/api/v1/receivers/{id}", tag = "receivers",
    params(("id" = u64, Path, description = "Number of the receiver")),
    responses((status = OK, body = ReceiverState), (status = NOT_FOUND, body = ErrorBody))
)]
pub(super) async fn show(
    State(control): State<Control>,
    Path(id): Path<String>,
) -> Result<Json<ReceiverState>, HttpError> {
    let id = receiver_id(&id)?;
    let state = control.state();
    let stream = control.stream_of(id);
    let found = stream.and_then(|stream| state.stream(&stream)?.receivers.get(id));
    found.cloned().map(Json).ok_or_else(|| ControlError::UnknownReceiver(id).into())
}

/// Changes what a receiver gets, and its class; nothing that it is owed gets lost
#[utoipa::path(
    patch, path = "/api/v1/receivers/{id}", tag = "receivers",
    params(("id" = u64, Path, description = "Number of the receiver")),
    request_body = ReceiverRequest,
    responses(
        (status = NO_CONTENT),
        (status = NOT_FOUND, body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "There is no such view or level")
    )
)]
pub(super) async fn change(
    State(control): State<Control>,
    Path(id): Path<String>,
    Body(wish): Body<ReceiverRequest>,
) -> Result<StatusCode, HttpError> {
    let receiver = receiver_id(&id)?;
    if let Some(priority) = wish.priority {
        control.set_priority(receiver, priority.into())?;
    }
    if let Some(view) = wish.view {
        control.set_view(receiver, read_view(&view)?).await?;
    }
    if let Some(level) = wish.level {
        let level = Level::try_from(level).map_err(ControlError::from)?;
        control.set_level(receiver, level).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a receiver; a player may come back
#[utoipa::path(
    delete, path = "/api/v1/receivers/{id}", tag = "receivers",
    params(("id" = u64, Path, description = "Number of the receiver")),
    responses((status = NO_CONTENT), (status = NOT_FOUND, body = ErrorBody))
)]
pub(super) async fn remove(
    State(control): State<Control>,
    Path(id): Path<String>,
) -> Result<StatusCode, HttpError> {
    control.remove_receiver(receiver_id(&id)?)?;
    Ok(StatusCode::NO_CONTENT)
}
