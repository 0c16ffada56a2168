//! What a running relay says of itself, and what it is told.

use std::time::Duration;

use outflow_fetch::{Error, RequestBuilder, agent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How long a relay may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its answer: about a million receivers.
const ANSWER_BYTES_MAX: u64 = 512 << 20;

/// A relay that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Api<'a> {
    /// Its HTTP address.
    pub(super) url: &'a str,
    /// A token with the right to control.
    pub(super) token: Option<&'a str>,
}

/// What it says of what it does not do.
#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
}

impl Api<'_> {
    /// Asks it for all that it has of something.
    pub(super) fn ask<T: DeserializeOwned>(&self, what: &str) -> Result<Vec<T>, String> {
        let request = self.authorized(agent(PATIENCE).get(self.address(what)));
        let mut answer = request.call().map_err(|error| self.failed(&error))?;
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        body.read_json().map_err(|error| self.failed(&error))
    }

    /// Tells it something; `None` if it is not there.
    pub(super) fn tell<T: DeserializeOwned>(
        &self,
        what: &str,
        said: &impl Serialize,
    ) -> Result<Option<T>, String> {
        let request = self.authorized(agent(PATIENCE).post(self.address(what)));
        match request.send_json(said).and_then(|mut answer| answer.body_mut().read_json()) {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::ConnectionFailed | Error::Io(_)) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Has it do something that may take so long.
    ///
    /// # Errors
    /// It cannot be asked, or does not do it: its own words.
    pub(super) fn order<T: DeserializeOwned>(&self, what: &str, patience: Duration) -> Result<T, String> {
        let request = self.authorized(agent(patience).post(self.address(what)));
        let request = request.config().http_status_as_error(false).build();
        let mut answer = request.send_empty().map_err(|error| self.failed(&error))?;
        let (status, body) = (answer.status(), answer.body_mut());
        if status.is_success() {
            return body.read_json().map_err(|error| self.failed(&error));
        }
        let plain = self.failed(&Error::StatusCode(status.as_u16()));
        if matches!(status.as_u16(), 401 | 403) {
            return Err(plain);
        }
        Err(body.read_json().map_or(plain, |refusal: Refusal| refusal.error))
    }

    fn address(&self, what: &str) -> String {
        format!("{}/api/v1/{what}", self.url.trim_end_matches('/'))
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn failed(&self, error: &Error) -> String {
        let help = match error {
            Error::StatusCode(401 | 403) => "give a token with the right to control by --token",
            _ => "give the HTTP address of a relay that runs, such as http://localhost:8080",
        };
        format!("the relay at {} cannot be asked: {error}; {help}", self.url)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// What is heard of a relay that answers this.
    fn heard(status: &str, body: &str) -> Result<u32, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let serving = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("asked");
            let head =
                BufReader::new(&socket).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let head: Vec<_> = head.collect();
            socket.write_all(answer.as_bytes()).expect("answered");
            head
        });
        let heard = Api { url: &url, token: Some("secret") }.order("upgrade", PATIENCE);
        let head = serving.join().expect("no panic");
        assert_eq!(head[0], "POST /api/v1/upgrade HTTP/1.1");
        assert!(head.iter().any(|line| line == "authorization: Bearer secret"), "{head:?}");
        heard
    }

    #[test]
    fn what_a_relay_does_not_do_it_says_itself_and_a_token_that_is_missing_is_asked_for() {
        assert_eq!(heard("200 OK", "7"), Ok(7));
        assert_eq!(
            heard("409 Conflict", r#"{"error":"it has no starter"}"#),
            Err("it has no starter".to_owned())
        );
        let refused = heard("401 Unauthorized", r#"{"error":"no token"}"#).expect_err("refused");
        assert!(refused.contains("--token"), "{refused}");
        let none = heard("404 Not Found", "").expect_err("an old one");
        assert!(none.contains("404"), "{none}");
    }
}
