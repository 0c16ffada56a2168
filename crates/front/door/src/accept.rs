//! Accepting connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::access::Door;
use crate::admission::Permit;
use crate::limits::ACCEPT_AGAIN;
use crate::seldom::Seldom;

/// Takes in connections and hands each to `serve` with its place, which must not wait. Where there is no place, the
/// connection is closed at once. Does not return.
pub async fn accept(
    listener: TcpListener,
    door: Arc<Door>,
    mut serve: impl FnMut(TcpStream, SocketAddr, Permit),
) {
    let (mut backoff, mut log) = (ACCEPT_AGAIN, Seldom::default());
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                backoff.reset();
                if let Ok(permit) = door.admit(peer.ip()) {
                    serve(socket, peer, permit);
                }
            }
            Err(error) if is_of_peer(&error) => {}
            Err(error) => {
                // Out of descriptors, most likely: others may end meanwhile.
                if let Some(times) = log.happened(Instant::now()) {
                    let at = listener.local_addr().ok().map(tracing::field::display);
                    let help = "raise the limit of open files (ulimit -n, LimitNOFILE=)";
                    tracing::warn!(at, %error, times, "a connection could not be accepted; {help}");
                }
                sleep(backoff.wait()).await;
            }
        }
    }
}

/// Whether only the connection itself is to blame; the next one may be whole.
fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use tokio::io::AsyncReadExt as _;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_at_once_and_places_come_back() {
        let rules = Rules { connections: 2, connections_per_address: 2, ..Rules::default() };
        let door = Arc::new(Door::new(rules));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("bound");
        let (taken, mut served) = mpsc::unbounded_channel();
        let serve = move |socket, _, permit| drop(taken.send((socket, permit)));
        tokio::spawn(accept(listener, door.clone(), serve));
        let mut open = Vec::new();
        for _ in 0..2 {
            let client = TcpStream::connect(at).await.expect("connected");
            open.push((client, served.recv().await.expect("served")));
        }
        let mut refused = TcpStream::connect(at).await.expect("connected");
        assert_eq!(refused.read(&mut [0]).await.ok(), Some(0));
        let counts = door.counts();
        assert_eq!((counts.open, counts.accepted, counts.refused), (2, 2, 1));
        drop(open.pop());
        let _client = TcpStream::connect(at).await.expect("connected");
        served.recv().await.expect("served");
    }
}
