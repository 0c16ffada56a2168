//! A session goes on by other credentials, because the peer's network has changed (ICE restart: RFC 8445, section 9; RFC
//! 9725, section 4.4). Media goes on meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use outflow_api::HttpError;
use outflow_control::Control;
use outflow_dtls::Scratch;
use outflow_ice::{Credentials, Path};
use outflow_media::Time;
use outflow_webrtc::{Ignored, Received, Session};

use crate::offered::{self, FRAGMENT, etag};
use crate::port::News;
use crate::sessions::Sessions;
use crate::site::{Names, Open, secret};

/// Names that a peer was told, and does not use yet; clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restarts(Arc<Mutex<Option<Names>>>);

impl Restarts {
    /// It was told these. Those before that it has not used are not used any more.
    pub(crate) fn tell(&self, names: Names) {
        *self.told() = Some(names);
    }

    /// It is only asked where a check is by other names.
    fn told(&self) -> MutexGuard<'_, Option<Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram came for a session: its first check by other names is where it goes on by them.
    ///
    /// # Errors
    /// See [`Session::handle_datagram`].
    pub(crate) fn handle_datagram(
        &self,
        session: &mut Session,
        (now, path): (Time, Path),
        datagram: &mut [u8],
    ) -> Result<Received, Ignored> {
        let handled = session.handle_datagram(now, path, datagram, &mut Scratch::default());
        if handled != Err(Ignored::Ice(outflow_ice::Ignored::OtherNames)) {
            return handled;
        }
        let Some(Names { ours, theirs }) = self.told().take() else { return handled };
        session.restart(ours, theirs);
        session.handle_datagram(now, path, datagram, &mut Scratch::default())
    }
}

/// What a peer says of its credentials and candidates (RFC 8840, section 9).
#[derive(Debug, Default, PartialEq, Eq)]
struct Fragment<'a> {
    ufrag: Option<&'a str>,
    password: Option<&'a str>,
    /// Its first section, and what that is called.
    media: Option<&'a str>,
    mid: Option<&'a str>,
}

impl<'a> Fragment<'a> {
    fn read(text: &'a str) -> Self {
        let first = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
        Fragment {
            ufrag: first("a=ice-ufrag:"),
            password: first("a=ice-pwd:"),
            media: first("m="),
            mid: first("a=mid:"),
        }
    }

    /// Credentials as others know them: of few characters, and no other ones (RFC 8839, section 5.4).
    fn credentials(&self) -> Option<Credentials> {
        let is_text = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let ufrag = self.ufrag.filter(|name| (4..=256).contains(&name.len())).filter(is_text)?;
        let password = self.password.filter(|word| (22..=256).contains(&word.len())).filter(is_text)?;
        Some(Credentials { ufrag: ufrag.to_owned(), password: password.to_owned() })
    }

    /// What the relay says in return.
    fn answer(&self, ours: &Credentials, candidates: &[String]) -> String {
        let Credentials { ufrag, password } = ours;
        let mut text = format!("a=ice-lite\r\na=ice-ufrag:{ufrag}\r\na=ice-pwd:{password}\r\n");
        for (name, said) in [("m=", self.media), ("a=mid:", self.mid)] {
            said.into_iter().for_each(|said| text.extend([name, said, "\r\n"]));
        }
        candidates.iter().for_each(|candidate| text.extend(["a=", candidate, "\r\n"]));
        text + "a=end-of-candidates\r\n"
    }
}

/// What a peer says to its session.
///
/// # Errors
/// There is no such session, or what is said is of another one, or not whole.
pub(crate) async fn change(
    control: &Control,
    token: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, HttpError> {
    offered::is_of(headers, FRAGMENT)?;
    let sessions = control.shared::<Sessions>();
    let known = sessions.known(token).ok_or_else(offered::unknown)?;
    let wanted = headers.get(header::IF_MATCH).map(HeaderValue::as_bytes);
    if wanted.is_some_and(|wanted| wanted != b"*" && wanted != etag(known.version).as_bytes()) {
        let what =
            "the session has other credentials by now: leave If-Match out, or send what ETag said last";
        return Err(HttpError::new(StatusCode::PRECONDITION_FAILED, what));
    }
    let text = String::from_utf8_lossy(body);
    let fragment = Fragment::read(&text);
    if fragment.ufrag.is_none_or(|name| name == known.name) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let theirs = fragment.credentials().ok_or_else(|| {
        let what =
            "other credentials are not whole: send a=ice-ufrag of 4 characters and a=ice-pwd of 22 at least";
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, what)
    })?;
    let site = control.shared::<Open>().get().ok_or_else(offered::off)?;
    let names = Names { ours: Credentials::of(secret()?), theirs };
    // The port knows the name before the peer does.
    let named = News::Named(known.id, names.ours.ufrag.clone());
    site.port.news.send(named).await.map_err(|_| offered::off())?;
    let said = fragment.answer(&names.ours, &site.candidates(control));
    let version = sessions.restart(token, names).ok_or_else(offered::unknown)?;
    let own = [(header::CONTENT_TYPE, FRAGMENT.to_owned()), (header::ETAG, etag(version))];
    Ok((StatusCode::OK, AppendHeaders(own), said).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_read_and_answered_in_its_section() {
        let text = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\nm=audio 9 X 0\r\na=mid:3\r\n";
        let fragment = Fragment::read(text);
        let theirs = fragment.credentials().expect("it is whole");
        assert_eq!((&*theirs.ufrag, theirs.password.len()), ("abcd", 22));
        let ours = Credentials { ufrag: "ours".into(), password: "secret".into() };
        let expected = "a=ice-lite\r\na=ice-ufrag:ours\r\na=ice-pwd:secret\r\nm=audio 9 X 0\r\na=mid:3\r\n\
            a=candidate:1\r\na=end-of-candidates\r\n";
        assert_eq!(fragment.answer(&ours, &["candidate:1".to_owned()]), expected);
    }

    #[test]
    fn credentials_that_are_not_whole_are_none() {
        for text in [
            "a=ice-ufrag:abcd",
            "a=ice-ufrag:abc\na=ice-pwd:0123456789012345678901",
            "a=ice-ufrag:abcd\na=ice-pwd:012345678901234567890",
            "a=ice-ufrag:ab d\na=ice-pwd:0123456789012345678901",
        ] {
            assert_eq!(Fragment::read(text).credentials(), None, "{text}");
        }
        assert_eq!(Fragment::read("v=0\r\n"), Fragment::default());
    }
}
