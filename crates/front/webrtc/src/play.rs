//! WHEP (draft-ietf-wish-whep): a viewer posts an offer, and gets an answer and the address of its session.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{get, patch, post};
use bytes::Bytes;
use outflow_api::guard::own_pages_only;
use outflow_api::{ErrorBody, Http, HttpError, Peer, Raw, session};
use outflow_control::{Control, Playing};
use outflow_door::Right;
use outflow_engine::message::{Delivery, Described, PeerPath, Receiver};
use outflow_engine::system::random_u32;
use outflow_media::Format;
use outflow_media::format::Track;
use outflow_packet::TrackMask;
use outflow_relay::Encapsulation;
use outflow_rtp::limits::SDP_BYTES_MAX;
use outflow_rtp::payload::parameter_sets;
use outflow_rtp::sdp::{Offer, OfferedMedia};
use utoipa_axum::router::OpenApiRouter;

use crate::cross_origin;
use crate::negotiate::{Chosen, choose, codecs};
use crate::offered::{self, Asked, answered};
use crate::page::{assets, plays, publishes};
use crate::port::News;
use crate::publish::{by_bearer, publish};
use crate::restart;
use crate::sessions::{Place, Sessions};
use crate::settings::NAME;
use crate::site::Site;
use crate::viewer::{Fec, OVERHEAD, Viewer};

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(play, crate::publish::publish, change, end),
    tags((name = "webrtc", description = "Browsers: streams out by WHEP, in by WHIP"))
)]
struct Description;

/// What viewers and publishers ask for, and the pages that play and publish. They need no right to control.
pub(crate) fn open() -> OpenApiRouter<Http> {
    // A page of another site must not publish. It may lead to the page that does.
    let publish = post(publish).route_layer(from_fn(by_bearer)).route_layer(from_fn(own_pages_only));
    // Names have slashes, which paths of the document have not.
    OpenApiRouter::with_openapi(<Description as utoipa::OpenApi>::openapi())
        .route("/play/{*stream}", get(plays).post(play).options(cross_origin::first))
        .route("/publish/{*stream}", publish.get(publishes))
        .route("/api/v1/webrtc/{session}", patch(change).delete(end).options(cross_origin::first))
        .layer(DefaultBodyLimit::max(SDP_BYTES_MAX))
        .layer(from_fn(cross_origin::any))
        .merge(assets().into())
}

/// Plays a stream in a browser
///
/// WHEP: the body is an offer to receive, the answer is one to send. `Location` of the answer is the session: DELETE it to
/// end. All candidates are in the answer; those of the viewer are not needed.
#[utoipa::path(
    post, path = "/play/{stream}", tag = "webrtc",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        ("branch" = Option<String>, Query, description = "Name of a branch of the stream"),
        ("level" = Option<u8>, Query, description = "The quality, 1 is the best")
    ),
    request_body(content = String, content_type = "application/sdp", description = "An offer of WebRTC"),
    responses(
        (
            status = CREATED, body = String, content_type = "application/sdp",
            headers(
                ("Location" = String, description = "Path of the session"),
                ("Outflow-Session" = String, description = "Path where its level is asked for and changed")
            )
        ),
        (status = BAD_REQUEST, body = ErrorBody, description = "The body is no offer"),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody, description = "The token gives something else"),
        (status = NOT_FOUND, body = ErrorBody),
        (
            status = UNSUPPORTED_MEDIA_TYPE, body = ErrorBody,
            description = "The body is of another type, or the stream has no codec that the viewer has"
        ),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "A limit is reached")
    )
)]
async fn play(
    State(control): State<Control>,
    Extension(Peer { address: peer, .. }): Extension<Peer>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    Raw(body): Raw,
) -> Result<Response, HttpError> {
    let said = (peer, &headers, query.as_deref());
    let asked = Asked::read(&control, said, (Right::Play, "play", &name), &body).await?;
    let Asked { site, request, grant, offer, fingerprints } = asked;
    let selection = request.selection.clone();
    let described = control.describe(&request.stream, selection, Encapsulation::Tracks).await?;
    let tracks = tracks(described, &request.stream)?;
    let agreed = agree(&offer, &tracks, &request.stream)?;

    let busy = || HttpError::unavailable("more viewers have asked than have come yet: try again in a minute");
    let coming = site.coming.enter(peer.ip()).ok_or_else(busy)?;
    let chosen: Vec<Chosen<'_>> = agreed.iter().filter_map(|(_, chosen)| *chosen).collect();
    let mask = chosen.iter().fold(TrackMask::NONE, |mask, one| mask.with(TrackMask::only(one.track)));
    let receiver = Receiver::new(NAME, request.peer, request.selection.clone());
    let delivery = Delivery::Peer(Encapsulation::Tracks, OVERHEAD, mask);
    let playing = control.play(&grant, receiver, delivery).await?;
    let level = session::open(&control, &playing)?;
    let names = offered::names(&offer)?;
    let (place, restarts) = control.shared::<Sessions>().open(playing.id(), &offer.ufrag)?;

    let sets = |track: u8| tracks.get(usize::from(track)).and_then(|track| parameter_sets(&track.codec));
    let sending = chosen.iter().map(|one| (one.track, one.sending, sets(one.track).map(Bytes::from)));
    let sending: Vec<_> = sending.collect();
    let session = site.session(&control, &names, fingerprints)?;
    let (id, port) = (playing.id(), &site.port);
    let told = (port.news.clone(), Arc::clone(&port.gateways), restarts);
    let protection = chosen.iter().find_map(|one| one.protection);
    let fec = protection.map(|of| Box::new(Fec::new(of, random_u32(), control.shared())));
    let viewer = Viewer::new(id, session, told, &sending, (random_u32(), coming, place.token, fec));
    // It is known there before the viewer knows where to come to.
    let expected = News::Expect(id, names.ours.ufrag.clone(), playing.inbox());
    site.port.news.send(expected).await.map_err(|_| offered::off())?;
    playing.start_peer(Box::new(viewer), PeerPath { udp: Arc::clone(&site.port.udp), peer, own: None });
    let answer = answered(&control, (&site, &names), &agreed, (&place, Some(level)));
    tokio::spawn(stay(playing, place, site));
    Ok(answer)
}

/// Changes a session of WebRTC
///
/// Candidates of the viewer are taken note of, and not needed. With other credentials of its own (ICE restart) it is told
/// those that the relay has from then on.
#[utoipa::path(
    patch, path = "/api/v1/webrtc/{session}", tag = "webrtc",
    params(("session" = String, Path, description = "From Location in the answer to the offer")),
    request_body(content = String, content_type = "application/trickle-ice-sdpfrag"),
    responses(
        (status = NO_CONTENT),
        (
            status = OK, body = String, content_type = "application/trickle-ice-sdpfrag",
            headers(("ETag" = String, description = "Which credentials these are"))
        ),
        (status = NOT_FOUND, body = ErrorBody),
        (status = PRECONDITION_FAILED, body = ErrorBody, description = "If-Match names others"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = ErrorBody),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "Other credentials are not whole")
    )
)]
async fn change(
    State(control): State<Control>,
    Path(session): Path<String>,
    headers: HeaderMap,
    Raw(body): Raw,
) -> Result<Response, HttpError> {
    restart::change(&control, &session, &headers, &body).await
}

/// Ends a session of WebRTC
#[utoipa::path(
    delete, path = "/api/v1/webrtc/{session}", tag = "webrtc",
    params(("session" = String, Path, description = "From Location in the answer to the offer")),
    responses((status = OK), (status = NOT_FOUND, body = ErrorBody))
)]
async fn end(State(control): State<Control>, Path(session): Path<String>) -> Result<StatusCode, HttpError> {
    control.shared::<Sessions>().end(&session).then_some(StatusCode::OK).ok_or_else(offered::unknown)
}

/// Holds a viewer's place until one of both ends it.
pub(crate) async fn stay(mut playing: Playing, mut place: Place, site: Arc<Site>) {
    tokio::select! {
        _ = playing.closed() => {}
        _ = &mut place.ended => {}
    }
    // If the port is gone, so is its table.
    let _ = site.port.news.send(News::Leave(playing.id())).await;
}

fn tracks(described: Described, stream: &str) -> Result<Vec<Track>, HttpError> {
    match described.format {
        Format::Rtp(tracks) => Ok(tracks),
        Format::Ts | Format::Images | Format::Data => {
            let what =
                format!("stream '{stream}' has neither picture nor sound that browsers take: they take RTP");
            Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
        }
    }
}

type Agreed<'a> = Vec<(&'a OfferedMedia, Option<Chosen<'a>>)>;

fn agree<'a>(offer: &'a Offer, tracks: &[Track], stream: &str) -> Result<Agreed<'a>, HttpError> {
    let agreed = choose(offer, tracks, random_u32);
    if agreed.iter().all(|(_, chosen)| chosen.is_none()) {
        let has = codecs(tracks);
        let what = format!("stream '{stream}' has {has}: the offer asks to receive none of that");
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    }
    Ok(agreed)
}
