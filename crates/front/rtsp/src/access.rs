//! Rights on a connection: tokens in the URL, or as password by Basic or Digest.

use std::net::IpAddr;

use outflow_door::{Credential, Door, Refused, Right, Verdict};
use outflow_rtsp::auth::{Authorization, Realm};
use outflow_rtsp::{Request, auth, headers};
use tokio::time::Instant;
use url::Url;

use super::reply::Reply;
use super::target::{Target, path_of};

/// What is known of a connection's rights. Once shown, a right holds for the whole connection.
pub(super) struct Access {
    realm: Realm,
    peer: IpAddr,
    granted: [bool; 2],
    has_to_wait: bool,
}

impl Access {
    /// Basic is offered only where no third party can listen.
    pub(super) fn new(peer: IpAddr, encrypted: bool) -> Self {
        let [a, b, c] = std::array::from_fn(|_| outflow_engine::system::random_u32());
        let nonce = format!("{a:08x}{b:08x}{c:08x}");
        let realm = Realm::new("Outflow", nonce, encrypted);
        Access { realm, peer, granted: [false; 2], has_to_wait: false }
    }

    /// Whether too many wrong tokens have come from the peer for it to go on.
    pub(super) fn has_to_wait(&self) -> bool {
        self.has_to_wait
    }

    /// Whether the request may do what `right` is for.
    ///
    /// # Errors
    /// The answer that asks for a password, or says why there is no use in one.
    pub(super) fn check(
        &mut self,
        door: &Door,
        right: Right,
        request: &Request,
        target: &Target,
    ) -> Result<(), Reply> {
        let granted = usize::from(right == Right::Publish);
        if self.granted[granted] {
            return Ok(());
        }
        let header = request.header(&headers::AUTHORIZATION);
        let answer = |tokens: &[&str]| match header.and_then(|value| Authorization::parse(value.as_str())) {
            Some(answer) if is_about(&answer, target) => self.judge(request, &answer, tokens),
            _ => Verdict::Wrong,
        };
        let token = target.request.token.as_deref().map(Credential::Token);
        let shown: Vec<_> = token.into_iter().chain(header.map(|_| Credential::Answer(&answer))).collect();
        let refused = match door.enter_by(Instant::now(), right, self.peer, &shown) {
            Ok(()) => {
                self.granted[granted] = true;
                return Ok(());
            }
            Err(refused) => refused,
        };
        self.has_to_wait = matches!(refused, Refused::TooOften { .. });
        let may_show_another = matches!(refused, Refused::TokenMissing | Refused::TokenWrong);
        let reply = Reply::from(refused);
        Err(match may_show_another {
            true => reply.with(headers::WWW_AUTHENTICATE, self.realm.challenges()),
            false => reply,
        })
    }

    fn judge(&self, request: &Request, answer: &Authorization, tokens: &[&str]) -> Verdict {
        match answer.judge(&self.realm, request.method().into(), tokens.iter().copied()) {
            auth::Verdict::Right => Verdict::Right,
            auth::Verdict::Wrong => Verdict::Wrong,
            auth::Verdict::Stale => Verdict::Stale,
        }
    }
}

/// Whether a Digest answer is for this stream. Some clients compute all of them for the URL that
/// they were given, whatever the request is about.
fn is_about(answer: &Authorization, target: &Target) -> bool {
    let Some(uri) = answer.uri() else { return true };
    let parsed =
        Url::parse(uri).or_else(|_| Url::parse(&format!("rtsp://host/{}", uri.trim_start_matches('/'))));
    parsed.is_ok_and(|url| {
        let (asked, stream) = (path_of(&url), &*target.request.stream);
        // ffmpeg sets up a publisher's media by URLs below the stream's own.
        let below =
            |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'));
        asked == stream || below(stream, &asked) || below(&asked, stream)
    })
}
