//! What can be seen and changed, one file a subject. Each handler describes itself;
//! [`router`] makes the routes and the OpenAPI document from the same list.

mod links;
mod receivers;
mod relay;
mod services;
mod sinks;
mod streams;
mod tokens;

use axum::extract::DefaultBodyLimit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::limits::API_BODY_BYTES;
use crate::{Http, events};

/// Everything that needs the right to control.
pub(super) fn router() -> OpenApiRouter<Http> {
    OpenApiRouter::new()
        .routes(routes!(relay::show))
        .routes(routes!(relay::reload))
        .routes(routes!(relay::stop))
        .routes(routes!(relay::upgrade))
        .routes(routes!(events::events))
        .routes(routes!(streams::list))
        .routes(routes!(streams::show, streams::change))
        .routes(routes!(streams::describe))
        .routes(routes!(services::replace))
        .routes(routes!(services::change))
        .routes(routes!(services::rules))
        .routes(routes!(sinks::add))
        .routes(routes!(sinks::remove))
        .routes(routes!(links::list))
        .routes(routes!(tokens::list))
        .routes(routes!(receivers::list))
        .routes(routes!(receivers::show, receivers::change, receivers::remove))
        .layer(DefaultBodyLimit::max(API_BODY_BYTES))
}
