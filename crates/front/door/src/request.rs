//! What a peer asks for: read from the path and the query of an address, in one way for all fronts.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;

use outflow_config::check_name;
use outflow_graph::elements::view::NoView;
use outflow_packet::{Level, NoLevel};
use outflow_relay::Selection;
use percent_encoding::percent_decode_str;

use crate::refused::Refused;

/// A name that a stream can have; see [`check_name`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName(Box<str>);

impl StreamName {
    /// That of a stream that another process has had, if a stream can be called so.
    pub(crate) fn of(name: String) -> Option<Self> {
        check_name(&name).ok()?;
        Some(StreamName(name.into()))
    }
}

impl Deref for StreamName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a peer asks for, whatever it came in by.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Which stream.
    pub stream: StreamName,
    /// What of it.
    pub selection: Selection,
    /// The token that is shown.
    pub token: Option<String>,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// By which protocol, in a word that its front gives; empty if it gives none.
    pub protocol: &'static str,
}

/// The token stays out of logs.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { stream, selection, token, peer, .. } = self;
        let (Selection { branch, view, level }, token) = (selection, token.as_ref().map(|_| "…"));
        write!(f, "Request {{ {stream}, {branch:?}, {view}, {level}, token: {token:?}, of {peer} }}")
    }
}

impl Request {
    /// Reads what `peer` asks for: the name of a stream as it stands in a path, percent-encoded, and what `branch=`,
    /// `level=`, `part=`, `size=`, `gray=` and `token=` of a query say; the rest of that is left alone.
    ///
    /// # Errors
    /// A name that no stream can have, or a view or a level that cannot be read.
    pub fn parse(peer: SocketAddr, name: &str, query: &str) -> Result<Request, Refused> {
        // What is no UTF-8 becomes a character that no name has.
        let stream = percent_decode_str(name).decode_utf8_lossy().into_owned();
        check_name(&stream)?;
        let (stream, token) = (StreamName(stream.into()), query_value(query, "token"));
        Ok(Request { stream, selection: selection(query)?, token, peer, protocol: "" })
    }
}

/// What of a stream a query asks for.
///
/// # Errors
/// A view or a level that cannot be read.
pub fn selection(query: &str) -> Result<Selection, Refused> {
    let (mut branch, mut level, mut view) = (None, Level::BEST, Vec::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "branch" => branch = Some(value.into_owned()),
            "level" => level = value.parse()?,
            "part" | "size" | "gray" => view.push(format!("{name}={value}")),
            _ => {}
        }
    }
    Ok(Selection { branch, view: view.join("&").parse()?, level })
}

/// The first value of `key` in a query, decoded.
pub fn query_value(query: &str, key: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(found, _)| found == key).map(|(_, value)| value.into_owned())
}

impl From<NoView> for Refused {
    fn from(error: NoView) -> Self {
        Refused::BadSelection(error.to_string())
    }
}

impl From<NoLevel> for Refused {
    fn from(error: NoLevel) -> Self {
        Refused::BadSelection(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, query: &str) -> Result<Request, Refused> {
        Request::parse(SocketAddr::from(([10, 0, 0, 1], 5000)), name, query)
    }

    #[test]
    fn an_address_says_which_stream_what_of_it_and_by_which_right() {
        let query = "token=a%20b&x=1&level=3&branch=small&part=64x32%2B8%2B0&gray=1";
        let request = parse("live/sta%67e", query).expect("a request");
        assert_eq!((&*request.stream, request.token.as_deref()), ("live/stage", Some("a b")));
        let Selection { branch, view, level } = request.selection;
        assert_eq!((branch.as_deref(), level.number()), (Some("small"), 3));
        assert_eq!(view.to_string(), "part=64x32+8+0&gray=1");
        let plain = parse("stage", "").expect("a request");
        assert!(plain.selection.is_all() && plain.token.is_none());
    }

    #[test]
    fn what_no_stream_can_be_called_is_refused_as_such() {
        for name in ["", "a%20b", "/stage", "stage/", "..", "%ff", "a%2500", "api", "stage.ts"] {
            assert!(matches!(parse(name, ""), Err(Refused::BadName(_))), "{name}");
        }
    }

    #[test]
    fn what_of_a_stream_is_asked_for_has_to_be_readable() {
        for query in ["size=big", "level=0", "level=", "gray=2"] {
            assert!(matches!(parse("stage", query), Err(Refused::BadSelection(_))), "{query}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let request = parse("stage", "token=s3cret").expect("a request");
        assert!(!format!("{request:?}").contains("s3cret"));
    }
}
