//! A listener and a receiver's state machine go on with what another process has saved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_engine::Recent;
use outflow_engine::message::Peer as _;
use outflow_media::Time;
use outflow_poc_socket::media::{self, Form, Packet};
use outflow_poc_socket::{Options, PocSocket, Security};
use outflow_udp::{Outbox, Outgoing, Parcels, inbox};
use tokio::time::timeout;

use super::*;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// As long: all that is given is of use.
const LATENCY: Duration = Duration::from_secs(20);

const NUMBER: u64 = 7;

/// A receiver as its worker drives it.
struct Driven {
    peer: PocPeer,
    way: NetworkPath,
    parcels: Parcels,
    outbox: Outbox,
}

impl Driven {
    fn new(peer: PocPeer, way: NetworkPath, parcels: Parcels) -> Self {
        Driven { peer, way, parcels, outbox: Outbox::default() }
    }

    fn turn(&mut self, now: Time) {
        while let Some(mut parcel) = self.parcels.take() {
            for it in parcel.iter() {
                self.peer.handle_datagram(now, (it.from, it.mark), it.bytes, &Recent::default());
            }
        }
        self.peer.handle_timeout(now, &Recent::default());
        let outgoing = |(to, mark)| Outgoing { to, from: None, mark };
        while self.outbox.put(|out| self.peer.poll_transmit(now, out).map(outgoing)) {}
        self.outbox.send(&self.way.udp).expect("the socket lives");
        while self.peer.poll_event().is_some() {}
    }
}

fn bound() -> PocListener {
    PocListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Options::new(Security::Plain)).expect("a port")
}

/// As another process would go on: all that it has is these bytes, and a copy of the socket.
async fn handed_over(listener: PocListener, driven: Driven, epoch: Instant) -> (PocListener, Driven) {
    let (saved, socket) = listener.end().stand(epoch).await.expect("the socket lives");
    let value = driven.peer.save().expect("it can go on");
    listener.end().vanish();
    drop((listener, driven));
    let peer: SavedPeer = minicbor::decode(&value).expect("it was just written");
    let options = Options::new(Security::Plain);
    let mut returning = Returning::listener(options, (&saved, socket), epoch).expect("it was just saved");
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let restored = returning.restorer().restore(&peer.connection).expect("it was just saved");
    let (detached, way) = returning.detached(NUMBER, restored, inbox).expect("it is known");
    let again = PocPeer::restore(detached, &peer);
    assert_eq!(again.save().as_ref(), Some(&value), "nothing of it is lost");
    (returning.begin(ENDED, AGAIN), Driven::new(again, way, parcels))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_all_that_it_was_given_before_and_after() {
    let epoch = Instant::now();
    let now = || Time::ZERO + epoch.elapsed();
    let mut listener = bound();
    let at = listener.local_addr();
    let request = media::to_receive("/cam", Form::Rtp, None);
    let options = Options::new(Security::Plain);
    let connecting = tokio::spawn(async move { PocSocket::connect(at, request, &options).await });
    let asking = timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a client");
    let socket = asking.answer(Some(&media::stream(LATENCY))).expect("a service");
    let client = connecting.await.expect("no panic").expect("a connection");
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let (detached, way) = socket.detach(inbox, NUMBER, epoch).expect("it is there");
    let mut driven = Driven::new(PocPeer::new(detached, Form::Rtp, LATENCY), way, parcels);

    let mut hearing = tokio::spawn(async move {
        let mut heard = Vec::new();
        while heard.len() < 40 {
            let (_, unit) = client.recv().await.expect("it is open");
            heard.push(Packet::read(unit).expect("it has a channel").bytes[0]);
        }
        heard
    });
    for part in 0..4 {
        for number in 0..10 {
            driven.peer.write_rtcp(now(), 0, &[10 * part + number; 100]);
        }
        // What was given last is still to be sent, and what was sent before not acknowledged yet.
        (listener, driven) = handed_over(listener, driven, epoch).await;
        driven.turn(now());
    }
    let heard = timeout(PATIENCE, async {
        loop {
            driven.turn(now());
            if let Ok(heard) = timeout(Duration::from_millis(1), &mut hearing).await {
                return heard.expect("no panic");
            }
        }
    });
    assert_eq!(heard.await.expect("in time"), (0..40).collect::<Vec<u8>>());
    drop(listener);
}

#[tokio::test]
async fn the_listener_is_asked_for_by_its_address() {
    let taken = Taken::default();
    let mut own = bound().local_addr();
    for (port, host, is_it) in [(None, 1, true), (Some(0), 1, true), (Some(0), 2, false), (Some(1), 1, false)]
    {
        let listener = bound();
        own.set_port(port.unwrap_or(listener.local_addr().port()));
        own.set_ip([127, 0, 0, host].into());
        taken.put(listener);
        assert_eq!(taken.of(Some(own)).is_some(), is_it, "{own}");
    }
    taken.put(bound());
    assert!(taken.of(None).is_none() && taken.of(Some(own)).is_none(), "it is not kept");
}
