//! The RTSP server: players and publishers over RTSP 1.0 (RFC 2326), with media over UDP or
//! within the connection.
//!
//! The protocol is that of [`outflow_rtsp::server`]; here are its sockets, and what it asks of the relay.
//! A connection is read by a task of its own. Once a player is served within it, its write side
//! is the worker's, and answers go out through [`Playing::inject`](outflow_control::Playing).

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane owns time, tasks and I/O"
)]

mod connection;
mod limits;
mod pace;
mod play;
mod publish;
mod refusal;
mod save;
mod settings;
mod source;
mod target;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_config::{Protocol, StreamConfig};
use outflow_control::{Control, Front, Part, Started, Task};
use outflow_door::Permit;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use connection::Connection;
use save::PARTS;
use settings::{ENCRYPTED, PLAIN};
pub use settings::{RtspSource, SourceSettings, Transport};
use wire::Wire;

/// RTSP: `rtsp://` as a source, `[listen] rtsp` and `rtsps`.
pub fn front() -> Arc<dyn Front> {
    Arc::new(Rtsp)
}

#[derive(Debug)]
struct Rtsp;

impl Front for Rtsp {
    fn listen(&self, control: Control) -> Started {
        Box::pin(async move {
            let config = control.config();
            let listeners =
                control.listeners("RTSP", config.listen.at(PLAIN), config.listen.at(ENCRYPTED))?;
            let serve = |(listener, tls)| Box::pin(serve(listener, tls, control.clone())) as Task<()>;
            Ok(listeners.into_iter().map(serve).collect())
        })
    }

    fn protocol(&self) -> Protocol {
        settings::protocol()
    }

    fn pull(&self, control: Control, stream: String, config: StreamConfig) -> Task<()> {
        Box::pin(outflow_front_pull::pull(control, stream, config, |_, config| source::ask(config)))
    }

    fn parts(&self) -> &'static [&'static str] {
        &[PARTS]
    }

    fn take(&self, control: Control, _name: &'static str, parts: Vec<Part>) {
        for part in parts {
            match Connection::restore(&control, part) {
                Ok(mut connection) => {
                    tokio::spawn(async move { ended(connection.peer(), connection.run().await) });
                }
                Err(error) => tracing::info!(%error, "a connection of the process before was let go"),
            }
        }
    }
}

/// Serves all peers that connect to `listener`, with TLS if there is an acceptor. Does not return.
pub async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, control: Control) {
    let door = control.door().clone();
    outflow_door::accept(listener, door, move |tcp, peer, permit| {
        let (control, tls) = (control.clone(), tls.clone());
        tokio::spawn(async move {
            ended(peer, one(tcp, peer, tls, control, permit).await);
        });
    })
    .await;
}

fn ended(peer: SocketAddr, how: io::Result<()>) {
    if let Err(error) = how {
        tracing::debug!(%peer, %error, "an RTSP connection has ended");
    }
}

async fn one(
    tcp: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    control: Control,
    permit: Permit,
) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    // A peer that is gone without a word is found out, whatever the session waits for.
    let keep_alive = TcpKeepalive::new()
        .with_time(limits::KEEPALIVE_AFTER)
        .with_interval(limits::KEEPALIVE_EVERY)
        .with_retries(limits::KEEPALIVE_RETRIES);
    SockRef::from(&tcp).set_tcp_keepalive(&keep_alive)?;
    let local = tcp.local_addr()?;
    let wire = match tls {
        None => Wire::plain(tcp),
        Some(acceptor) => {
            let accepted = Box::pin(acceptor.accept(tcp));
            match tokio::time::timeout(outflow_rtsp::limits::REQUEST_WITHIN, accepted).await {
                Ok(stream) => Wire::tls(stream?),
                Err(_) => {
                    permit.count_slow();
                    return Ok(());
                }
            }
        }
    };
    Connection::new(wire, peer, local, control, permit).run().await
}
