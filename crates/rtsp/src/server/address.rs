//! What a request's URL names.

use percent_encoding::percent_decode_str;
use url::Url;

/// What stands before a track's number in the URLs that DESCRIBE gives.
pub(super) const TRACK: &str = "trackID=";

/// What stands before what of a stream is wanted, in the URLs that DESCRIBE gives.
const WANTED: &str = "wanted:";

/// A stream, perhaps one of its tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The stream's name as it stands in the path, percent-encoded.
    pub name: String,
    /// The query, without a track.
    pub query: String,
    /// What of the stream is wanted, as a query, if the path says that: it counts instead of the query's.
    pub wanted: Option<String>,
    /// The track's number, if one is named as [`DESCRIBE`](super::Question::Describe)'s URLs have it.
    pub track: Option<usize>,
}

impl Address {
    /// What a URL names.
    pub fn of(url: &Url) -> Address {
        // Clients append to the query, too, if there is one: rtsp://host/name?token=x/trackID=0.
        let (query, in_query) = split_track(url.query().unwrap_or_default());
        let (name, wanted, in_path) = split(url);
        Address {
            name: name.to_owned(),
            query: query.to_owned(),
            wanted: wanted.map(|wanted| wanted.replace(',', "&")),
            track: in_path.or(in_query),
        }
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
/// is `wanted` stands in its path then, because clients leave a query behind.
pub(super) fn base(url: &Url, wanted: &str) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let (path, _) = split_track(url.path());
    let (path, _) = split_selection(path);
    let path = path.trim_end_matches('/').to_owned();
    url.set_path(&match wanted.is_empty() {
        true => path,
        false => format!("{path}/{WANTED}{wanted}"),
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

/// Whether a Digest answer for `uri` is for the stream at `asked`. Some clients compute all of them for the URL
/// that they were given, whatever the request is about.
pub(super) fn is_about(uri: &str, asked: &Url) -> bool {
    let parsed =
        Url::parse(uri).or_else(|_| Url::parse(&format!("rtsp://host/{}", uri.trim_start_matches('/'))));
    parsed.is_ok_and(|url| {
        let (shown, stream) = (path_of(&url), path_of(asked));
        // ffmpeg sets up a publisher's media by URLs below the stream's own.
        let below =
            |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('/'));
        shown == stream || below(&stream, &shown) || below(&shown, &stream)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_without_its_track() {
        assert_eq!(path_of(&Url::parse("rtsp://h/a/str%65amid=0?token=x").unwrap()), "a/streamid=0");
    }

    #[test]
    fn bases_end_with_one_slash_and_hold_no_token() {
        let base = |url: &str| base(&Url::parse(url).unwrap(), "");
        assert_eq!(base("rtsp://h:1/s?token=x"), "rtsp://h:1/s/");
        assert_eq!(base("rtsp://h/s/trackID=0"), "rtsp://h/s/");
        assert_eq!(base("rtsp://h/s//"), "rtsp://h/s/");
    }

    #[test]
    fn what_is_wanted_stays_in_the_path_of_tracks() {
        let url = Url::parse("rtsp://h/a/s?token=x&level=3").unwrap();
        let below = base(&url, "branch=small,level=3");
        assert_eq!(below, "rtsp://h/a/s/wanted:branch=small,level=3/");
        let track = Url::parse(&format!("{below}trackID=1")).unwrap();
        let address = Address::of(&track);
        assert_eq!((&*address.name, address.track), ("a/s", Some(1)));
        assert_eq!(address.wanted.as_deref(), Some("branch=small&level=3"));
        assert_eq!(base(&track, "branch=small,level=3"), below);
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
