//! What a relay lets the receiver of a download ask: a resource of its own, which tells what it gets and
//! takes another level (`Outflow-Session`). It is asked on other connections, so that the download goes on.

use bytes::BytesMut;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;

use super::{Body, connect, exchange, request};
use crate::limits::{READ_BYTES, SESSION_ANSWER_BYTES, SESSION_ANSWERS_MAX};
use crate::negotiation::AGAIN;
use crate::{Error, Options};

/// What a session gets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Granted {
    /// The level, 1 is the best.
    pub(crate) level: u8,
    /// Bits a second of each level, the best first.
    #[serde(rename = "levels")]
    pub(crate) rates: Vec<u64>,
}

/// An answer that is the last word on a wish.
#[derive(Debug)]
enum Answer {
    Granted(Granted),
    /// With this status.
    Refused(u16),
}

/// A session that can be asked.
#[derive(Debug)]
pub(crate) struct Session {
    /// The level that is wanted; 0 as long as none is wanted.
    wish: watch::Sender<u8>,
    answers: mpsc::Receiver<Answer>,
    refused: Option<u16>,
    /// The task that asks; it ends with the session.
    _asking: JoinSet<()>,
}

/// Where a session is asked, and with which credentials.
#[derive(Debug)]
struct Resource {
    url: Url,
    options: Options,
    trusted: bool,
}

impl Session {
    /// The session that the answer to a request for `url` names, if it is one of the same server.
    pub(super) fn new(url: &Url, named: &str, options: &Options, trusted: bool) -> Option<Self> {
        let resource = Resource { url: resolve(url, named)?, options: options.clone(), trusted };
        let (wish, wishes) = watch::channel(0);
        let (told, answers) = mpsc::channel(SESSION_ANSWERS_MAX);
        let mut asking = JoinSet::new();
        asking.spawn(resource.negotiate(wishes, told));
        Some(Session { wish, answers, refused: None, _asking: asking })
    }

    /// Asks for this level until it is answered, whatever was asked before.
    pub(crate) fn ask(&mut self, level: u8) {
        let is_other = self.wish.send_if_modified(|wish| core::mem::replace(wish, level) != level);
        if is_other {
            self.refused = None;
        }
    }

    /// The next answer. Nothing is lost if this is cancelled.
    pub(crate) async fn answered(&mut self) -> Granted {
        loop {
            match self.answers.recv().await {
                Some(Answer::Granted(granted)) => return granted,
                Some(Answer::Refused(status)) => self.refused = Some(status),
                None => core::future::pending().await,
            }
        }
    }

    /// The status with which the last wish was refused, if it was.
    pub(crate) fn refused(&self) -> Option<u16> {
        self.refused
    }
}

impl Resource {
    /// Asks for one wish after the other, so that none overtakes another; for the newest that there is.
    async fn negotiate(self, mut wishes: watch::Receiver<u8>, answers: mpsc::Sender<Answer>) {
        while wishes.changed().await.is_ok() {
            let mut backoff = AGAIN;
            loop {
                let level = *wishes.borrow_and_update();
                let answer = timeout(self.options.patience, self.ask(level)).await;
                if let Ok(Ok(answer)) = answer {
                    // The caller that wanted to know may have gone.
                    let _ = answers.send(answer).await;
                    break;
                }
                sleep(backoff.wait()).await;
            }
        }
    }

    async fn ask(&self, level: u8) -> Result<Answer, Error> {
        let mut wire = connect(&self.url, &self.options).await?;
        let body = format!("{{\"level\":{level}}}");
        let request = request("PATCH", &self.url, &self.options, self.trusted, &body);
        let mut buffer = BytesMut::with_capacity(READ_BYTES);
        let head = exchange(&mut wire, &request, &mut buffer).await?;
        match head.status {
            200 => {}
            // Later, perhaps.
            429 | 503 => return Err(Error::Http { status: head.status, phrase: head.phrase }),
            status => return Ok(Answer::Refused(status)),
        }
        let (mut reader, mut text) = (Body::new(head.chunked, head.length), Vec::new());
        loop {
            reader.decode(&mut buffer, |bytes| text.extend_from_slice(&bytes)).map_err(Error::Peer)?;
            if text.len() > SESSION_ANSWER_BYTES {
                return Err(Error::Peer("its answer is too long".to_owned()));
            }
            let system = Error::system("reading the answer");
            if reader.is_complete() || wire.io.read_buf(&mut buffer).await.map_err(system)? == 0 {
                break;
            }
        }
        let granted = serde_json::from_slice(&text).map_err(|error| Error::Peer(error.to_string()))?;
        Ok(Answer::Granted(granted))
    }
}

/// Where the session is that a server names as a path; another server would learn the password. A client that
/// plays with `?token=` asks with it, too.
fn resolve(url: &Url, named: &str) -> Option<Url> {
    let is_path = named.starts_with('/') && !named.starts_with("//");
    let mut session = is_path.then(|| url.join(named).ok()).flatten()?;
    if let Some((key, token)) = url.query_pairs().find(|(key, _)| key == "token") {
        session.query_pairs_mut().append_pair(&key, &token);
    }
    Some(session).filter(|session| session.origin() == url.origin())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn sessions_are_at_the_server_of_the_stream() {
        let url = Url::parse("https://u:p@h:8443/tv/one.ts?level=2&token=a%20b").expect("a URL");
        let session = resolve(&url, "/api/v1/sessions/7").expect("a path");
        assert_eq!(session.as_str(), "https://u:p@h:8443/api/v1/sessions/7?token=a+b");
        for other in ["http://h/7", "//other/7", "/\\other/7", "7", ""] {
            assert_eq!(resolve(&url, other), None, "{other}");
        }
    }

    /// Answers requests one after the other, and tells what was asked.
    async fn server(answers: &'static [&'static str]) -> (Url, mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let url = format!("http://{}/cam.ts", listener.local_addr().expect("an address"));
        let (tell, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let mut request = BytesMut::new();
                while !request.ends_with(b"}") {
                    socket.read_buf(&mut request).await.expect("a request");
                }
                let _ = tell.send(String::from_utf8_lossy(&request).into_owned());
                let length = answer.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
                let answer = answer.replace("LENGTH", &length.to_string());
                socket.write_all(answer.as_bytes()).await.expect("answered");
            }
        });
        (Url::parse(&url).expect("a URL"), asked)
    }

    #[tokio::test]
    async fn a_level_is_asked_for_until_it_is_answered() {
        let (url, mut asked) = server(&[
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200",
            "HTTP/1.1 200 OK\r\nContent-Length: LENGTH\r\n\r\n{\"level\":2,\"levels\":[24,16,8]}",
            "HTTP/1.1 422 Unprocessable Content\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n{\"level\":1,\"levels\":[]}",
        ])
        .await;
        let options = Options { token: Some("s3cret".to_owned()), ..Options::default() };
        let mut session = Session::new(&url, "/s/1", &options, true).expect("a session");
        session.ask(2);
        assert_eq!(session.answered().await, Granted { level: 2, rates: vec![24, 16, 8] });
        for _ in 0..3 {
            let request = asked.recv().await.expect("a request");
            assert!(request.starts_with("PATCH /s/1 HTTP/1.1\r\n") && request.contains("Bearer s3cret"));
            assert!(
                request.contains("\r\nContent-Length: 11\r\n") && request.ends_with("\r\n\r\n{\"level\":2}")
            );
        }
        session.ask(2);
        session.ask(9);
        assert!(
            asked.recv().await.is_some_and(|request| request.ends_with("{\"level\":9}")),
            "the same, once"
        );
        while session.refused().is_none() {
            let answer = timeout(Duration::from_millis(100), session.answered()).await;
            assert!(answer.is_err(), "refused: {answer:?}");
        }
        assert_eq!(session.refused(), Some(422));
        session.ask(1);
        assert_eq!((session.answered().await.level, session.refused()), (1, None));
    }
}
