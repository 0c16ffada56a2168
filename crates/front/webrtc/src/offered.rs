//! What WHEP and WHIP have in common: an offer is read, and answered.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use outflow_api::{HttpError, session};
use outflow_control::Control;
use outflow_dtls::Fingerprint;
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_ice::Credentials;
use outflow_rtp::sdp::{Accepted, Answer, Offer, OfferedMedia, Setup};

use crate::sessions::Place;
use crate::site::{Names, Site, secret};

/// The media type of offers and answers.
pub(crate) const SDP: &str = "application/sdp";

/// That of what is said of candidates (RFC 8840).
pub(crate) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// Where sessions are.
const SESSIONS: &str = "/api/v1/webrtc/";

/// The credentials of a session stay what they are.
const ETAG: &str = "\"1\"";

pub(crate) fn off() -> HttpError {
    HttpError::unavailable("the relay does not serve browsers: give [listen] webrtc, as \"[::]:8189\"")
}

/// Whether the body is of this type.
pub(crate) fn is_of(headers: &HeaderMap, wanted: &str) -> Result<(), HttpError> {
    let given = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let given = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if given.eq_ignore_ascii_case(wanted.as_bytes()) {
        return Ok(());
    }
    let what = format!("the body is of another type: send it as Content-Type: {wanted}");
    Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
}

/// Reads an offer, and what its certificates are known by.
pub(crate) fn read(body: &[u8]) -> Result<(Offer, Vec<Fingerprint>), HttpError> {
    let bad = |what: String| HttpError::new(StatusCode::BAD_REQUEST, what);
    let offer = Offer::parse(body).map_err(|error| bad(error.to_string()))?;
    if offer.setup == Setup::Passive {
        let what =
            "the offer says a=setup:passive: the relay waits, and the peer has to begin (a=setup:actpass)";
        return Err(bad(what.to_owned()));
    }
    let fingerprints: Vec<Fingerprint> =
        offer.fingerprints.iter().filter_map(|text| text.parse().ok()).collect();
    if fingerprints.is_empty() {
        let what = "a=fingerprint:sha-256 of the offer is none: 32 bytes in hexadecimal are wanted";
        return Err(bad(what.to_owned()));
    }
    Ok((offer, fingerprints))
}

/// The names of both ends, of which one is new.
pub(crate) fn names(offer: &Offer) -> Result<Names, ControlError> {
    let theirs = Credentials { ufrag: offer.ufrag.clone(), password: offer.password.clone() };
    Ok(Names { ours: Credentials::of(secret()?), theirs })
}

/// The answer to an offer; `level` is where the session's level is asked for.
pub(crate) fn answered(
    control: &Control,
    (site, names): (&Site, &Names),
    media: &[(&OfferedMedia, Option<Accepted<'_>>)],
    (place, level): (&Place, Option<String>),
) -> Response {
    let answer = Answer {
        id: u64::from(random_u32()),
        version: 1,
        ufrag: &names.ours.ufrag,
        password: &names.ours.password,
        fingerprint: &site.identity.fingerprint().to_string(),
        active: false,
        candidates: &site.candidates(control),
        media,
    };
    let own = [
        (header::CONTENT_TYPE, SDP.to_owned()),
        (header::LOCATION, format!("{SESSIONS}{}", place.name())),
        (header::ETAG, ETAG.to_owned()),
        (HeaderName::from_static("accept-patch"), FRAGMENT.to_owned()),
    ];
    let level = AppendHeaders(level.map(|path| (session::HEADER, path)));
    (StatusCode::CREATED, own, level, answer.emit()).into_response()
}
