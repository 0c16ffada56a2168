//! Tokens as HTTP clients give them.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use outflow_control::Control;
use outflow_door::{Pass, Refused, Request, Right, query_value};

use crate::HttpError;

/// The token of a header: `Authorization: Bearer TOKEN`, or the password of `Authorization: Basic …` (RFC 7617).
pub fn in_header(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, given) = text.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(given.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(given.trim()).ok()?;
    let pair = String::from_utf8(decoded).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

/// What a request that hyper has read asks for; `name` is the stream's, `path` the whole path, for people. A token in
/// a header goes before `?token=TOKEN`.
pub fn request(
    peer: SocketAddr,
    headers: &HeaderMap,
    (path, name): (&str, &str),
    query: Option<&str>,
) -> Result<Request, HttpError> {
    let request = Request::parse(peer, name, query.unwrap_or_default()).map_err(|refused| match refused {
        Refused::BadName(invalid) => HttpError::no_name(path, &invalid),
        refused => refused.into(),
    })?;
    let token = of_headers(headers).or(request.token);
    Ok(Request { token, ..request })
}

/// What a request that hyper has read comes with a right by.
pub fn check(
    control: &Control,
    right: Right,
    peer: SocketAddr,
    (headers, query): (&HeaderMap, Option<&str>),
) -> Result<Pass, HttpError> {
    let token = shown(headers, query);
    Ok(control.door().pass(right, peer.ip(), token.as_deref())?)
}

/// The token that a request shows.
pub(crate) fn shown(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    of_headers(headers).or_else(|| query.and_then(|query| query_value(query, "token")))
}

fn of_headers(headers: &HeaderMap) -> Option<String> {
    headers.get(AUTHORIZATION).and_then(|value| in_header(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_in_three_ways() {
        let of = |header: &'static str, query| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, header.parse().expect("a value"))]);
            let peer = SocketAddr::from(([10, 0, 0, 1], 5000));
            request(peer, &headers, ("stage.ts", "stage"), query).expect("a request").token
        };
        assert_eq!(of("Bearer abc", None).as_deref(), Some("abc"));
        assert_eq!(of("basic dXNlcjphOmI=", None).as_deref(), Some("a:b"));
        assert_eq!(of("", Some("x=1&token=a%20b")).as_deref(), Some("a b"));
        assert_eq!(of("Digest whatever", Some("token=q")).as_deref(), Some("q"));
    }

    #[test]
    fn nonsense_is_no_token() {
        for header in [&b"Basic ###"[..], b"Bearer", b"\xff\xfe x", b"Basic dXNlcg=="] {
            assert_eq!(in_header(header), None);
        }
    }
}
