//! Looking at the relay and changing it takes the right to control, and no page of another site.

use std::net::SocketAddr;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use outflow_control::Control;
use outflow_door::Right;

use crate::{HttpError, Peer, credentials};

/// Lets a request through if it comes with the right to control.
pub(crate) async fn control_only(
    State(control): State<Control>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    may_control(&control, peer, request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

/// Whether a request comes with the right to control.
pub fn may_control(
    control: &Control,
    peer: SocketAddr,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), HttpError> {
    same_origin(headers, uri)?;
    if control.config().access.control.is_empty() {
        named_locally(headers, uri)?;
    }
    credentials::check(control, Right::Control, peer, (headers, uri.query()))
}

/// A browser that is at the relay's page, or is local, must not lend its rights to other pages
/// (cross-site request forgery).
fn same_origin(headers: &HeaderMap, uri: &Uri) -> Result<(), HttpError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    if origin.is_some() && origin == host(headers, uri) {
        return Ok(());
    }
    let text = "pages of other sites may not control this relay: use its own page, or a program";
    Err(HttpError::new(StatusCode::FORBIDDEN, text))
}

/// Where being local is all that is asked, the relay must be called by a local name: else the
/// page of a site whose name is made to point here could ask as well (DNS rebinding).
fn named_locally(headers: &HeaderMap, uri: &Uri) -> Result<(), HttpError> {
    let Some(host) = host(headers, uri) else { return Ok(()) };
    let local = host.parse::<Authority>().is_ok_and(|authority| {
        let name = authority.host();
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
        name.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
    });
    if local {
        return Ok(());
    }
    let text = "without a token, control answers to localhost or an IP address only: \
                use one of these, or list a token in [access] control";
    Err(HttpError::new(StatusCode::FORBIDDEN, text))
}

/// What the client calls this host, port included.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let named = uri.authority().map(Authority::as_str);
    named.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), header::HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let uri = Uri::from_static("/api/v1/reload");
        let from =
            |origin| same_origin(&headers(&[(header::HOST, "relay:8080"), (header::ORIGIN, origin)]), &uri);
        assert!(from("http://relay:8080").is_ok() && from("https://relay:8080").is_ok());
        for other in ["http://evil.example", "http://relay", "null", ""] {
            assert!(from(other).is_err(), "{other}");
        }
        assert!(
            same_origin(&headers(&[(header::HOST, "relay:8080")]), &uri).is_ok(),
            "programs say no origin"
        );
    }

    #[test]
    fn names_that_may_be_made_to_point_here_are_refused() {
        let uri = Uri::from_static("/");
        let called = |host| named_locally(&headers(&[(header::HOST, host)]), &uri);
        for local in ["localhost:8080", "LOCALHOST", "127.0.0.1:8080", "[::1]:8080", "192.168.0.5"] {
            assert!(called(local).is_ok(), "{local}");
        }
        for other in ["evil.example:8080", "localhost.evil.example", "", "[::1", "a b"] {
            assert!(called(other).is_err(), "{other}");
        }
    }
}
