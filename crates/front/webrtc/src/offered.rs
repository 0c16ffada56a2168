//! What WHEP and WHIP have in common: an offer is read, and answered.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use outflow_api::{HttpError, credentials, session};
use outflow_control::Control;
use outflow_door::{Grant, Request, Right};
use outflow_dtls::Fingerprint;
use outflow_engine::message::ControlError;
use outflow_engine::system::random_u32;
use outflow_ice::Credentials;
use outflow_rtp::sdp::{Accepted, Answer, Offer, OfferedMedia, OfferedPayload, Setup};

use crate::sessions::Place;
use crate::settings::NAME;
use crate::site::{Names, Open, Site, secret};

/// The media type of offers and answers.
pub(crate) const SDP: &str = "application/sdp";

/// That of what is said of candidates (RFC 8840).
pub(crate) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// Where sessions are.
const SESSIONS: &str = "/api/v1/webrtc/";

/// Which credentials of a session are meant, by their number.
pub(crate) fn etag(version: u32) -> String {
    format!("\"{version}\"")
}

pub(crate) fn unknown() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "there is no such session: it is over, post a new offer")
}

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

/// A peer's offer, of a stream that it may play or publish.
pub(crate) struct Asked {
    pub(crate) site: Arc<Site>,
    pub(crate) request: Request,
    pub(crate) grant: Grant,
    pub(crate) offer: Offer,
    /// What its certificates are known by.
    pub(crate) fingerprints: Vec<Fingerprint>,
}

/// What a request says of itself: from where it comes, its headers, its query.
pub(crate) type Said<'a> = (SocketAddr, &'a HeaderMap, Option<&'a str>);

impl Asked {
    /// Reads a request at `/PAGE/NAME`, and lets it in by this right.
    pub(crate) async fn read(
        control: &Control,
        (peer, headers, query): Said<'_>,
        (right, page, name): (Right, &str, &str),
        body: &[u8],
    ) -> Result<Self, HttpError> {
        let site = control.shared::<Open>().get().ok_or_else(off)?;
        is_of(headers, SDP)?;
        let path = format!("{page}/{name}");
        let request = credentials::request(peer, headers, (&path, name), query)?;
        let request = Request { protocol: NAME, ..request };
        let grant = control.door().enter(right, &request).await?;
        let (offer, fingerprints) = read(body)?;
        Ok(Asked { site, request, grant, offer, fingerprints })
    }
}

/// Reads an offer, and what its certificates are known by.
fn read(body: &[u8]) -> Result<(Offer, Vec<Fingerprint>), HttpError> {
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

/// What is taken of a section of an offer.
pub(crate) trait Section {
    /// Parameters of the codec, as the answer has them.
    fn fmtp(&self) -> String;

    /// The section, as the answer has it.
    fn accepted<'a>(&'a self, fmtp: &'a str) -> Accepted<'a>;
}

/// A section's feedback that tells which packets are lacking.
pub(crate) const NACK: &str = "nack";

/// A section's feedback that tells which packets of the whole transport came, and when.
pub(crate) const TRANSPORT: &str = "transport-cc";

/// The header extension that its numbers stand in.
pub(crate) const TRANSPORT_NUMBER: &str =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// What of the feedback that is offered is of use: repeated packets, key frames.
const FEEDBACK: [&str; 3] = [NACK, "nack pli", "ccm fir"];

/// That of it which is offered with a codec.
pub(crate) fn feedback(payload: &OfferedPayload) -> Vec<&'static str> {
    FEEDBACK.into_iter().filter(|word| offers(payload, word)).collect()
}

/// Whether a codec is offered with this feedback.
pub(crate) fn offers(payload: &OfferedPayload, word: &str) -> bool {
    payload.feedback.iter().any(|offered| offered == word)
}

/// The number of a header extension in a section, if it is offered.
pub(crate) fn extension(media: &OfferedMedia, uri: &str) -> Option<u8> {
    media.extensions.iter().find(|one| one.kind.uri() == uri).map(|one| one.id)
}

/// The header extension in which packets have a number of the whole transport, if what becomes of them is told.
pub(crate) fn transport(media: &OfferedMedia, payload: &OfferedPayload) -> Option<u8> {
    extension(media, TRANSPORT_NUMBER).filter(|_| offers(payload, TRANSPORT))
}

/// Whether a section can go by the path that all have in common.
pub(crate) fn is_usable(media: &OfferedMedia) -> bool {
    media.is_bundled && media.protocol.ends_with("RTP/SAVPF")
}

/// The answer to an offer of these sections; `level` is where the session's level is asked for.
pub(crate) fn answered<T: Section>(
    control: &Control,
    (site, names): (&Site, &Names),
    sections: &[(&OfferedMedia, Option<T>)],
    (place, level): (&Place, Option<String>),
) -> Response {
    let fmtps: Vec<_> = sections.iter().map(|(_, taken)| taken.as_ref().map(T::fmtp)).collect();
    let media: Vec<_> = sections
        .iter()
        .zip(&fmtps)
        .map(|((media, taken), fmtp)| (*media, taken.as_ref().zip(fmtp.as_deref())))
        .map(|(media, taken)| (media, taken.map(|(taken, fmtp)| taken.accepted(fmtp))))
        .collect();
    let answer = Answer {
        id: u64::from(random_u32()),
        version: 1,
        ufrag: &names.ours.ufrag,
        password: &names.ours.password,
        fingerprint: &site.identity.fingerprint().to_string(),
        active: false,
        candidates: &site.candidates(control),
        media: &media,
    };
    let own = [
        (header::CONTENT_TYPE, SDP.to_owned()),
        (header::LOCATION, format!("{SESSIONS}{}", place.token)),
        (header::ETAG, etag(1)),
        (HeaderName::from_static("accept-patch"), FRAGMENT.to_owned()),
    ];
    let level = AppendHeaders(level.map(|path| (session::HEADER, path)));
    (StatusCode::CREATED, own, level, answer.emit()).into_response()
}
