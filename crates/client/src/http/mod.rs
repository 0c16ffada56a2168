//! A stream by HTTP/1.1 GET, RFC 9112: what an answer consists of, [`Head`] and [`Body`]; and the session
//! that it may name.

mod body;
mod head;
mod session;

use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use percent_encoding::percent_decode_str;
use std::collections::VecDeque;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use url::Url;

use crate::limits::{HTTP_HEAD_BYTES, READ_BYTES, REDIRECTS};
use crate::wire::{Wire, dial};
use crate::{Credentials, Error, Options};
pub use body::Body;
pub use head::Head;
pub(crate) use session::{Granted, Session};

/// The body of a response that goes on and on.
#[derive(Debug)]
pub(crate) struct Download {
    wire: Wire,
    buffer: BytesMut,
    body: Body,
    ready: VecDeque<Bytes>,
    /// What of the stream it does not hold, as the server says.
    pub(crate) left_out: Option<String>,
}

impl Download {
    /// Asks for `url`, follows redirections, and reads the response's head, which may name a session.
    pub(crate) async fn start(url: &Url, options: &Options) -> Result<(Download, Option<Session>), Error> {
        let mut url = url.clone();
        let mut trusted = true;
        for _ in 0..=REDIRECTS {
            let mut wire = connect(&url, options).await?;
            let request = request("GET", &url, options, trusted, "");
            let mut buffer = BytesMut::with_capacity(READ_BYTES);
            let head = timeout(options.patience, exchange(&mut wire, &request, &mut buffer)).await;
            let slow = |_| Error::Slow { doing: format!("the answer of {url}"), after: options.patience };
            let head = head.map_err(slow)??;
            match (head.status, head.location) {
                (200, _) => {
                    let body = Body::new(head.chunked, head.length);
                    let named = head.session.as_deref();
                    let session = named.and_then(|named| Session::new(&url, named, options, trusted));
                    let (ready, left_out) = (VecDeque::new(), head.left_out);
                    return Ok((Download { wire, buffer, body, ready, left_out }, session));
                }
                (301 | 302 | 303 | 307 | 308, Some(location)) => {
                    let next = url.join(&location).map_err(|e| Error::Peer(format!("redirection: {e}")))?;
                    // A password is for one host, and not for a listener on the way.
                    trusted &=
                        next.host() == url.host() && (next.scheme() == "https" || url.scheme() == "http");
                    url = next;
                }
                (status, _) => return Err(Error::Http { status, phrase: head.phrase }),
            }
        }
        Err(Error::Peer("it redirects without end".to_owned()))
    }

    /// The next bytes of the body; `None` at its end. Nothing is lost if this is cancelled.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some(bytes));
            }
            let ready = &mut self.ready;
            self.body.decode(&mut self.buffer, |bytes| ready.push_back(bytes)).map_err(Error::Peer)?;
            if !self.ready.is_empty() {
                continue;
            }
            if self.body.is_complete() {
                return Ok(None);
            }
            self.buffer.reserve(READ_BYTES);
            match self.wire.io.read_buf(&mut self.buffer).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(Error::System { doing: "reading the stream".to_owned(), error }),
            }
        }
    }
}

async fn connect(url: &Url, options: &Options) -> Result<Wire, Error> {
    let secure = match url.scheme() {
        "http" => false,
        "https" => true,
        _ => return Err(Error::url(url.as_str(), "HTTP leads to a URL that is not of HTTP")),
    };
    let host = url.host_str().ok_or_else(|| Error::url(url.as_str(), "it names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(80);
    dial(host, port, secure, options).await
}

fn request(method: &str, url: &Url, options: &Options, trusted: bool, json: &str) -> String {
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let authorization = match (in_url(url), &options.credentials, &options.token) {
        (Some(credentials), _, _) => basic(&credentials),
        (None, Some(credentials), _) if trusted => basic(credentials),
        (None, None, Some(token)) if trusted => {
            let token: String = token.chars().filter(|c| !c.is_control()).collect();
            format!("Authorization: Bearer {token}\r\n")
        }
        _ => String::new(),
    };
    let content = match json.len() {
        0 => String::new(),
        length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Outflow/{}\r\nAccept: */*\r\n\
         {authorization}{content}Connection: close\r\n\r\n{json}",
        env!("CARGO_PKG_VERSION")
    )
}

fn in_url(url: &Url) -> Option<Credentials> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let password = url.password();
    let is_there = !url.username().is_empty() || password.is_some();
    is_there.then(|| Credentials { user: decoded(url.username()), password: decoded(password.unwrap_or("")) })
}

fn basic(credentials: &Credentials) -> String {
    let plain = format!("{}:{}", credentials.user, credentials.password);
    format!("Authorization: Basic {}\r\n", base64::engine::general_purpose::STANDARD.encode(plain))
}

async fn exchange(wire: &mut Wire, request: &str, buffer: &mut BytesMut) -> Result<Head, Error> {
    let io = Error::system("asking the server");
    wire.io.write_all(request.as_bytes()).await.map_err(io)?;
    loop {
        if let Some(head) = Head::decode(buffer).map_err(Error::Peer)? {
            return Ok(head);
        }
        if buffer.len() > HTTP_HEAD_BYTES {
            return Err(Error::Peer("its header is too long".to_owned()));
        }
        match wire.io.read_buf(buffer).await {
            Ok(0) => return Err(Error::Ended),
            Ok(_) => {}
            Err(error) => return Err(Error::System { doing: "reading the answer".to_owned(), error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_host_path_and_credentials() {
        let url = Url::parse("http://[::1]:8080/stage.ts?token=x").unwrap();
        let options = Options { token: Some("se\r\ncret".to_owned()), ..Options::default() };
        let request = |url: &Url, trusted| request("GET", url, &options, trusted, "");
        let text = request(&url, true);
        assert!(text.starts_with("GET /stage.ts?token=x HTTP/1.1\r\nHost: [::1]:8080\r\n"), "{text}");
        assert!(text.contains("\r\nAuthorization: Bearer secret\r\n"), "{text}");
        assert!(!request(&url, false).contains("Authorization"));
        assert!(!text.contains("Content-"));
        let url = Url::parse("http://us%20er:pw@h/").unwrap();
        let text = request(&url, true);
        assert!(text.contains("\r\nHost: h\r\n") && !text.contains("secret"), "{text}");
        assert!(text.contains("\r\nAuthorization: Basic dXMgZXI6cHc=\r\n"), "{text}");
    }
}
