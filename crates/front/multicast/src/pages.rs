//! Multicast.

use std::net::IpAddr;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::{Extension, Json};
use outflow_api::guard::may_control;
use outflow_api::limits::API_BODY_BYTES;
use outflow_api::{Body, ErrorBody, Http, HttpError, Peer};
use outflow_control::Control;
use outflow_routing::Level;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::handle::{Attached, ReportedLevel};
use crate::state::{MulticastReported, MulticastState};

#[derive(utoipa::OpenApi)]
#[openapi(tags((name = "multicast", description = "Groups that hosts join by IGMP and MLD")))]
struct Description;

/// What needs the right to control.
pub(super) fn guarded() -> OpenApiRouter<Http> {
    OpenApiRouter::with_openapi(<Description as utoipa::OpenApi>::openapi()).routes(routes!(show))
}

/// Which hosts want which groups by IGMP and MLD, and what brings the groups there
#[utoipa::path(
    get, path = "/api/v1/multicast", tag = "multicast",
    responses((status = OK, body = MulticastState), (status = SERVICE_UNAVAILABLE, body = ErrorBody))
)]
pub(super) async fn show(State(control): State<Control>) -> Result<Json<MulticastState>, HttpError> {
    Ok(Json(Attached::of(&control)?.state().await?))
}

/// Which level a host wants of a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelRequest {
    /// The group, which the host has joined.
    #[schema(value_type = String, example = "239.1.1.1")]
    group: IpAddr,
    /// The level, 1 is the best.
    #[schema(example = 3)]
    level: u8,
    /// The host; the caller, if it is not given. For others the right to control is needed. By MLD it is known by its
    /// link-local address.
    #[schema(value_type = Option<String>, example = "10.0.1.5")]
    host: Option<IpAddr>,
}

/// What hosts may ask for themselves: they need no right to control.
pub(super) fn open() -> OpenApiRouter<Http> {
    OpenApiRouter::new().routes(routes!(say_level)).layer(DefaultBodyLimit::max(API_BODY_BYTES))
}

/// Says which level a host wants of a group that it has joined
///
/// For programs that join by ordinary socket options and cannot say it in their reports. It holds as long as the host is a member, or until it says another one. The host needs no token.
#[utoipa::path(
    put, path = "/api/v1/multicast/levels", tag = "multicast",
    request_body = LevelRequest,
    responses(
        (status = OK, body = MulticastReported),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody),
        (status = NOT_FOUND, body = ErrorBody, description = "The host is not known as a member"),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody),
        (status = TOO_MANY_REQUESTS, body = ErrorBody)
    )
)]
pub(super) async fn say_level(
    State(control): State<Control>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    uri: Uri,
    Body(wish): Body<LevelRequest>,
) -> Result<Json<MulticastReported>, HttpError> {
    let own = peer.address.ip().to_canonical();
    let host = wish.host.unwrap_or(own);
    if host != own {
        may_control(&control, peer, &headers, &uri)?;
    }
    let level = Level::try_from(wish.level).map_err(|no_level| {
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{no_level}: say one of these"))
    })?;
    Ok(Json(Attached::of(&control)?.say_level(ReportedLevel { host, group: wish.group, level }).await?))
}
