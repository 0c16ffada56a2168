//! What is told or asked by POST, signed, so that its receiver knows that it is the relay's.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use ureq::typestate::WithBody;
use ureq::{Agent, RequestBuilder};

/// A POST of JSON to an address, for the body that is then sent; signed if there is a secret.
pub fn post(agent: &Agent, url: &str, body: &str, secret: Option<&[u8]>) -> RequestBuilder<WithBody> {
    let request = agent.post(url).header("content-type", "application/json");
    let Some(secret) = secret else { return request };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    request.header("outflow-signature", signature(secret, now, body))
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
