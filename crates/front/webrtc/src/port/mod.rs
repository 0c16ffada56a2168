//! The one port of all peers: what comes there goes to the workers that have them.

mod routes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use outflow_control::{Member, Part};
use outflow_engine::message::ReceiverId;
use outflow_udp::{Batch, HandedOver, Inbox, Udp};
use tokio::sync::mpsc;

use crate::limits::{BATCHES_A_TURN, DATAGRAM_BYTES_MAX, NEWS_MAX};
use crate::tcp::Gateways;
use routes::Routes;

/// The port, for those that have peers there.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// The socket, through which workers send.
    pub(crate) udp: Arc<Udp>,
    pub(crate) news: mpsc::Sender<News>,
    /// Peers that come there by TCP.
    pub(crate) gateways: Arc<Gateways>,
}

/// What the port is told of its peers.
#[derive(Debug)]
pub(crate) enum News {
    /// A peer may come, whose checks are for this name; what is for it goes there.
    Expect(ReceiverId, String, Inbox),
    /// They are for this name, too, and soon for no other.
    Named(ReceiverId, String),
    /// It is there.
    Confirm(ReceiverId, SocketAddr),
    /// It is not there any more.
    Forget(ReceiverId, SocketAddr),
    /// It has left.
    Leave(ReceiverId),
}

/// What reads the port.
#[derive(Debug)]
pub(crate) struct Reading {
    udp: Arc<Udp>,
    told: mpsc::Receiver<News>,
}

/// The port of a socket.
pub(crate) fn open(udp: Udp) -> (Port, Reading) {
    let udp = Arc::new(udp);
    let (news, told) = mpsc::channel(NEWS_MAX);
    let gateways = Arc::new(Gateways::new(udp.local_addr()));
    (Port { udp: Arc::clone(&udp), news, gateways }, Reading { udp, told })
}

/// Reads the port, until the socket fails or another process goes on with it. `value` is what the front there has to know
/// of these peers.
pub(crate) async fn read(
    Reading { udp, mut told }: Reading,
    mut member: Member,
    value: impl Fn(Vec<ReceiverId>) -> Vec<u8>,
) {
    // Publishers come here, and what viewers say.
    member.brings_media();
    let mut batch = Batch::new(DATAGRAM_BYTES_MAX);
    let mut routes = Routes::default();
    // Where it is bound to one address, answers go from there anyway.
    let answers_alike = udp.local_addr().ip().is_unspecified();
    loop {
        let readable = tokio::select! {
            biased;
            news = told.recv() => match news {
                Some(news) => {
                    routes.take(news);
                    continue;
                }
                None => return,
            },
            () = member.asked() => {
                let part = Part { value: value(routes.peers()), ..Part::default() };
                if member.give(Some(part)).await {
                    // Nothing is left to be done here.
                    return std::future::pending().await;
                }
                continue;
            }
            readable = udp.readable() => readable,
        };
        let taken = readable.and_then(|()| take(&udp, &mut batch, &mut routes, answers_alike));
        if let Err(error) = taken {
            tracing::error!(%error, "the port of WebRTC has failed: no browser is served any more");
            return;
        }
        // Others have their turn.
        tokio::task::yield_now().await;
    }
}

/// Reads what has come, for a turn at most.
fn take(udp: &Udp, batch: &mut Batch, routes: &mut Routes, answers_alike: bool) -> io::Result<()> {
    for _ in 0..BATCHES_A_TURN {
        match udp.try_recv(batch) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut unread = 0;
        for received in batch.iter() {
            let (from, mark, bytes) = (received.from, received.mark, received.bytes);
            let to = received.to.filter(|_| answers_alike);
            let is_known = routes.put(HandedOver { peer: 0, from, to, mark, bytes });
            unread += u64::from(!is_known);
        }
        unread += routes.hand_over();
        if unread > 0 {
            udp.count_unread(unread);
        }
    }
    Ok(())
}

impl Routes {
    fn take(&mut self, news: News) {
        match news {
            News::Expect(peer, name, inbox) => self.add(peer, name, inbox),
            News::Named(peer, name) => self.name(peer, name),
            News::Confirm(peer, at) => self.confirm(peer, at),
            News::Forget(peer, at) => self.forget(peer, at),
            News::Leave(peer) => self.remove(peer),
        }
    }
}
