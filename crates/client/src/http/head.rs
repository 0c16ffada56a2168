//! The head of a response, RFC 9112 section 4.

use bytes::{Buf as _, BytesMut};

use crate::limits::HTTP_HEADERS;

/// What matters of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Reason phrase.
    pub phrase: String,
    /// Where else it is (RFC 9110 section 10.2.2).
    pub location: Option<String>,
    /// Where the receiver can ask for something else (`Outflow-Session`).
    pub session: Option<String>,
    /// What of the stream it does not hold (`Outflow-Left-Out`).
    pub left_out: Option<String>,
    /// Whether the body comes in chunks (RFC 9112 section 7.1).
    pub chunked: bool,
    /// Bytes of the body, where they are told and it does not come in chunks.
    pub length: Option<u64>,
}

impl Head {
    /// Takes a head from the front of `buffer`; `None` if it is not complete yet. Interim
    /// responses (1xx) are passed over.
    ///
    /// # Errors
    /// It is no response of HTTP/1, or has more than [`HTTP_HEADERS`] fields.
    pub fn decode(buffer: &mut BytesMut) -> Result<Option<Head>, String> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HTTP_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            let used = match response.parse(buffer) {
                Ok(httparse::Status::Complete(used)) => used,
                Ok(httparse::Status::Partial) => return Ok(None),
                Err(error) => return Err(format!("it is not HTTP ({error})")),
            };
            let head = Head::of(&response);
            buffer.advance(used);
            if head.status >= 200 {
                return Ok(Some(head));
            }
        }
    }

    fn of(response: &httparse::Response<'_, '_>) -> Head {
        let get = |name: &str| {
            let header = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
            core::str::from_utf8(header.value).ok().map(str::trim)
        };
        let chunked = get("Transfer-Encoding").is_some_and(|v| v.to_ascii_lowercase().ends_with("chunked"));
        Head {
            status: response.code.unwrap_or_default(),
            phrase: response.reason.unwrap_or_default().to_owned(),
            location: get("Location").map(str::to_owned),
            session: get("Outflow-Session").map(str::to_owned),
            left_out: get("Outflow-Left-Out").map(str::to_owned),
            chunked,
            length: get("Content-Length").filter(|_| !chunked).and_then(|v| v.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let text =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nlocation: /x\r\nOutflow-session: /s\r\n\
                     outflow-left-out: video AV1\r\n\
                     Content-Length: 5\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nbody";
        for cut in 0..text.len() - 4 {
            let mut part = BytesMut::from(&text[..cut]);
            assert_eq!(Head::decode(&mut part), Ok(None), "{cut}");
        }
        let mut whole = BytesMut::from(&text[..]);
        let head = Head::decode(&mut whole).unwrap().unwrap();
        assert_eq!((head.status, head.location.as_deref()), (302, Some("/x")));
        assert!(head.chunked && head.length.is_none());
        assert_eq!(head.session.as_deref(), Some("/s"));
        assert_eq!(head.left_out.as_deref(), Some("video AV1"));
        assert_eq!(&whole[..], b"body");
        assert!(Head::decode(&mut BytesMut::from(&b"RTSP/1.0 200 OK\r\n\r\n"[..])).is_err());
    }
}
