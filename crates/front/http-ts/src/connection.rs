//! Connections: their first request is read, and they are sent on.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::{Extension, Router};
use bytes::{Buf, BytesMut};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outflow_api::Peer;
use outflow_api::limits::REQUEST_TIMEOUT;
use outflow_control::Control;
use outflow_door::local::user_of;
use outflow_door::{Permit, Request};
use outflow_engine::limits::TCP_USER_TIMEOUT;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::play;
use crate::limits::{HTTP_HEAD_BYTES, TCP_KEEPALIVE_AFTER, TCP_KEEPALIVE_EVERY};

/// What a connection's first request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum FirstRequest {
    /// A stream, on this connection, plainly.
    Stream {
        /// Which one.
        request: Request,
        /// Only the answer's head is wanted (HEAD).
        head_only: bool,
    },
    /// Something for hyper, malformed requests included: it knows the right answer.
    Http,
}

/// Reads the first request of `peer`'s connection (RFC 9112 section 3) from all that has been received;
/// `None` if its head is not complete yet. Of a head beyond [`HTTP_HEAD_BYTES`] nothing is made.
pub fn first_request(peer: SocketAddr, received: &[u8]) -> Option<FirstRequest> {
    let head = &received[..received.len().min(HTTP_HEAD_BYTES)];
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => Some(match play::plain_request(peer, &request) {
            Some((request, head_only)) => FirstRequest::Stream { request, head_only },
            None => FirstRequest::Http,
        }),
        Ok(httparse::Status::Partial) if head.len() < HTTP_HEAD_BYTES => None,
        Ok(httparse::Status::Partial) | Err(_) => Some(FirstRequest::Http),
    }
}

/// Serves all peers that connect to `listener`, with TLS if there is an acceptor. Does not return.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, control: Control, router: Router) {
    let door = control.door().clone();
    outflow_door::accept_to_the_last(listener, door, move |socket, peer, mut permit| {
        if let Err(error) = tune(&socket) {
            tracing::debug!(%peer, %error, "an HTTP connection ended before it began");
            return;
        }
        let (router, over) = (router.clone(), permit.over());
        match &tls {
            Some(tls) => spawn(encrypted(tls.clone(), socket, peer, router, permit), over),
            None => spawn(plain(control.clone(), socket, peer, router, permit), over),
        }
    })
    .await;
}

/// Serves a connection, until it is over if it has to hurry.
fn spawn(
    serving: impl Future<Output = ()> + Send + 'static,
    over: Option<impl Future<Output = ()> + Send + 'static>,
) {
    match over {
        None => drop(tokio::spawn(serving)),
        Some(over) => drop(tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = over => {}
            }
        })),
    }
}

/// A peer that is gone without a word, or takes nothing of what it asked for, is found out.
fn tune(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    let keep_alive = TcpKeepalive::new().with_time(TCP_KEEPALIVE_AFTER).with_interval(TCP_KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keep_alive)?;
    socket.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT))
}

async fn plain(control: Control, mut socket: TcpStream, peer: SocketAddr, router: Router, permit: Permit) {
    let mut head = BytesMut::new();
    match tokio::time::timeout(REQUEST_TIMEOUT, read_first(peer, &mut socket, &mut head)).await {
        Ok(Some(FirstRequest::Stream { request, head_only })) => {
            // Thousands may wait here: for no longer than needed do they hold more than they need.
            drop((head, router));
            let Some((playing, connection)) =
                Box::pin(play::on_own_connection(control, socket, (request, head_only))).await
            else {
                return;
            };
            play::hand_over(playing, connection).await;
        }
        Ok(Some(FirstRequest::Http)) => {
            let peer = peer_of(&socket, peer);
            Box::pin(hyper(Rewound { head, io: socket }, peer, router)).await;
        }
        Ok(None) => {}
        Err(_) => permit.count_slow(),
    }
}

/// Which user of this machine a peer is, is asked for requests to the API alone: players come by thousands.
fn peer_of(socket: &TcpStream, address: SocketAddr) -> Peer {
    let user = socket.local_addr().ok().and_then(|here| user_of(address, here));
    Peer { address, user }
}

async fn encrypted(tls: TlsAcceptor, socket: TcpStream, peer: SocketAddr, router: Router, permit: Permit) {
    let peer = peer_of(&socket, peer);
    match tokio::time::timeout(REQUEST_TIMEOUT, tls.accept(socket)).await {
        Ok(Ok(io)) => hyper(Rewound { head: BytesMut::new(), io }, peer, router).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => permit.count_slow(),
    }
}

/// The first request; `None` if the peer leaves before it is there.
async fn read_first(peer: SocketAddr, socket: &mut TcpStream, head: &mut BytesMut) -> Option<FirstRequest> {
    loop {
        match socket.read_buf(head).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
        if let Some(request) = first_request(peer, head) {
            return Some(request);
        }
    }
}

async fn hyper(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer, router: Router) {
    let router = router.layer(Extension(peer));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(HTTP_HEAD_BYTES)
        .serve_connection(TokioIo::new(io), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

/// A connection of which something has been read already.
struct Rewound<T> {
    head: BytesMut,
    io: T,
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewound<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.head.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buf);
        }
        let length = self.head.len().min(buf.remaining());
        buf.put_slice(&self.head[..length]);
        self.head.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewound<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 5000))
    }

    #[test]
    fn only_a_plain_request_for_a_stream_leaves_http() {
        let request = b"GET /live/stage.ts?token=a%20b HTTP/1.1\r\nHost: h\r\n\r\n";
        let expected = Request::parse(peer(), "live/stage", "token=a%20b").expect("a request");
        assert_eq!(
            first_request(peer(), request),
            Some(FirstRequest::Stream { request: expected, head_only: false })
        );
        assert_eq!(first_request(peer(), &request[..request.len() - 1]), None);
        for other in [
            "PUT /stage.ts HTTP/1.1\r\n\r\n",
            "GET /stage HTTP/1.1\r\n\r\n",
            "GET /%00.ts HTTP/1.1\r\n\r\n",
            "\x16\x03",
        ] {
            assert_eq!(first_request(peer(), other.as_bytes()), Some(FirstRequest::Http), "{other:?}");
        }
    }

    #[test]
    fn the_limit_of_a_head_does_not_depend_on_how_it_arrives() {
        let mut request = b"GET /stage.ts HTTP/1.1\r\nX: ".to_vec();
        request.resize(HTTP_HEAD_BYTES, b'x');
        request.extend_from_slice(b"\r\n\r\n");
        assert_eq!(first_request(peer(), &request[..HTTP_HEAD_BYTES - 1]), None);
        assert_eq!(first_request(peer(), &request[..HTTP_HEAD_BYTES]), Some(FirstRequest::Http));
        assert_eq!(first_request(peer(), &request), Some(FirstRequest::Http));
    }
}
