//! Tells one event.

use std::sync::LazyLock;

use outflow_control::Event;
use outflow_engine::system::random_u32;
use outflow_fetch::{Agent, Error, agent, post};

use crate::delivery::Outcome;
use crate::limits::ANSWER_WITHIN;
use crate::settings::Hooks;

/// What tells them.
#[derive(Debug)]
pub(crate) struct Teller {
    /// Made with the first event: the certificates that it reads are for relays that have a hook.
    agent: LazyLock<Agent>,
    /// Tells events of this run of the relay from those of another one.
    run: u32,
}

impl Teller {
    pub(crate) fn new() -> Self {
        Teller { agent: LazyLock::new(|| agent(ANSWER_WITHIN)), run: random_u32() }
    }

    /// Tells it, and waits for the answer.
    pub(crate) fn tell(&self, hooks: &Hooks, event: &Event) -> Outcome {
        let Some(url) = &hooks.url else { return Outcome::Unwanted };
        // It is numbers and texts: it can always be written.
        let body = serde_json::to_string(event).unwrap_or_default();
        let secret = hooks.secret.as_ref().map(|secret| secret.as_bytes());
        let request = post(&self.agent, url.0.reveal(), &body, secret)
            .header("outflow-event", event.what.kind())
            .header("outflow-id", format!("{:08x}-{}", self.run, event.number));
        match request.send(&body) {
            Ok(answer) if answer.status().is_success() => Outcome::Taken,
            Ok(answer) => Outcome::Failed(format!("{} answers {}", url.0.shown(), answer.status())),
            Err(Error::StatusCode(status @ (400..=407 | 409..=428 | 430..=499))) => {
                Outcome::Refused(format!("{} answers {status}", url.0.shown()))
            }
            Err(error) => Outcome::Failed(format!("{}: {error}", url.0.shown())),
        }
    }
}
