//! What a running relay says of itself.

use std::time::Duration;

use serde::de::DeserializeOwned;

/// How long a relay may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of its answer: about a million receivers.
const ANSWER_BYTES_MAX: u64 = 512 << 20;

/// Asks a relay for all that it has of something.
pub(super) fn ask<T: DeserializeOwned>(url: &str, what: &str, token: Option<&str>) -> Result<Vec<T>, String> {
    let failed = |error: ureq::Error| {
        let help = match error {
            ureq::Error::StatusCode(401 | 403) => "give a token with the right to control by --token",
            _ => "give the HTTP address of a relay that runs, such as http://localhost:8080",
        };
        format!("the relay at {url} cannot be asked: {error}; {help}")
    };
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    let mut request = agent.get(format!("{}/api/v1/{what}", url.trim_end_matches('/')));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut answer = request.call().map_err(failed)?;
    answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json().map_err(failed)
}
