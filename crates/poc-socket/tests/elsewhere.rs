//! Connections that leave the driver of their socket.
#![allow(clippy::disallowed_methods, reason = "a driver is tested")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_media::Time;
use outflow_poc::connection::{Event, Worth};
use outflow_poc::endpoint::deliver;
use outflow_poc::packet::Code;
use outflow_poc_socket::media::Form;
use outflow_poc_socket::{Detached, NetworkPath, Options, PocListener, PocSocket, Security, media};
use outflow_udp::{Outbox, Parcels, inbox};

const UNITS: u64 = 200;
const NUMBER: u64 = 7;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection of a listener, driven here.
struct Elsewhere {
    epoch: Instant,
    detached: Detached,
    way: NetworkPath,
    parcels: Parcels,
    outbox: Outbox,
}

impl Elsewhere {
    /// Does what is due, and gives units while there are some to be given.
    fn turn(&mut self) {
        let now = Time::ZERO + self.epoch.elapsed();
        let (own, connection) = self.detached.at(now);
        while let Some(mut parcel) = self.parcels.take() {
            for it in parcel.iter() {
                assert_eq!(it.peer, NUMBER);
                deliver(connection, own, it.from, it.mark, it.bytes);
            }
        }
        connection.handle_timeout(own);
        let unit = connection.next_unit();
        if unit < UNITS {
            // If it is full, the next turn tries again.
            let _ = connection.send(own, unit, Bytes::from(vec![3; 1000]), Worth::default());
        }
        let mut datagram = Vec::new();
        while let Some(transmit) = connection.poll_transmit(own, &mut datagram) {
            self.outbox.add(transmit.to, transmit.mark, &datagram);
        }
        self.outbox.send(&self.way.udp).expect("the socket lives");
    }

    async fn run_until(&mut self, is_over: impl Fn(&Detached) -> bool) {
        while !is_over(&self.detached) {
            self.turn();
            let now = Time::ZERO + self.epoch.elapsed();
            let (next, _) = self.detached.next_timeout().expect("it is open");
            assert!(next.since(now) < PATIENCE, "in the time of its driver");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn pair() -> (PocListener, PocSocket, Elsewhere) {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Options::new(Security::Plain);
    // The socket's own time begins later.
    let epoch = Instant::now();
    std::thread::sleep(Duration::from_millis(30));
    let listener = PocListener::bind(here, options.clone()).expect("a port");
    let at = listener.local_addr();
    let request = media::to_receive("/cam", Form::Ts, None);
    let connecting = tokio::spawn(async move { PocSocket::connect(at, request, &options).await });
    let flow = media::stream(Duration::from_millis(500));
    let socket = listener.accept().await.expect("a client").answer(Some(&flow)).expect("a service");
    let client = connecting.await.expect("no panic").expect("a connection");
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let (detached, way) = socket.detach(inbox, NUMBER, epoch).expect("it is there");
    assert_eq!((way.peer.port(), way.own), (client.local_addr().port(), None));
    (listener, client, Elsewhere { epoch, detached, way, parcels, outbox: Outbox::default() })
}

/// What the client got, and how it ended.
async fn heard(client: &PocSocket) -> (u64, Code, String) {
    let mut delivered = 0;
    loop {
        match tokio::time::timeout(PATIENCE, client.event()).await.expect("in time") {
            Event::Delivered { .. } => delivered += 1,
            Event::Closed(closed) => return (delivered, closed.code, closed.text),
            _ => (),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_driven_elsewhere_and_ended_with_its_reason() {
    let (_listener, client, mut elsewhere) = pair().await;
    let hearing = tokio::spawn(async move { heard(&client).await });
    let all = |detached: &Detached| detached.connection().outgoing_counts().delivered == UNITS;
    tokio::time::timeout(PATIENCE, elsewhere.run_until(all)).await.expect("in time");
    let now = Time::ZERO + elsewhere.epoch.elapsed();
    let (own, connection) = elsewhere.detached.at(now);
    connection.close(own, Code(70), "that was all");
    // Nothing is sent here any more: the driver of the socket says it.
    drop(elsewhere);
    let heard = hearing.await.expect("no panic");
    assert_eq!(heard, (UNITS, Code(70), "that was all".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_driven_any_more_is_closed() {
    let (_listener, client, elsewhere) = pair().await;
    drop(elsewhere);
    assert_eq!(heard(&client).await, (0, Code::DONE, String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_elsewhere_is_counted() {
    let (_listener, client, elsewhere) = pair().await;
    let udp = Arc::clone(&elsewhere.way.udp);
    // Nothing is read there.
    let waiting = async {
        while udp.counts().unread == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let stray = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let local = elsewhere.detached.connection().local();
    for _ in 0..2_000 {
        let mut datagram = Vec::new();
        let mut writer = outflow_poc::packet::Writer::new(&mut datagram, local, 1, 1200);
        writer.push(&outflow_poc::packet::Frame::Ping);
        stray.send_to(&datagram, udp.local_addr()).expect("sent");
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(PATIENCE, waiting).await.expect("in time");
    drop((client, elsewhere));
}
