//! What a server says without being asked: that a session is over.

use bytes::{Bytes, BytesMut};
use rtsp_types::{HeaderName, Method, Version, headers};
use url::Url;

use crate::encode_request;

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The server ends.
    ShuttingDown,
    /// The session alone.
    SessionTerminated,
}

impl Notice {
    /// The codes of video servers: ffmpeg's `rtsp.c` ends a session by those from 4400 to 5499.
    fn text(self) -> &'static str {
        match self {
            Notice::ShuttingDown => "5403 \"Server Shutting Down\"",
            Notice::SessionTerminated => "5402 \"Client Session Terminated\"",
        }
    }

    /// The request that says so of a session. RFC 2326 leaves to its ANNOUNCE what a server has to tell; only RFC 7826
    /// has a method of its own (PLAY_NOTIFY), in another version of the protocol.
    pub(super) fn encode(self, url: Option<Url>, session: &str) -> Bytes {
        let mut request = rtsp_types::Request::builder(Method::Announce, Version::V1_0);
        if let Some(url) = url {
            request = request.request_uri(url);
        }
        let request = request
            .header(headers::CSEQ, "1")
            .header(headers::SESSION, session)
            .header(HeaderName::from_static_str("Notice").expect("ASCII"), self.text());
        let mut bytes = BytesMut::new();
        encode_request(&request.empty(), &mut bytes);
        bytes.freeze()
    }
}
