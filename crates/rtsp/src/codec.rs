//! Messages and interleaved frames on a connection, RFC 2326 sections 4, 6, 7 and 10.12.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use rtsp_types::{HeaderName, HeaderValue, Message, ParseError, headers};

use crate::limits::{BODY_BYTES, HEADER_BYTES};
use crate::{Request, Response};

/// One thing received on an RTSP connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A request of the peer.
    Request(Request),
    /// The answer to a request of ours.
    Response(Response),
    /// Media or RTCP between the messages, RFC 2326 section 10.12.
    Interleaved {
        /// The channel as agreed on in SETUP.
        channel: u8,
        /// One RTP packet or one compound RTCP packet.
        bytes: Bytes,
    },
}

/// Why a connection cannot be read on. The peer is to blame, and the connection is to be closed:
/// there is no way to find the next message behind a broken one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A message cannot begin like this.
    #[error(
        "the peer does not speak RTSP: a message cannot begin with byte {0:#04x} (TLS, or another protocol?)"
    )]
    NotRtsp(u8),
    /// No empty line within the limit.
    #[error("the peer sent a message header of more than {HEADER_BYTES} bytes")]
    HeaderTooLarge,
    /// Content-Length beyond the limit.
    #[error("the peer announced a body of {0} bytes; at most {BODY_BYTES} are accepted")]
    BodyTooLarge(u64),
    /// Content-Length that is no number, or two that differ.
    #[error("the peer sent a Content-Length that cannot be understood")]
    BadContentLength,
    /// The header is there, but is none.
    #[error("the peer sent a malformed RTSP message")]
    Malformed,
}

/// Finds messages and interleaved frames in received bytes.
///
/// The caller owns the buffer, so that a socket can read right into it. Interleaved frames leave
/// it without being copied.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes at the front of the buffer in which no header end was found.
    scanned: usize,
}

impl Decoder {
    /// A decoder at the beginning of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next item at the front of `buffer`, which is shortened by it; `None` if more bytes are
    /// needed. Bytes must only be appended to `buffer` between calls.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Item>, DecodeError> {
        if self.scanned == 0 {
            skip_empty_lines(buffer);
        }
        match buffer.first() {
            None => Ok(None),
            Some(b'$') => Ok(decode_interleaved(buffer)),
            Some(first) if first.is_ascii_alphabetic() => self.decode_message(buffer),
            Some(first) => Err(DecodeError::NotRtsp(*first)),
        }
    }

    fn decode_message(&mut self, buffer: &mut BytesMut) -> Result<Option<Item>, DecodeError> {
        let Some(header) = self.find_header_end(buffer)? else { return Ok(None) };
        let body = content_length(&buffer[..header])?;
        let total = header + body;
        if buffer.len() < total {
            return Ok(None);
        }
        self.scanned = 0;
        let message = buffer.split_to(total);
        match Message::<Vec<u8>>::parse(&message[..]) {
            Ok((Message::Request(request), used)) if used == total => Ok(Some(Item::Request(request))),
            Ok((Message::Response(response), used)) if used == total => Ok(Some(Item::Response(response))),
            Ok(_) | Err(ParseError::Incomplete(_) | ParseError::Error) => Err(DecodeError::Malformed),
        }
    }

    fn find_header_end(&mut self, buffer: &BytesMut) -> Result<Option<usize>, DecodeError> {
        let window = &buffer[..buffer.len().min(HEADER_BYTES)];
        let from = self.scanned.saturating_sub(3).min(window.len());
        if let Some(at) = window[from..].windows(4).position(|w| w == b"\r\n\r\n") {
            // Where the body is still missing, the next call finds the same end at once.
            self.scanned = from + at;
            return Ok(Some(from + at + 4));
        }
        self.scanned = window.len();
        if window.len() == HEADER_BYTES {
            return Err(DecodeError::HeaderTooLarge);
        }
        Ok(None)
    }
}

/// Some peers send empty lines between messages, to keep the connection alive.
fn skip_empty_lines(buffer: &mut BytesMut) {
    let empty = buffer.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    buffer.advance(empty);
}

fn decode_interleaved(buffer: &mut BytesMut) -> Option<Item> {
    let &[_, channel, high, low] = buffer.first_chunk()?;
    let total = 4 + usize::from(u16::from_be_bytes([high, low]));
    if buffer.len() < total {
        return None;
    }
    let mut bytes = buffer.split_to(total).freeze();
    bytes.advance(4);
    Some(Item::Interleaved { channel, bytes })
}

fn content_length(header: &[u8]) -> Result<usize, DecodeError> {
    let mut length = None;
    for line in header.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        if !line[..colon].eq_ignore_ascii_case(b"Content-Length") {
            continue;
        }
        let value = core::str::from_utf8(line[colon + 1..].trim_ascii()).ok();
        let value = value.filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
        let value = value.and_then(|v| v.parse::<u64>().ok()).ok_or(DecodeError::BadContentLength)?;
        if length.is_some_and(|known| known != value) {
            return Err(DecodeError::BadContentLength);
        }
        length = Some(value);
    }
    let length = length.unwrap_or(0);
    match usize::try_from(length) {
        Ok(bytes) if bytes <= BODY_BYTES => Ok(bytes),
        _ => Err(DecodeError::BodyTooLarge(length)),
    }
}

/// Appends a request.
///
/// CSeq comes first, because simple devices look for it there.
pub fn encode_request<B: AsRef<[u8]>>(request: &rtsp_types::Request<B>, out: &mut BytesMut) {
    let method: &str = request.method().into();
    let uri = request.request_uri().map_or("*", |uri| uri.as_str());
    put_all(out, &[method, " ", uri, " ", version(request.version()), "\r\n"]);
    put_headers(out, request.headers());
    out.put_slice(request.body().as_ref());
}

/// Appends a response.
///
/// A header value of several lines (`\n` between them) is written as that many headers: clients
/// expect one WWW-Authenticate a challenge.
pub fn encode_response<B: AsRef<[u8]>>(response: &rtsp_types::Response<B>, out: &mut BytesMut) {
    let status = u16::from(response.status()).to_string();
    put_all(out, &[version(response.version()), " ", &status, " ", response.reason_phrase(), "\r\n"]);
    put_headers(out, response.headers());
    out.put_slice(response.body().as_ref());
}

/// What stands before an interleaved packet of `length` bytes on `channel`, RFC 2326
/// section 10.12.
pub const fn interleaved_prefix(channel: u8, length: u16) -> [u8; 4] {
    let [high, low] = length.to_be_bytes();
    [b'$', channel, high, low]
}

fn version(version: rtsp_types::Version) -> &'static str {
    match version {
        rtsp_types::Version::V1_0 => "RTSP/1.0",
        rtsp_types::Version::V2_0 => "RTSP/2.0",
    }
}

fn put_headers<'a>(out: &mut BytesMut, all: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) {
    let (first, rest): (Vec<_>, Vec<_>) = all.partition(|(name, _)| **name == headers::CSEQ);
    for (name, value) in first.into_iter().chain(rest) {
        for line in value.as_str().split('\n') {
            put_all(out, &[name.as_str(), ": ", line.trim_end_matches('\r'), "\r\n"]);
        }
    }
    out.put_slice(b"\r\n");
}

fn put_all(out: &mut BytesMut, parts: &[&str]) {
    for part in parts {
        out.put_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Result<Vec<Item>, DecodeError> {
        let (mut decoder, mut buffer) = (Decoder::new(), BytesMut::from(bytes));
        let mut items = Vec::new();
        while let Some(item) = decoder.decode(&mut buffer)? {
            items.push(item);
        }
        Ok(items)
    }

    const MIXED: &[u8] = b"\r\nOPTIONS rtsp://h/s RTSP/1.0\r\nCSeq: 1\r\n\r\n\
        $\x01\x00\x03abc\
        RTSP/1.0 200 OK\r\nCSeq: 1\r\ncontent-length: 4\r\n\r\nbody\
        $\x00\x00\x00";

    #[test]
    fn messages_and_media_alternate() {
        let items = all(MIXED).unwrap();
        assert_eq!(items.len(), 4);
        assert!(matches!(&items[0], Item::Request(r) if r.method() == rtsp_types::Method::Options));
        assert_eq!(items[1], Item::Interleaved { channel: 1, bytes: Bytes::from_static(b"abc") });
        assert!(matches!(&items[2], Item::Response(r) if r.body() == b"body"));
        assert_eq!(items[3], Item::Interleaved { channel: 0, bytes: Bytes::new() });
    }

    #[test]
    fn any_chunking_gives_the_same_items() {
        let whole = all(MIXED).unwrap();
        for size in 1..MIXED.len() {
            let (mut decoder, mut buffer) = (Decoder::new(), BytesMut::new());
            let mut items = Vec::new();
            for chunk in MIXED.chunks(size) {
                buffer.put_slice(chunk);
                while let Some(item) = decoder.decode(&mut buffer).unwrap() {
                    items.push(item);
                }
            }
            assert_eq!(items, whole, "chunks of {size}");
        }
    }

    #[test]
    fn interleaved_media_is_not_copied() {
        let mut buffer = BytesMut::from(&b"$\x00\x00\x02xy"[..]);
        let at = buffer.as_ptr() as usize;
        let Some(Item::Interleaved { bytes, .. }) = Decoder::new().decode(&mut buffer).unwrap() else {
            panic!("no media")
        };
        assert_eq!(bytes.as_ptr() as usize, at + 4);
    }

    #[test]
    fn what_is_too_large_ends_the_connection_before_it_is_stored() {
        let header = format!("GET_PARAMETER * RTSP/1.0\r\nX: {}", "x".repeat(HEADER_BYTES));
        assert_eq!(all(header.as_bytes()), Err(DecodeError::HeaderTooLarge));
        let body = b"ANNOUNCE rtsp://h/s RTSP/1.0\r\nContent-Length: 99999999999\r\n\r\n";
        assert_eq!(all(body), Err(DecodeError::BodyTooLarge(99_999_999_999)));
        let unclear = b"ANNOUNCE rtsp://h/s RTSP/1.0\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx";
        assert_eq!(all(unclear), Err(DecodeError::BadContentLength));
        let negative = b"ANNOUNCE rtsp://h/s RTSP/1.0\r\nContent-Length: -1\r\n\r\nxx";
        assert_eq!(all(negative), Err(DecodeError::BadContentLength));
    }

    #[test]
    fn another_protocol_is_recognized_by_its_first_byte() {
        assert_eq!(all(&[0x16, 0x03, 0x01]), Err(DecodeError::NotRtsp(0x16)));
        assert_eq!(all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Err(DecodeError::Malformed));
    }

    #[test]
    fn encoded_messages_are_decoded_again() {
        let request = rtsp_types::Request::builder(rtsp_types::Method::Announce, rtsp_types::Version::V1_0)
            .request_uri(url::Url::parse("rtsp://h:8554/live/stage").unwrap())
            .header(headers::CSEQ, "7")
            .header(headers::ACCEPT, "application/sdp")
            .build(b"v=0".to_vec());
        let mut bytes = BytesMut::new();
        encode_request(&request, &mut bytes);
        assert!(bytes.starts_with(b"ANNOUNCE rtsp://h:8554/live/stage RTSP/1.0\r\nCSeq: 7\r\n"));
        assert_eq!(all(&bytes).unwrap(), [Item::Request(request)]);
    }

    #[test]
    fn a_value_of_two_lines_becomes_two_headers() {
        let response =
            rtsp_types::Response::builder(rtsp_types::Version::V1_0, rtsp_types::StatusCode::Unauthorized)
                .header(headers::CSEQ, "2")
                .header(headers::WWW_AUTHENTICATE, "Digest a=1\nBasic realm=\"x\"")
                .build(Vec::new());
        let mut bytes = BytesMut::new();
        encode_response(&response, &mut bytes);
        let text = core::str::from_utf8(&bytes).unwrap();
        assert!(text.starts_with("RTSP/1.0 401 Unauthorized\r\nCSeq: 2\r\n"), "{text}");
        assert!(
            text.contains("\r\nWWW-Authenticate: Digest a=1\r\nWWW-Authenticate: Basic realm="),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = all(&bytes);
        }

        #[test]
        fn garbage_within_a_message_never_panics(text in "[ -~\r\n\t]{0,120}", tail in ".{0,40}") {
            let _ = all(format!("SETUP rtsp://h/{text}\r\n{tail}\r\n\r\n").as_bytes());
            let _ = all(format!("RTSP/1.0 200 {text}\r\n{tail}: {tail}\r\n {text}\r\n\r\n").as_bytes());
        }
    }
}
