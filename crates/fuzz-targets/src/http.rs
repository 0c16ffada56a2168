//! HTTP: the first request of a connection, and what a server answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use outflow_client::http::{Body, Head};
use outflow_front_http_ts::{FirstRequest, first_request};

const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);

/// However a request comes, the same is made of it.
pub(crate) fn http_request(data: &[u8]) {
    let whole = first_request(PEER, data);
    let step = 1 + data.len() / 8;
    for end in (0..data.len()).step_by(step) {
        if let Some(early) = first_request(PEER, &data[..end]) {
            assert_eq!(Some(early), whole, "after {end} bytes");
        }
    }
    if let Some(FirstRequest::Stream { request, .. }) = whole {
        outflow_config::check_name(&request.stream).expect("a name that a stream can have");
    }
}

/// An answer's head and body; the first byte tells how many bytes come at once.
pub(crate) fn http_answer(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else { return };
    let whole = Answer::of([data]);
    let parts = Answer::of(data.chunks(1 + usize::from(step)));
    assert_eq!(parts, whole);
    let most = whole.head.as_ref().and_then(|head| head.length).unwrap_or(u64::MAX);
    assert!(whole.body.len() as u64 <= most && whole.body.len() + whole.left <= data.len());
}

/// All that an answer said.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    head: Option<Head>,
    body: Vec<u8>,
    complete: bool,
    failed: Option<String>,
    /// Bytes that were not used.
    left: usize,
}

impl Answer {
    fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Answer {
        let mut answer = Answer::default();
        let (mut buffer, mut body) = (BytesMut::new(), None);
        for part in parts {
            buffer.extend_from_slice(part);
            if let Err(why) = answer.read(&mut buffer, &mut body) {
                // What stands behind a mistake has not come yet where it comes in parts.
                return Answer { failed: Some(why), ..answer };
            }
        }
        answer.complete = body.is_some_and(|body| body.is_complete());
        Answer { left: buffer.len(), ..answer }
    }

    fn read(&mut self, buffer: &mut BytesMut, body: &mut Option<Body>) -> Result<(), String> {
        if body.is_none() {
            self.head = Head::decode(buffer)?;
            *body = self.head.as_ref().map(|head| Body::new(head.chunked, head.length));
        }
        let Some(body) = body else { return Ok(()) };
        body.decode(buffer, |bytes: Bytes| self.body.extend_from_slice(&bytes))
    }
}
