//! `GET /NAME.ts`: a stream as MPEG-TS over HTTP, without end.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream as StdUnixStream;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use bytes::BytesMut;
use outflow_api::{ErrorBody, HttpError, Peer, credentials, session};
use outflow_control::{Control, Playing};
use outflow_door::{Request, Right};
use outflow_engine::message::{Delivery, Framing, Receiver, WriteSide};
use outflow_relay::Encapsulation;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::names::PLAIN;

/// The media type of a transport stream.
const MPEG_TS: &str = "video/mp2t";

/// What a request of `peer` asks for, if it is a stream, and whether only the answer's head is wanted (HEAD). What
/// is no request for a stream that could be there is answered by [`through_http`].
pub(super) fn plain_request(
    peer: SocketAddr,
    request: &httparse::Request<'_, '_>,
) -> Option<(Request, bool)> {
    let head_only = match request.method? {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let target = request.path?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked = Request::parse(peer, path.strip_prefix('/')?.strip_suffix(".ts")?, query).ok()?;
    let authorization =
        request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"));
    let token = authorization.and_then(|header| credentials::in_header(header.value)).or(asked.token);
    Some((Request { token, ..asked }, head_only))
}

/// Answers a request for a stream on the connection itself: what follows the head is for the worker
/// to send. `None` if there is nothing to follow.
pub(super) async fn on_own_connection(
    control: Control,
    mut socket: TcpStream,
    (request, head_only): (Request, bool),
) -> Option<(Playing, WriteSide)> {
    let (playing, own) = match open(&control, request).await {
        Ok(opened) => opened,
        Err(error) => {
            // A peer that does not take the answer has nothing to lose by that.
            let _ = socket.write_all(&error.on_the_wire()).await;
            let _ = socket.shutdown().await;
            return None;
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {MPEG_TS}\r\nCache-Control: no-store\r\n\
         {own}Access-Control-Allow-Origin: *\r\nConnection: close\r\n\r\n",
        own = lines(&own),
    );
    if socket.write_all(head.as_bytes()).await.is_err() || head_only {
        return None;
    }
    Some((playing, WriteSide::Own(socket.into_std().ok()?.into())))
}

/// Has the worker send the stream, until one of both ends it.
pub(super) async fn hand_over(mut playing: Playing, connection: WriteSide) {
    playing.start(Some(connection));
    playing.closed().await;
}

/// A stream as MPEG-TS, from the newest key frame on and without end
///
/// Where the connection is plain and new, it is served by `on_own_connection` instead.
#[utoipa::path(
    get, path = "/{stream}.ts", tag = "media",
    params(
        ("stream" = String, Path, description = "Name of the stream"),
        ("branch" = Option<String>, Query, description = "Name of a branch of the stream"),
        ("level" = Option<u8>, Query, description = "The quality, 1 is the best"),
        ("part" = Option<String>, Query, description = "Of images: a part, as 640x360+16+0"),
        ("size" = Option<String>, Query, description = "Of images: a size to fit into, as 320x180"),
        ("gray" = Option<String>, Query, description = "Of images: 1 for those without colour")
    ),
    responses(
        (
            status = OK, body = Vec<u8>, content_type = "video/mp2t",
            headers(
                ("Outflow-Session" = String, description = "Path of the player's own session"),
                ("Outflow-Left-Out" = Option<String>, description = "Tracks that MPEG-TS has no place for")
            )
        ),
        (status = UNAUTHORIZED, body = ErrorBody),
        (status = FORBIDDEN, body = ErrorBody, description = "The token gives something else"),
        (status = NOT_FOUND, body = ErrorBody),
        (status = SERVICE_UNAVAILABLE, body = ErrorBody, description = "A limit is reached")
    )
)]
pub(super) async fn through_http(
    State(control): State<Control>,
    Extension(Peer { address: peer, .. }): Extension<Peer>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let name = path.strip_suffix(".ts").ok_or_else(|| HttpError::nothing_at(&path))?;
    let request = credentials::request(peer, &headers, (&path, name), query.as_deref())?;
    let (playing, own) = open(&control, request).await?;
    let body = body(playing)?;
    let headers = [(header::CONTENT_TYPE, MPEG_TS), (header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::OK, headers, AppendHeaders(own), body).into_response())
}

/// What the worker writes to one end of a socket pair, as a body that is read from the other.
fn body(playing: Playing) -> Result<Body, HttpError> {
    let pair = || {
        let (ours, workers) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok::<_, std::io::Error>((UnixStream::from_std(ours)?, workers))
    };
    let (ours, workers) = pair().map_err(|e| HttpError::system("making a socket pair", &e))?;
    playing.start(Some(WriteSide::Own(workers.into())));
    // The receiver leaves when hyper drops the body.
    let chunks = futures_util::stream::unfold((ours, playing, BytesMut::new()), |mut state| async {
        let (ours, _, buffer) = &mut state;
        buffer.reserve(64 << 10);
        match ours.read_buf(buffer).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(buffer.split().freeze()), state)),
            Err(error) => Some((Err(error), state)),
        }
    });
    Ok(Body::from_stream(chunks))
}

/// The header of an answer that names what has no place in a transport stream.
const LEFT_OUT: &str = "Outflow-Left-Out";

/// What an answer's head says of this player alone.
type Own = Vec<(&'static str, String)>;

/// The same, for connections that are not hyper's.
fn lines(own: &Own) -> String {
    own.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// A place at a stream, and what there is to say of it: where the player's session can be asked, and what
/// the player does not get.
async fn open(control: &Control, request: Request) -> Result<(Playing, Own), HttpError> {
    let request = Request { protocol: PLAIN, ..request };
    let grant = control.door().enter(Right::Play, &request).await?;
    let receiver = Receiver::new("http-ts", request.peer, request.selection);
    let delivery = Delivery::Bytes(Encapsulation::Ts, Framing::Raw);
    let playing = control.play(&grant, receiver, delivery).await?;
    let mut own = vec![(session::HEADER, session::open(control, &playing)?)];
    if !playing.left_out().is_empty() {
        // Names are as descriptions have them: what a header cannot hold is left out.
        let mut names = playing.left_out().join(", ");
        names.retain(|c| c == ' ' || c.is_ascii_graphic());
        own.push((LEFT_OUT, names));
    }
    Ok((playing, own))
}
