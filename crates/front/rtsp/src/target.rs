//! What an address is taken for, and what lets a peer in to it.

use std::net::SocketAddr;

use outflow_control::Control;
use outflow_door::{
    Grant, Judge, Known, Refused, Request, Right, SavedGrant, StreamName, Verdict, query_value,
};
use outflow_packet::Level;
use outflow_relay::Selection;
use outflow_rtsp::server::{Address, Answer, Entry};
use outflow_rtsp::{auth, server};

use super::refusal::Refusal;

/// A stream that the peer may have, and what of it.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) grant: Grant,
    pub(super) selection: Selection,
}

impl Wanted {
    pub(super) fn stream(&self) -> &StreamName {
        self.grant.stream()
    }

    /// What of the stream, in words.
    pub(super) fn words(&self) -> String {
        written(&self.selection)
    }

    /// What another process had put into such words; none if it is not understood here.
    pub(super) fn restore(control: &Control, grant: SavedGrant, words: &str) -> Option<Self> {
        let selection = outflow_door::selection(&words.replace(',', "&")).ok()?;
        Some(Wanted { grant: control.door().restore(grant)?, selection })
    }
}

/// What is wanted is the same whatever lets the peer in to it.
impl PartialEq for Wanted {
    fn eq(&self, other: &Self) -> bool {
        (self.stream(), &self.selection) == (other.stream(), &other.selection)
    }
}

/// What a connection has shown that it may: for each right, what it was let in to last. Players show a password once, and
/// then go on from DESCRIBE to SETUP without it.
#[derive(Debug, Default)]
pub(super) struct Granted([Option<Grant>; 2]);

impl Granted {
    /// It as another process takes it up.
    pub(super) fn save(&self) -> (Option<SavedGrant>, Option<SavedGrant>) {
        let [play, publish] = self.0.each_ref().map(|grant| grant.as_ref().map(Grant::save));
        (play, publish)
    }

    /// That of another process. What is not understood here has to be shown again.
    pub(super) fn restore(
        control: &Control,
        (play, publish): (Option<SavedGrant>, Option<SavedGrant>),
    ) -> Self {
        Granted([play, publish].map(|grant| grant.and_then(|grant| control.door().restore(grant))))
    }
}

/// Whether the peer may come in, and what it wants then.
pub(super) async fn enter(
    control: &Control,
    granted: &mut Granted,
    peer: SocketAddr,
    entry: &Entry,
) -> Result<Answer<Wanted>, Refusal> {
    let request = Request { protocol: "rtsp", ..request(peer, &entry.address)? };
    let (right, Granted([play, publish])) = (right(entry), granted);
    let last = if right == Right::Play { play } else { publish };
    let known =
        last.as_ref().filter(|grant| grant.is_for(right, &request.stream) && control.door().holds(grant));
    let grant = match known {
        Some(grant) => grant.clone(),
        None => check(control, right, entry, &request).await?,
    };
    *last = Some(grant.clone());
    let Request { selection, .. } = request;
    let wanted = written(&selection);
    Ok(Answer::Entered { selection: Wanted { grant, selection }, wanted })
}

fn right(entry: &Entry) -> Right {
    match entry.right {
        server::Right::Play => Right::Play,
        server::Right::Publish => Right::Publish,
    }
}

/// Whether the peer may do what it wants: by a token in the URL, or as password by Basic or Digest.
async fn check(control: &Control, right: Right, entry: &Entry, request: &Request) -> Result<Grant, Refusal> {
    let entered = begin(control, right, entry, request).await;
    entered.map_err(|refused| {
        let may_show_another = matches!(refused, Refused::TokenMissing | Refused::TokenWrong);
        let has_to_wait = matches!(refused, Refused::TooOften { .. });
        let Refusal(reply) = refused.into();
        Refusal(match (may_show_another, has_to_wait) {
            (true, _) => reply.and_challenge(),
            (false, true) => reply.and_leave(),
            (false, false) => reply,
        })
    })
}

/// Asks the door; what judges passwords is used at once.
fn begin<'a>(
    control: &'a Control,
    right: Right,
    entry: &Entry,
    request: &'a Request,
) -> impl Future<Output = Result<Grant, Refused>> + Send + use<'a> {
    let judge = |known: Known<'_>| match &entry.shown {
        Some(shown) => match shown.judge([password(known)]) {
            auth::Verdict::Right => Verdict::Right,
            auth::Verdict::Wrong => Verdict::Wrong,
            auth::Verdict::Stale => Verdict::Stale,
        },
        None => Verdict::Wrong,
    };
    let password = entry.shown.as_ref().map(|_| &judge as Judge<'_>);
    control.door().enter_judged(right, request, password)
}

/// A token as a password.
fn password(known: Known<'_>) -> auth::Known<'_> {
    match known {
        Known::Text(token) => auth::Known::Password(token),
        Known::Hashed { name, sha256, ha1 } => auth::Known::Hashed { sha256, user: name, ha1 },
    }
}

/// What an address asks for: as its query says, or the path that DESCRIBE gives.
fn request(peer: SocketAddr, address: &Address) -> Result<Request, Refused> {
    match &address.wanted {
        Some(wanted) => {
            let token = query_value(&address.query, "token");
            Ok(Request { token, ..Request::parse(peer, &address.name, wanted)? })
        }
        None => Request::parse(peer, &address.name, &address.query),
    }
}

/// What is wanted of a stream, as it is put into the path of its tracks.
fn written(wanted: &Selection) -> String {
    let branch = wanted.branch.as_ref().map(|branch| format!("branch={branch}"));
    let view = Some(wanted.view.to_string().replace('&', ",")).filter(|view| !view.is_empty());
    let level = (wanted.level != Level::BEST).then(|| format!("level={}", wanted.level));
    branch.into_iter().chain(level).chain(view).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 5000))
    }

    fn of(url: &str) -> (String, Option<usize>, Option<String>) {
        let address = Address::of(&Url::parse(url).unwrap());
        let request = request(peer(), &address).unwrap();
        (request.stream.to_string(), address.track, request.token)
    }

    #[test]
    fn streams_tracks_and_tokens_are_found() {
        let stage = || "live/stage".to_owned();
        assert_eq!(of("rtsp://h/live/stage"), (stage(), None, None));
        assert_eq!(of("rtsp://h:8554/live/stage/"), (stage(), None, None));
        assert_eq!(of("rtsp://h/live/stage/trackID=1"), (stage(), Some(1), None));
        assert_eq!(of("rtsp://h/live/sta%67e?token=a%2Fb"), (stage(), None, Some("a/b".to_owned())));
        let appended = of("rtsp://h/live/stage?token=x/trackID=2");
        assert_eq!(appended, (stage(), Some(2), Some("x".to_owned())));
        for none in ["rtsp://h", "rtsp://h/trackID=x", "rtsp://h/a%20b/trackID=1"] {
            let refused = request(peer(), &Address::of(&Url::parse(none).unwrap()));
            assert!(matches!(refused, Err(Refused::BadName(_))), "{none}");
        }
    }

    #[test]
    fn what_is_wanted_stays_with_the_tracks_of_its_description() {
        let asked = "rtsp://h/a/s?token=x&level=3&branch=small&part=64x32+8+0&gray=1";
        let asked = request(peer(), &Address::of(&Url::parse(asked).unwrap())).unwrap();
        let written = written(&asked.selection);
        assert_eq!(written, "branch=small,level=3,part=64x32+8+0,gray=1");
        let track = Url::parse(&format!("rtsp://h/a/s/wanted:{written}/trackID=1")).unwrap();
        let address = Address::of(&track);
        let target = request(peer(), &address).unwrap();
        assert_eq!((&*target.stream, address.track), ("a/s", Some(1)));
        let selection = target.selection;
        assert_eq!(selection.branch.as_deref(), Some("small"));
        assert_eq!(selection.view.to_string(), "part=64x32+8+0&gray=1");
        assert_eq!(selection.level.number(), 3);
        assert_eq!(super::written(&selection), written);
        assert_eq!(outflow_door::selection(&written.replace(',', "&")).unwrap(), selection);
        assert!(request(peer(), &Address::of(&Url::parse("rtsp://h/s?size=big").unwrap())).is_err());
    }
}
