//! The document that describes the API.

use axum::Json;
use axum::routing::get;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, SecurityRequirement};
use utoipa::{Modify, OpenApi as _};

/// Where the document is.
pub(super) const PATH: &str = "/api/v1/openapi.json";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Outflow",
        description = "A relay for live media: one stream in, thousands of receivers out.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "media", description = "Streams themselves, in and out"),
        (name = "streams", description = "What comes in, and how it fares"),
        (name = "services", description = "What happens to streams on their way"),
        (name = "receivers", description = "The receivers, and how they fare"),
        (name = "sinks", description = "Receivers that are sent to without asking"),
        (name = "links", description = "Bottlenecks that receivers are behind"),
        (name = "relay", description = "The relay as a whole"),
        (name = "health", description = "For programs that supervise the relay")
    ),
    modifiers(&Tokens)
)]
struct Description;

/// The three ways to give a token.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let query = ApiKeyValue::with_description("token", "Seen in logs: prefer a header");
        for (name, scheme) in [
            ("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
            ("password", SecurityScheme::Http(Http::new(HttpAuthScheme::Basic))),
            ("query", SecurityScheme::ApiKey(ApiKey::Query(query))),
        ] {
            components.add_security_scheme(name, scheme);
        }
        let ways = ["bearer", "password", "query"];
        document.security = Some(ways.map(|way| SecurityRequirement::new(way, [""; 0])).to_vec());
    }
}

/// What is described besides the routes that describe themselves.
pub(super) fn base() -> OpenApi {
    let mut document = Description::openapi();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document
}

/// Serves the finished document.
pub(super) fn route<S: Clone + Send + Sync + 'static>(document: OpenApi) -> axum::Router<S> {
    let document = std::sync::Arc::new(document);
    axum::Router::new().route(PATH, get(move || async move { Json(OpenApi::clone(&document)) }))
}
