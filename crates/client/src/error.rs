//! Why nothing comes, which side is to blame, and what to do about it.

use core::time::Duration;
use std::io;

use outflow_rtsp::client::Closed;

/// Why a subscription failed or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be used.
    #[error("'{url}' cannot be received: {why}")]
    Url {
        /// As given, without what may be secret in it.
        url: String,
        /// What is wrong, and how it should be.
        why: String,
    },
    /// The session description cannot be used.
    #[error("the session description cannot be used: {0}")]
    Description(String),
    /// The host's name leads nowhere.
    #[error("no address is known for host '{host}': {error}")]
    Unknown {
        /// The name.
        host: String,
        /// The resolver's words.
        error: io::Error,
    },
    /// No server answers there.
    #[error("cannot connect to {to}: {error}{}", advice(.error))]
    Connect {
        /// The address.
        to: String,
        /// The system's words.
        error: io::Error,
    },
    /// TLS could not be agreed on.
    #[error("TLS with {host} failed: {error} (if its certificate is its own, give it with --ca)")]
    Tls {
        /// The server.
        host: String,
        /// What failed.
        error: io::Error,
    },
    /// The server took too long.
    #[error("{doing} took longer than {after:?}")]
    Slow {
        /// What was being done.
        doing: String,
        /// How long it might take.
        after: Duration,
    },
    /// No packet.
    #[error("no packet for {after:?}{hint}")]
    Silence {
        /// How long was waited.
        after: Duration,
        /// What may be the reason.
        hint: &'static str,
    },
    /// There is no way to ask for a level.
    #[error(
        "another level cannot be asked for: plain MPEG-TS has no way back, and not every HTTP server \
         names a session to ask (Outflow-Session): receive it by RTSP, or name the level in the URL \
         (?level=2)"
    )]
    NoLevels,
    /// The RTSP session is over.
    #[error(transparent)]
    Rtsp(#[from] Closed),
    /// The HTTP server refused.
    #[error("the server answered {status} {phrase}{}", http_advice(*.status))]
    Http {
        /// Status code.
        status: u16,
        /// Reason phrase.
        phrase: String,
    },
    /// The connection of the partial-order transport is over.
    #[error("the connection is over: {text} (code {code})")]
    Poc {
        /// Why.
        text: String,
        /// The same, for programs.
        code: u64,
    },
    /// What the server sends makes no sense.
    #[error("the server's answer cannot be used: {0}")]
    Peer(String),
    /// The server closed the connection.
    #[error("the server ended the stream")]
    Ended,
    /// The system refused.
    #[error("{doing}: {error}")]
    System {
        /// What was being done.
        doing: String,
        /// The system's words.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn url(url: &str, why: impl Into<String>) -> Self {
        Error::Url { url: without_secrets(url), why: why.into() }
    }

    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Error::System { doing: doing.into(), error }
    }
}

/// An address up to its query, without user and password.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let between = if scheme.is_empty() { "" } else { "://" };
    [scheme, between, &rest[..end]].concat()
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => " (is the server running, and is this its port?)",
        io::ErrorKind::TimedOut => " (is a firewall in the way?)",
        _ => "",
    }
}

fn http_advice(status: u16) -> &'static str {
    match status {
        401 | 403 => " (give the token with --token, or user:password@ in the URL)",
        404 => " (no such stream: check the path of the URL)",
        503 => " (it is at its limit, or the stream has no source: try later)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_without_what_may_be_secret() {
        for (url, shown) in [
            ("rtsp://u:p4ss@cam/a?token=s3cret", "rtsp://cam/a"),
            ("gopher://u:p4/ss@cam", "gopher://cam"),
            ("u:p4ss@cam#s3cret", "cam"),
        ] {
            let told = Error::url(url, "it is none").to_string();
            assert_eq!(told, format!("'{shown}' cannot be received: it is none"));
        }
    }
}
