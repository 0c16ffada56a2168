//! Accepting connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::access::Door;
use crate::admission::Permit;
use crate::limits::{ACCEPT_AGAIN, BACK_OFF_MAX, HURRY_UP};
use crate::seldom::Seldom;
use crate::spare::Given;

/// Takes in connections and hands each to `serve` with its place, which must not wait. Where there is no place, the
/// connection is closed at once, and so it is when hardly any descriptors are left. A peer that came to `[::]` by IPv4
/// has an address of IPv4. Does not return.
pub async fn accept(
    listener: TcpListener,
    door: Arc<Door>,
    serve: impl FnMut(TcpStream, SocketAddr, Permit),
) {
    accept_all(listener, door, false, serve).await;
}

/// The same for what has something to say in a moment when hardly any descriptors are left: it is given connections
/// then, too, each for as long as [`Permit::over`] says.
pub async fn accept_to_the_last(
    listener: TcpListener,
    door: Arc<Door>,
    serve: impl FnMut(TcpStream, SocketAddr, Permit),
) {
    accept_all(listener, door, true, serve).await;
}

async fn accept_all(
    listener: TcpListener,
    door: Arc<Door>,
    hurries: bool,
    mut serve: impl FnMut(TcpStream, SocketAddr, Permit),
) {
    // Kernels that do not know it wait as long as they do.
    let _ = outflow_socket::bound_back_off(&listener, BACK_OFF_MAX);
    let spare = door.admission().spare();
    let (mut backoff, mut log, mut holds) = (ACCEPT_AGAIN, Seldom::default(), door.holds_back());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Ok(()) = holds.changed() => {
                // The door is there as long as this is.
                let _ = holds.wait_for(|held| !held).await;
                continue;
            }
        };
        match accepted {
            Ok((socket, peer)) => {
                backoff.reset();
                let peer = outflow_socket::canonical(peer);
                let are_scarce = spare.are_scarce(socket.as_raw_fd());
                if are_scarce && !hurries {
                    door.admission().count_refused();
                } else if let Ok(permit) = door.admit(peer.ip()) {
                    serve(socket, peer, if are_scarce { permit.hurry() } else { permit });
                }
            }
            Err(error) if is_of_peer(&error) => {}
            Err(error) => {
                // Out of descriptors, most likely.
                if let Some(times) = log.happened(Instant::now()) {
                    let at = listener.local_addr().ok().map(tracing::field::display);
                    let help = "raise the limit of open files (ulimit -n, LimitNOFILE=)";
                    tracing::warn!(at, %error, times, "a connection could not be accepted; {help}");
                }
                match is_of_descriptors(&error).then(|| spare.give_up()).flatten() {
                    Some(Given::Descriptor) => {}
                    Some(Given::Connection) => sleep(HURRY_UP).await,
                    // Others may end meanwhile.
                    None => sleep(backoff.wait()).await,
                }
            }
        }
    }
}

/// Whether only the connection itself is to blame; the next one may be whole.
fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Whether the process, or the system, has no more descriptors.
fn is_of_descriptors(error: &io::Error) -> bool {
    let of_system = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|errno| errno.raw_os_error());
    error.raw_os_error().is_some_and(|errno| of_system.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use tokio::io::AsyncReadExt as _;
    use tokio::sync::mpsc;

    type Served = mpsc::UnboundedReceiver<(TcpStream, SocketAddr, Permit)>;

    /// Serves connections of a listener, two at once, and hands them on.
    fn serve(listener: TcpListener) -> (SocketAddr, Arc<Door>, Served) {
        let rules = Rules { connections: 2, connections_per_address: 2, ..Rules::default() };
        let door = Arc::new(Door::new(rules));
        let at = listener.local_addr().expect("bound");
        let (taken, served) = mpsc::unbounded_channel();
        let serve = move |socket, peer, permit| drop(taken.send((socket, peer, permit)));
        tokio::spawn(accept(listener, door.clone(), serve));
        (at, door, served)
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_are_closed_at_once_and_places_come_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (at, door, mut served) = serve(listener);
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

    #[tokio::test]
    async fn a_peer_that_came_by_ipv4_has_an_address_of_ipv4_wherever_it_was_listened() {
        let Ok(listener) = TcpListener::bind("[::]:0").await else {
            return outflow_skip::skipped("both families by one listener", "no IPv6 here");
        };
        let (at, _door, mut served) = serve(listener);
        for host in ["127.0.0.1", "::1"] {
            let client = TcpStream::connect((host, at.port())).await.expect("connected");
            let (_socket, peer, _permit) = served.recv().await.expect("served");
            assert_eq!(Some(peer), client.local_addr().ok());
        }
    }

    #[tokio::test]
    async fn what_a_peer_did_not_get_is_sent_again_soon_after_its_path_is_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        if let Err(error) = outflow_socket::back_off_bound(&listener) {
            return outflow_skip::skipped("bounded back-off of TCP", error);
        }
        let (at, _door, mut served) = serve(listener);
        // It is bounded once it is listened to.
        tokio::task::yield_now().await;
        let _client = TcpStream::connect(at).await.expect("connected");
        let (socket, _peer, _permit) = served.recv().await.expect("served");
        assert_eq!(outflow_socket::back_off_bound(&socket).ok(), Some(BACK_OFF_MAX));
    }
}
