//! Who may do what: tokens in the URL, or as password by Basic or Digest.

use std::net::IpAddr;

use outflow_rtsp::auth::{Authorization, Realm, Verdict};
use outflow_rtsp::{Request, StatusCode, headers};
use url::Url;

use super::limits::WRONG_ANSWERS;
use super::reply::Reply;
use super::target::Target;
use crate::control::{Control, Right};

/// What is known of a connection's rights. Once shown, a right holds for the whole connection.
pub(super) struct Access {
    realm: Realm,
    peer: IpAddr,
    granted: [bool; 2],
    wrong: u32,
}

impl Access {
    /// Basic is offered only where nobody can listen.
    pub(super) fn new(peer: IpAddr, encrypted: bool) -> Self {
        let [a, b, c] = std::array::from_fn(|_| crate::system::random_u32());
        let nonce = format!("{a:08x}{b:08x}{c:08x}");
        Access { realm: Realm::new("Outflow", nonce, encrypted), peer, granted: [false; 2], wrong: 0 }
    }

    /// Whether the peer has given too many wrong answers to go on.
    pub(super) fn is_hopeless(&self) -> bool {
        self.wrong >= WRONG_ANSWERS
    }

    /// Whether the request may do what `right` is for.
    ///
    /// # Errors
    /// The answer that asks for a password.
    pub(super) fn check(
        &mut self,
        control: &Control,
        right: Right,
        request: &Request,
        target: &Target,
    ) -> Result<(), Reply> {
        let granted = usize::from(right == Right::Publish);
        if self.granted[granted] {
            return Ok(());
        }
        let token = target.token.as_deref();
        let Err(mut denied) = control.authorize(right, token, self.peer) else {
            self.granted[granted] = true;
            return Ok(());
        };
        self.wrong += u32::from(token.is_some());
        if let Some(value) = request.header(&headers::AUTHORIZATION) {
            let verdict = match Authorization::parse(value.as_str()) {
                Some(answer) if is_about(&answer, target) => self.judge(control, right, request, &answer),
                _ => Verdict::Wrong,
            };
            if verdict == Verdict::Right {
                self.granted[granted] = true;
                return Ok(());
            }
            self.wrong += u32::from(verdict == Verdict::Wrong);
            denied = crate::control::Denied::Wrong;
        }
        let reply = Reply::error(StatusCode::Unauthorized, denied.to_string());
        Err(reply.with(headers::WWW_AUTHENTICATE, self.realm.challenges()))
    }

    fn judge(&self, control: &Control, right: Right, request: &Request, answer: &Authorization) -> Verdict {
        if let Authorization::Basic(given) = answer {
            let known = control.authorize(right, Some(&given.password), self.peer).is_ok();
            return if known { Verdict::Right } else { Verdict::Wrong };
        }
        let config = control.config();
        let tokens = match right {
            Right::Publish => &config.access.publish,
            _ => &config.access.play,
        };
        answer.judge(&self.realm, request.method().into(), tokens.iter().map(|token| token.reveal()))
    }
}

/// Whether a Digest answer is for this stream. Some clients compute all of them for the URL that
/// they were given, whatever the request is about.
fn is_about(answer: &Authorization, target: &Target) -> bool {
    let Some(uri) = answer.uri() else { return true };
    let parsed =
        Url::parse(uri).or_else(|_| Url::parse(&format!("rtsp://host/{}", uri.trim_start_matches('/'))));
    parsed.is_ok_and(|url| {
        // ffmpeg sets up a publisher's media by URLs below the stream's own.
        let Ok(Target { stream: asked, .. }) = Target::of(&url) else { return false };
        let below =
            |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'));
        asked == target.stream || below(&target.stream, &asked) || below(&asked, &target.stream)
    })
}
