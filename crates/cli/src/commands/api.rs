//! What a running relay says of itself, and what it is told.

use std::time::Duration;

use outflow_fetch::{Error, RequestBuilder, agent};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
