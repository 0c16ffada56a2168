//! WHIP (RFC 9725): a publisher posts an offer, and gets an answer and the address of its session.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use outflow_api::{ErrorBody, HttpError, Peer, Raw};
use outflow_control::{Control, HeardOfAll, Member, Publishers, Upgrade};
use outflow_door::Right;
use outflow_engine::message::{ReceiverId, SourceId};
use outflow_engine::system::random_u32;
use outflow_media::ecn::Mark;
use outflow_media::{Format, Time};
use outflow_udp::{Parcels, Segments, inbox};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::accept::{Taken, take};
use crate::handover::PARTS;
use crate::ingest::{Ingest, Output, Receiving};
use crate::limits::PARCELS_MAX;
use crate::offered::{self, Asked, answered};
use crate::port::News;
use crate::sessions::{Place, Sessions};
use crate::site::Site;

/// Publishes a stream from a browser, or from a program that speaks WHIP
///
/// The body is an offer to send, the answer is one to receive. `Location` of the answer is the session: DELETE it to end.
/// All candidates are in the answer; those of the publisher are not needed.
#[utoipa::path(
    post, path = "/publish/{stream}", tag = "webrtc",
    params(("stream" = String, Path, description = "Name of a stream whose source is \"push\"")),
    request_body(content = String, content_type = "application/sdp", description = "An offer of WebRTC"),
    responses(
        (
            status = CREATED, body = String, content_type = "application/sdp",
            headers(("Location" = String, description = "Path of the session"))
        ),
        (status = BAD_REQUEST, body = ErrorBody, description = "The body is no offer"),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody, description = "The token gives something else"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = CONFLICT, body = ErrorBody, description = "It is published already, or takes no publisher"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = ErrorBody, description = "The body is of another type"),
        (status = UNPROCESSABLE_ENTITY, body = ErrorBody, description = "No codec of the offer is known"),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "A limit is reached")
    )
)]
pub(crate) async fn publish(
    State(control): State<Control>,
    Extension(Peer { address: peer, .. }): Extension<Peer>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    Raw(body): Raw,
) -> Result<Response, HttpError> {
    let said = (peer, &headers, query.as_deref());
    let asked = Asked::read(&control, said, (Right::Publish, "publish", &name), &body).await?;
    let Asked { site, grant, offer, fingerprints, .. } = asked;
    let layers_max = Publishers::streams(&control, grant.stream()).len();
    let sections = take(&offer, layers_max);
    let taken: Vec<Taken<'_>> = sections.iter().filter_map(|(_, taken)| *taken).collect();
    if taken.is_empty() {
        let what =
            "the offer sends nothing that the relay takes: it knows H264, H265, VP8, VP9, AV1 and opus";
        return Err(HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, what));
    }
    let format = Format::Rtp(taken.iter().map(Taken::track).collect());
    let layers = taken.iter().map(Taken::layers).max().unwrap_or(1);
    let peer = format!("WebRTC from {peer}");
    let publishers = Publishers::open(&control, &grant, vec![format; layers], &peer).await?;
    let offered = taken.iter().map(Taken::offered_layers).max().unwrap_or(1);
    if offered > layers && layers_max > 1 {
        tracing::warn!(
            stream = name,
            offered,
            layers,
            "a publisher's layers that have no rendition are refused"
        );
    }
    let names = offered::names(&offer)?;
    let id = number(publishers.id());
    let (place, restarts) = control.shared::<Sessions>().open(id, &offer.ufrag)?;
    let session = site.session(&control, &names, fingerprints)?;

    let receiving: Vec<Receiving> =
        (0..).zip(&taken).flat_map(|(track, taken)| taken.receiving(track)).collect();
    let gateways = Arc::clone(&site.port.gateways);
    let ingest = Ingest::new(control.now(), (session, gateways, restarts), random_u32(), &receiving);
    let wake = Arc::new(Notify::new());
    let ring = Arc::clone(&wake);
    let (inbox, parcels) = inbox(PARCELS_MAX, Arc::new(move || ring.notify_one()));
    // It is known there before the publisher knows where to come to.
    let expected = News::Expect(id, names.ours.ufrag.clone(), inbox);
    site.port.news.send(expected).await.map_err(|_| offered::off())?;
    let answer = answered(&control, (&site, &names), &sections, (&place, None));
    let publication = Publication { control, site, publishers, ingest, place, id, own: None };
    tokio::spawn(publication.run(parcels, wake));
    Ok(answer)
}

/// Says that a token is shown as a bearer token (RFC 6750, section 3; RFC 9725, section 4.7). For Basic, which other
/// clients are told, a browser would ask its user for a password before the page hears of it.
pub(crate) async fn by_bearer(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if let Some(challenge) = response.headers_mut().get_mut(header::WWW_AUTHENTICATE) {
        *challenge = HeaderValue::from_static("Bearer realm=\"outflow\"");
    }
    response
}

/// What a publisher is called at the port, beside viewers: they are numbered together, and that high none comes.
fn number(source: SourceId) -> ReceiverId {
    source | 1 << 63
}

/// A publisher that has been answered.
struct Publication {
    control: Control,
    site: Arc<Site>,
    publishers: Publishers,
    ingest: Ingest,
    place: Place,
    id: ReceiverId,
    /// The own address that it sends to, if answers have to come from there.
    own: Option<IpAddr>,
}

impl Publication {
    /// Takes what comes until one of both ends it.
    async fn run(mut self, parcels: Parcels, wake: Arc<Notify>) {
        let mut heard = self.publishers.take_feedback();
        let mut member = self.control.shared::<Upgrade>().join(PARTS);
        let why = self.take(parcels, &wake, (&mut heard, &mut member)).await;
        self.ingest.close(self.control.now());
        self.settle();
        tracing::info!(id = self.publishers.id(), why, "a publisher of WebRTC has ended");
        // If the port is gone, so is its table.
        let _ = self.site.port.news.send(News::Leave(self.id)).await;
    }

    async fn take(
        &mut self,
        parcels: Parcels,
        wake: &Notify,
        (heard, member): (&mut HeardOfAll, &mut Member),
    ) -> String {
        loop {
            if let Some(why) = self.settle() {
                return why;
            }
            let due = self.instant(self.ingest.due());
            tokio::select! {
                () = wake.notified() => {
                    while let Some(mut parcel) = parcels.take() {
                        let now = self.control.now();
                        for it in parcel.iter() {
                            if !self.site.port.gateways.are_at(it.from) {
                                self.own = it.to;
                            }
                            self.ingest.handle_datagram(now, it.from, it.bytes);
                        }
                        if let Some(why) = self.settle() {
                            return why;
                        }
                    }
                }
                () = sleep_until(due) => self.ingest.handle_timeout(self.control.now()),
                (quality, track) = heard.key_frame() => self.ingest.want_key_frame(quality as u8, track),
                // It comes back to the other process, and takes over from itself.
                () = member.asked() => if member.give(None).await {
                    return "another process of the relay has taken over".to_owned();
                },
                why = self.publishers.closed() => return why.to_string(),
                _ = &mut self.place.ended => return "it has ended its session".to_owned(),
            }
        }
    }

    /// Does what the state machine says. Answers why it is over, if it is.
    fn settle(&mut self) -> Option<String> {
        let mut over = None;
        while let Some(output) = self.ingest.poll() {
            match output {
                // A queue that is full loses it, and counts that; a closed one is told by the publisher.
                Output::Media(quality, track, packet) => {
                    self.publishers.try_send(quality.map(usize::from), track, &packet);
                }
                Output::Rtcp(quality, track, packet) => {
                    self.publishers.rtcp(quality.map(usize::from), track, &packet);
                }
                Output::Send(to, bytes) => {
                    let segment_bytes = bytes.len();
                    // A gateway is where the kernel finds the right address by itself.
                    let from = self.own.filter(|_| !self.site.port.gateways.are_at(to));
                    let segments = Segments { to, from, mark: Mark::None, segment_bytes, bytes: &bytes };
                    // What finds no room is asked for, or said, again.
                    let _ = self.site.port.udp.try_send(&segments);
                }
                Output::Valid(at) => self.tell(News::Confirm(self.id, at)),
                Output::Invalid(at) => self.tell(News::Forget(self.id, at)),
                Output::Ended(why) => over = Some(why),
            }
        }
        over
    }

    fn tell(&self, news: News) {
        // Without room it is found by the name in its next check.
        let _ = self.site.port.news.try_send(news);
    }

    fn instant(&self, at: Time) -> Instant {
        Instant::from_std(self.control.epoch() + at.since(Time::ZERO))
    }
}
