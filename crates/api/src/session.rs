//! `/api/v1/sessions/TOKEN`: what a player of `/NAME.ts` gets, asked and changed by itself.

use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use outflow_control::{Control, Playing, SessionToken, is_session_of};
use outflow_door::Right;
use outflow_engine::message::{ControlError, SessionState};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::API_BODY_BYTES;
use crate::{Body, ErrorBody, Http, HttpError, Peer, credentials};

/// The header of an answer that names the player's own session.
pub const HEADER: &str = "Outflow-Session";

/// What a player can change of its session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionRequest {
    /// The quality that it gets from now on, 1 is the best.
    #[schema(example = 3)]
    level: u8,
}

/// Names a player's session; the path where it can be asked.
///
/// # Errors
/// The system has no randomness.
pub fn open(control: &Control, playing: &Playing) -> Result<String, ControlError> {
    Ok(format!("/api/v1/sessions/{}", control.open_session(playing.id())?))
}

/// What players may ask. They need no right to control.
pub(super) fn router() -> OpenApiRouter<Http> {
    OpenApiRouter::new().routes(routes!(show, change)).layer(DefaultBodyLimit::max(API_BODY_BYTES))
}

/// What a player's own session gets
///
/// To be asked as the stream itself is: with a token for playing, where that needs one.
#[utoipa::path(
    get, path = "/api/v1/sessions/{token}", tag = "media",
    params(("token" = String, Path, description = "From Outflow-Session in the answer to GET /NAME.ts")),
    responses(
        (status = OK, body = SessionState),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody, description = "The token gives something else"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = TOO_MANY_REQUESTS, body = ErrorBody)
    )
)]
pub(super) async fn show(
    State(control): State<Control>,
    Extension(peer): Extension<Peer>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Json<SessionState>, HttpError> {
    ask(&control, peer, (&headers, query.as_deref()), &token, None).await
}

/// Gives a player's own session another level
///
/// Less from the next picture on, more from where it can be decoded. The same level again changes nothing. `level` of the answer is what the session gets.
#[utoipa::path(
    patch, path = "/api/v1/sessions/{token}", tag = "media",
    params(("token" = String, Path, description = "From Outflow-Session in the answer to GET /NAME.ts")),
    request_body = SessionRequest,
    responses(
        (status = OK, body = SessionState),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody, description = "The token gives something else"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "There is no such level"),
        (status = TOO_MANY_REQUESTS, body = ErrorBody)
    )
)]
pub(super) async fn change(
    State(control): State<Control>,
    Extension(peer): Extension<Peer>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    Body(wish): Body<SessionRequest>,
) -> Result<Json<SessionState>, HttpError> {
    ask(&control, peer, (&headers, query.as_deref()), &token, Some(wish.level)).await
}

async fn ask(
    control: &Control,
    Peer { address: peer, .. }: Peer,
    (headers, query): (&HeaderMap, Option<&str>),
    token: &str,
    level: Option<u8>,
) -> Result<Json<SessionState>, HttpError> {
    let session = token.parse();
    let shown = credentials::shown(headers, query);
    // What the hook has let in is known by what it showed then.
    let is_own = |session: &SessionToken| is_session_of(control, *session, peer.ip(), shown.as_deref());
    if !session.as_ref().is_ok_and(is_own) {
        credentials::check(control, Right::Play, peer, (headers, query))?;
    }
    Ok(Json(control.ask_session(session?, level).await?))
}
