//! What a request's URL is about.

use outflow_door::{Refused, Request, query_value};
use outflow_packet::Level;
use percent_encoding::percent_decode_str;
use url::Url;

/// What stands before a track's number in the URLs that DESCRIBE gives.
pub(super) const TRACK: &str = "trackID=";

/// What stands before what of a stream is wanted, in the URLs that DESCRIBE gives.
const WANTED: &str = "wanted:";

/// A stream, perhaps one of its tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Which stream, and what of it: as the query says, or the path that DESCRIBE gives.
    pub(super) request: Request,
    /// The track's number, if one is named as [`TRACK`] has it.
    pub(super) track: Option<usize>,
}

impl Target {
    /// What a URL is about.
    ///
    /// # Errors
    /// It names what cannot be a stream, or asks for a view that cannot be read.
    pub(super) fn of(url: &Url) -> Result<Target, Refused> {
        // Clients append to the query, too, if there is one: rtsp://host/name?token=x/trackID=0.
        let (query, in_query) = split_track(url.query().unwrap_or_default());
        let (name, selection, in_path) = split(url);
        let request = match selection {
            Some(selection) => {
                let token = query_value(query, "token");
                Request { token, ..Request::parse(name, &selection.replace(',', "&"))? }
            }
            None => Request::parse(name, query)?,
        };
        Ok(Target { request, track: in_path.or(in_query) })
    }
}

/// What a URL's path names, decoded: a stream, or something below it.
pub(super) fn path_of(url: &Url) -> String {
    percent_decode_str(split(url).0).decode_utf8_lossy().into_owned()
}

/// The parts of a URL's path: the stream's name, what [`base`] has put behind it, and the track's number.
fn split(url: &Url) -> (&str, Option<&str>, Option<usize>) {
    let (path, track) = split_track(url.path());
    let (path, selection) = split_selection(path);
    (path.trim_matches('/'), selection, track)
}

/// Takes `/trackID=n` off the end.
fn split_track(text: &str) -> (&str, Option<usize>) {
    let (rest, last) = text.rsplit_once('/').unwrap_or(("", text));
    match last.strip_prefix(TRACK).and_then(|number| number.parse().ok()) {
        Some(track) => (rest, Some(track)),
        None => (text, None),
    }
}

/// Takes what [`base`] has put at the end of a path off again.
fn split_selection(path: &str) -> (&str, Option<&str>) {
    let (rest, last) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
    match last.strip_prefix(WANTED) {
        Some(wanted) => (rest, Some(wanted)),
        None => (path, None),
    }
}

/// The URL without what must not come back in answers, query and trailing slashes. What of the stream
/// is wanted stands in its path then, because clients leave a query behind.
pub(super) fn base(url: &Url) -> String {
    let wanted = Target::of(url).map(|target| target.request.selection).unwrap_or_default();
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let (path, _) = split_track(url.path());
    let (path, _) = split_selection(path);
    let path = path.trim_end_matches('/').to_owned();
    let branch = wanted.branch.map(|branch| format!("branch={branch}"));
    let view = Some(wanted.view.to_string().replace('&', ",")).filter(|view| !view.is_empty());
    let level = (wanted.level != Level::BEST).then(|| format!("level={}", wanted.level));
    let wanted: Vec<_> = branch.into_iter().chain(level).chain(view).collect();
    url.set_path(&match wanted.is_empty() {
        true => path,
        false => format!("{path}/{WANTED}{}", wanted.join(",")),
    });
    format!("{}/", url.as_str().trim_end_matches('/'))
}

/// Whether a publisher's SETUP of `url` means the media whose `a=control` is `control`, of the
/// session announced at `announced` (RFC 2326 appendix C.1.1).
pub(super) fn is_control(url: &Url, announced: &Url, control: &str) -> bool {
    let url = url.as_str().trim_end_matches('/');
    if control.contains("://") {
        return url == control.trim_end_matches('/');
    }
    let base = announced.as_str().trim_end_matches('/');
    url.strip_prefix(base).is_some_and(|rest| rest.trim_start_matches('/') == control.trim_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> (String, Option<usize>, Option<String>) {
        let target = Target::of(&Url::parse(url).unwrap()).unwrap();
        (target.request.stream.to_string(), target.track, target.request.token)
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
            assert!(matches!(Target::of(&Url::parse(none).unwrap()), Err(Refused::BadName(_))), "{none}");
        }
        assert_eq!(path_of(&Url::parse("rtsp://h/a/str%65amid=0?token=x").unwrap()), "a/streamid=0");
    }

    #[test]
    fn bases_end_with_one_slash_and_hold_no_token() {
        let base = |url: &str| base(&Url::parse(url).unwrap());
        assert_eq!(base("rtsp://h:1/s?token=x"), "rtsp://h:1/s/");
        assert_eq!(base("rtsp://h/s/trackID=0"), "rtsp://h/s/");
        assert_eq!(base("rtsp://h/s//"), "rtsp://h/s/");
    }

    #[test]
    fn what_is_wanted_stays_with_the_tracks_of_its_description() {
        let asked = "rtsp://h/a/s?token=x&level=3&branch=small&part=64x32+8+0&gray=1";
        let base = base(&Url::parse(asked).unwrap());
        assert_eq!(base, "rtsp://h/a/s/wanted:branch=small,level=3,part=64x32+8+0,gray=1/");
        let track = Url::parse(&format!("{base}trackID=1")).unwrap();
        let target = Target::of(&track).unwrap();
        assert_eq!((&*target.request.stream, target.track), ("a/s", Some(1)));
        let selection = target.request.selection;
        assert_eq!(selection.branch.as_deref(), Some("small"));
        assert_eq!(selection.view.to_string(), "part=64x32+8+0&gray=1");
        assert_eq!(selection.level.number(), 3);
        assert_eq!(super::base(&track), base);
        assert!(Target::of(&Url::parse("rtsp://h/s?size=big").unwrap()).is_err());
    }

    #[test]
    fn publishers_name_their_media_as_announced() {
        let is = |url: &str, control: &str| {
            is_control(&Url::parse(url).unwrap(), &Url::parse("rtsp://h/s").unwrap(), control)
        };
        assert!(is("rtsp://h/s/streamid=0", "streamid=0"));
        assert!(is("rtsp://h/s/stream=1", "rtsp://h/s/stream=1"));
        assert!(!is("rtsp://h/s/streamid=10", "streamid=1"));
        assert!(!is("rtsp://h/other/streamid=0", "streamid=0"));
    }
}
