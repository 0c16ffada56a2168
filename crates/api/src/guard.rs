//! Looking at the relay and changing it takes the right to control, and no page of another site.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use outflow_control::Control;
use outflow_door::local::{User, own_user};
use outflow_door::{Pass, Right};

use crate::{HttpError, Peer, credentials};

/// Lets a request through if it comes with the right to control, with what gives that: an answer may go on for as long
/// as that holds.
pub(crate) async fn control_only(
    State(control): State<Control>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let pass = may_control(&control, peer, request.headers(), request.uri())?;
    request.extensions_mut().insert(pass);
    Ok(next.run(request).await)
}

/// What a request comes with the right to control by.
pub fn may_control(control: &Control, peer: Peer, headers: &HeaderMap, uri: &Uri) -> Result<Pass, HttpError> {
    same_origin(headers, uri)?;
    let is_open = control.door().is_open(Right::Control);
    if is_open {
        named_locally(headers, uri)?;
        directly(headers)?;
    }
    let pass = credentials::check(control, Right::Control, peer.address, (headers, uri.query()))?;
    if is_open {
        of_this_user(peer.user, own_user())?;
    }
    Ok(pass)
}

/// Lets a request through unless a page of another site has made a browser send it.
pub async fn own_pages_only(request: Request, next: Next) -> Result<Response, HttpError> {
    same_origin(request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

/// A browser that is at the relay's page, or is local, must not lend its rights to other pages
/// (cross-site request forgery): it says where a request comes from by Origin (RFC 6454) or Fetch Metadata.
fn same_origin(headers: &HeaderMap, uri: &Uri) -> Result<(), HttpError> {
    let origin = headers
        .get(header::ORIGIN)
        .map(|origin| origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host));
    let is_other = origin.is_some_and(|origin| origin.is_none() || origin != host(headers, uri));
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if !is_other && !matches!(site, Some(b"cross-site" | b"same-site")) {
        return Ok(());
    }
    let text =
        "pages of other sites may neither control this relay nor publish: use its own page, or a program";
    Err(HttpError::new(StatusCode::FORBIDDEN, text))
}

/// Where being local is all that is asked, what a proxy on this machine hands on does not count: it comes from
/// elsewhere.
fn directly(headers: &HeaderMap) -> Result<(), HttpError> {
    if !PROXIES_ADD.iter().any(|name| headers.contains_key(*name)) {
        return Ok(());
    }
    let text = "without a token, control does not answer through a proxy: list a token in [access] control";
    Err(HttpError::new(StatusCode::FORBIDDEN, text))
}

/// What proxies add to requests (RFC 7239; RFC 9110, section 7.6.3).
const PROXIES_ADD: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Where being local is all that is asked, other users of this machine do not control the relay.
fn of_this_user(user: Option<User>, own: User) -> Result<(), HttpError> {
    if user.is_some_and(|user| user == own || user == ROOT) {
        return Ok(());
    }
    let text = "without a token, control answers to root and to the user that the relay runs as only: \
                list a token in [access] control";
    Err(HttpError::new(StatusCode::FORBIDDEN, text))
}

const ROOT: User = 0;

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
        let site = |site| {
            let name = header::HeaderName::from_static("sec-fetch-site");
            same_origin(&headers(&[(header::HOST, "relay:8080"), (name, site)]), &uri)
        };
        assert!(site("same-origin").is_ok() && site("none").is_ok());
        assert!(site("cross-site").is_err() && site("same-site").is_err());
    }

    #[test]
    fn what_a_proxy_hands_on_is_not_local() {
        assert!(directly(&headers(&[(header::HOST, "localhost")])).is_ok());
        for name in PROXIES_ADD {
            let name = header::HeaderName::from_static(name);
            assert!(directly(&headers(&[(name.clone(), "x")])).is_err(), "{name}");
        }
    }

    #[test]
    fn other_users_of_this_machine_need_a_token() {
        assert!(of_this_user(Some(1000), 1000).is_ok() && of_this_user(Some(0), 1000).is_ok());
        assert!(of_this_user(Some(1001), 1000).is_err() && of_this_user(None, 1000).is_err());
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
