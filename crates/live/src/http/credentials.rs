//! Tokens as HTTP clients give them.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;

/// The token of a request: `Authorization: Bearer TOKEN`, the password of `Authorization: Basic …`
/// (RFC 7617), or `?token=TOKEN`.
pub(super) fn token(authorization: Option<&[u8]>, query: Option<&str>) -> Option<String> {
    authorization.and_then(from_header).or_else(|| query.and_then(from_query))
}

/// The token of a request that hyper has read.
pub(super) fn of_request(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    token(headers.get(AUTHORIZATION).map(|value| value.as_bytes()), query)
}

fn from_header(value: &[u8]) -> Option<String> {
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

fn from_query(query: &str) -> Option<String> {
    query_value(query, "token")
}

/// The first value of `key` in a query, decoded.
pub(super) fn query_value(query: &str, key: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(found, _)| found == key).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_in_three_ways() {
        assert_eq!(token(Some(b"Bearer abc"), None).as_deref(), Some("abc"));
        assert_eq!(token(Some(b"basic dXNlcjphOmI="), None).as_deref(), Some("a:b"));
        assert_eq!(token(None, Some("x=1&token=a%20b")).as_deref(), Some("a b"));
        assert_eq!(token(Some(b"Digest whatever"), Some("token=q")).as_deref(), Some("q"));
    }

    #[test]
    fn nonsense_is_no_token() {
        for header in [&b"Basic ###"[..], b"Bearer", b"\xff\xfe x", b"Basic dXNlcg=="] {
            assert_eq!(token(Some(header), None), None);
        }
    }
}
