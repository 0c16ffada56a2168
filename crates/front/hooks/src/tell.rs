//! Tells one event.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use outflow_control::Event;
use outflow_engine::system::random_u32;
use outflow_fetch::{Agent, Error, agent};
use ring::hmac;

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
        let mut request = self
            .agent
            .post(url.0.reveal())
            .header("content-type", "application/json")
            .header("outflow-event", event.what.kind())
            .header("outflow-id", format!("{:08x}-{}", self.run, event.number));
        if let Some(secret) = &hooks.secret {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            request = request.header("outflow-signature", signature(secret.as_bytes(), now, &body));
        }
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

/// When it was signed, and HMAC-SHA-256 (RFC 2104) of that, a dot and the body.
fn signature(secret: &[u8], now: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("{now}.{body}").as_bytes());
    tag.as_ref().iter().fold(format!("t={now},v1="), |mut text, byte| {
        // A String takes all that is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_can_be_made_again_by_whatever_has_the_secret() {
        // printf '7.{}' | openssl dgst -sha256 -hmac key
        let expected = "t=7,v1=77bc83bd1f40422311e47918b203449aecf84b02c1568bb1b570ac2a474cc2d8";
        assert_eq!(signature(b"key", 7, "{}"), expected);
    }
}
