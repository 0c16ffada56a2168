//! The body of a response, RFC 9112 sections 6 and 7.1.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::limits::CHUNK_LINE_BYTES;

/// Where in a body its reader is.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// To the end of the connection.
    Open,
    /// This many bytes more.
    Sized(u64),
    /// Before the line that begins a chunk.
    ChunkLine,
    /// This many bytes more of a chunk.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// All of it was read.
    Complete,
}

impl Body {
    /// A body of which nothing has been read, as [`Head`](super::Head) describes it.
    pub fn new(chunked: bool, length: Option<u64>) -> Body {
        match (chunked, length) {
            (true, _) => Body::ChunkLine,
            (false, Some(length)) => Body::Sized(length),
            (false, None) => Body::Open,
        }
    }

    /// Whether all of it was read. One that goes on to the end of the connection never is.
    pub fn is_complete(&self) -> bool {
        *self == Body::Complete
    }

    /// Takes what belongs to the body from the front of `buffer`, without copying it.
    ///
    /// # Errors
    /// A chunk has no length, or another one than it says.
    pub fn decode(&mut self, buffer: &mut BytesMut, mut tell: impl FnMut(Bytes)) -> Result<(), String> {
        loop {
            match self {
                Body::Open => {
                    if !buffer.is_empty() {
                        tell(buffer.split().freeze());
                    }
                    return Ok(());
                }
                Body::Sized(0) => *self = Body::Complete,
                Body::Chunk(0) => *self = Body::ChunkEnd,
                Body::Sized(left) | Body::Chunk(left) => {
                    let there = buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    if there == 0 {
                        return Ok(());
                    }
                    *left -= there as u64;
                    tell(buffer.split_to(there).freeze());
                }
                Body::ChunkLine => match chunk_line(buffer)? {
                    None => return Ok(()),
                    Some(0) => *self = Body::Complete,
                    Some(length) => *self = Body::Chunk(length),
                },
                Body::ChunkEnd => match buffer.first_chunk() {
                    None => return Ok(()),
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        *self = Body::ChunkLine;
                    }
                    Some(_) => return Err("a chunk is longer than it says".to_owned()),
                },
                Body::Complete => return Ok(()),
            }
        }
    }
}

/// The length of the next chunk; trailers behind the last one are not read.
fn chunk_line(buffer: &mut BytesMut) -> Result<Option<u64>, String> {
    let window = &buffer[..buffer.len().min(CHUNK_LINE_BYTES)];
    let Some(end) = window.windows(2).position(|w| w == b"\r\n") else {
        let full = window.len() == CHUNK_LINE_BYTES;
        return if full { Err("a chunk's line is too long".to_owned()) } else { Ok(None) };
    };
    let line = core::str::from_utf8(&window[..end]).unwrap_or_default();
    let digits = line.split(';').next().unwrap_or_default().trim();
    let length = Some(digits)
        .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
        .and_then(|d| u64::from_str_radix(d, 16).ok())
        .ok_or_else(|| "a chunk has no length".to_owned())?;
    buffer.advance(end + 2);
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(mut body: Body, parts: &[&[u8]]) -> Result<(Vec<u8>, bool), String> {
        let (mut buffer, mut out) = (BytesMut::new(), Vec::new());
        for part in parts {
            buffer.extend_from_slice(part);
            body.decode(&mut buffer, |bytes| out.extend_from_slice(&bytes))?;
        }
        Ok((out, body.is_complete()))
    }

    #[test]
    fn chunks_are_put_together_however_they_come() {
        let text = b"5;x=y\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n";
        for size in 1..text.len() {
            let parts: Vec<&[u8]> = text.chunks(size).collect();
            let expected = (b"hello 0123456789".to_vec(), true);
            assert_eq!(decoded(Body::new(true, None), &parts), Ok(expected), "{size}");
        }
    }

    #[test]
    fn lengths_are_obeyed() {
        assert_eq!(decoded(Body::new(false, Some(3)), &[b"ab", b"cd"]), Ok((b"abc".to_vec(), true)));
        assert_eq!(decoded(Body::new(false, None), &[b"ab", b"cd"]), Ok((b"abcd".to_vec(), false)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            [&b"xyz\r\n"[..], b"\r\n", b"-1\r\n", b"2\r\nabcd", b"ffffffffffffffffff\r\n", &[b'0'; 2000]]
        {
            assert!(decoded(Body::new(true, None), &[text]).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(Body::new(true, None), &[&bytes]);
        }
    }
}
