//! Pages of other sites may play what their tokens let them: WHEP is made for players that are served from elsewhere.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

/// What an answer says to a browser that has a page of another site (Fetch, section 3.2).
const ALWAYS: [(HeaderName, HeaderValue); 2] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Location, ETag, Link, Outflow-Session, Accept-Patch"),
    ),
];

/// And what to one that asks first.
const BEFORE: [(HeaderName, HeaderValue); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PATCH, DELETE, OPTIONS")),
    (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Authorization, Content-Type, If-Match")),
    (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400")),
];

/// Answers what browsers ask first, which needs no token.
pub(crate) async fn first() -> (StatusCode, HeaderMap) {
    (StatusCode::NO_CONTENT, HeaderMap::from_iter(BEFORE))
}

/// Lets pages of other sites read all answers.
pub(crate) async fn any(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().extend(ALWAYS.map(|(name, value)| (Some(name), value)));
    response
}
