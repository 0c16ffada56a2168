//! Connections that leave the driver of their socket.
#![allow(clippy::disallowed_methods, reason = "a driver is tested")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use outflow_media::Time;
use outflow_petri::service::Request;
use outflow_poc::connection::{Event, Worth};
use outflow_poc::endpoint::deliver;
use outflow_poc::packet::Code;
use outflow_poc::save::SavedConnection;
use outflow_poc_socket::media::Form;
use outflow_poc_socket::save::{Returning, SavedEnd};
use outflow_poc_socket::{Detached, NetworkPath, Options, PocListener, PocSocket, Security, media};
use outflow_udp::{Outbox, Outgoing, Parcels, inbox};

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
            self.outbox.put(|out| {
                out.extend_from_slice(&datagram);
                Some(Outgoing { to: transmit.to, from: None, mark: transmit.mark })
            });
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

/// Without keys, and with one.
fn securities() -> [Security; 2] {
    let keys = "shared:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    [Security::Plain, Security::Keys(Arc::new(keys.parse().expect("a key")))]
}

async fn pair() -> (PocListener, PocSocket, Elsewhere) {
    pair_with(Options::new(Security::Plain)).await
}

async fn pair_with(options: Options) -> (PocListener, PocSocket, Elsewhere) {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    // The socket's own time begins later.
    let epoch = Instant::now();
    std::thread::sleep(Duration::from_millis(30));
    let listener = PocListener::bind(here, options.clone()).expect("a port");
    let (socket, client) = connected(&listener, &options, playing()).await;
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let (detached, way) = socket.detach(inbox, NUMBER, epoch).expect("it is there");
    assert_eq!((way.peer.port(), way.own), (client.local_addr().port(), None));
    (listener, client, Elsewhere { epoch, detached, way, parcels, outbox: Outbox::default() })
}

/// What is asked for by most.
fn playing() -> Request {
    media::to_receive("/cam", Form::Ts, None)
}

/// Both ends of another connection.
async fn connected(listener: &PocListener, options: &Options, request: Request) -> (PocSocket, PocSocket) {
    let (at, options) = (listener.local_addr(), options.clone());
    let flow = request.to_client.is_some().then(|| media::stream(Duration::from_secs(5)));
    let connecting = tokio::spawn(async move { PocSocket::connect(at, request, &options).await });
    let asking = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a client");
    let socket = asking.answer(flow.as_ref()).expect("a service");
    (socket, connecting.await.expect("no panic").expect("a connection"))
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

/// Ends a connection once all has been delivered.
async fn end(mut elsewhere: Elsewhere) {
    let all = |detached: &Detached| detached.connection().outgoing_counts().delivered == UNITS;
    tokio::time::timeout(PATIENCE, elsewhere.run_until(all)).await.expect("in time");
    let now = Time::ZERO + elsewhere.epoch.elapsed();
    let (own, connection) = elsewhere.detached.at(now);
    connection.close(own, Code(70), "that was all");
    // Nothing is sent here any more: the driver of the socket says it.
    drop(elsewhere);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_driven_elsewhere_and_ended_with_its_reason() {
    let (_listener, client, elsewhere) = pair().await;
    let hearing = tokio::spawn(async move { heard(&client).await });
    end(elsewhere).await;
    let heard = hearing.await.expect("no panic");
    assert_eq!(heard, (UNITS, Code(70), "that was all".to_owned()));
}

/// As another process would go on: all that it has is these bytes, and a copy of the socket.
async fn handed_over(
    listener: PocListener,
    options: &Options,
    elsewhere: Elsewhere,
) -> (PocListener, Elsewhere) {
    let epoch = elsewhere.epoch;
    let (saved, socket) = listener.end().stand(epoch).await.expect("the socket lives");
    let connection = elsewhere.detached.connection().save().expect("small flows");
    let bytes = minicbor::to_vec((&saved, &connection)).expect("memory takes all that is written to it");
    listener.end().vanish();
    drop((listener, elsewhere));
    let (again, connection): (SavedEnd, SavedConnection) =
        minicbor::decode(&bytes).expect("it was just written");
    assert_eq!(again, saved);
    let mut returning =
        Returning::listener(options.clone(), (&again, socket), epoch).expect("it was just saved");
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let mut restorer = returning.restorer();
    let mut restored = || restorer.restore(&connection).expect("it was just saved");
    let (detached, way) = returning.detached(NUMBER, restored(), inbox.clone()).expect("it is known");
    assert!(returning.detached(NUMBER, restored(), inbox).is_err(), "it is there once");
    let listener = returning.begin(Code(71), "it went on without you");
    (listener, Elsewhere { epoch, detached, way, parcels, outbox: Outbox::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_do_not_see_that_another_process_goes_on() {
    for security in securities() {
        let options = Options::new(security);
        let (mut listener, client, mut elsewhere) = pair_with(options.clone()).await;
        let here = connected(&listener, &options, playing()).await;
        let (hearing, other) = (tokio::spawn(async move { heard(&client).await }), here.1);
        let other = tokio::spawn(async move { heard(&other).await });
        for part in 1..=4 {
            let some = |it: &Detached| it.connection().outgoing_counts().delivered >= part * UNITS / 5;
            tokio::time::timeout(PATIENCE, elsewhere.run_until(some)).await.expect("in time");
            (listener, elsewhere) = handed_over(listener, &options, elsewhere).await;
        }
        let all = |it: &Detached| it.connection().outgoing_counts().delivered == UNITS;
        tokio::time::timeout(PATIENCE, elsewhere.run_until(all)).await.expect("in time");
        let ended = other.await.expect("no panic");
        assert_eq!(ended, (0, Code(71), "it went on without you".to_owned()), "it was with the listener");
        assert!(matches!(here.0.event().await, Event::Closed(_)), "the process before is told, too");
        // What comes now is served at the same place.
        drop(connected(&listener, &options, playing()).await);
        let now = Time::ZERO + elsewhere.epoch.elapsed();
        let (own, connection) = elsewhere.detached.at(now);
        connection.close(own, Code(70), "that was all");
        drop(elsewhere);
        let heard = hearing.await.expect("no panic");
        assert_eq!(heard, (UNITS, Code(70), "that was all".to_owned()));
    }
}

/// The end of a client that goes on, as [`handed_over`]. It needs no keys: the connection has its own.
async fn client_handed_over(elsewhere: Elsewhere) -> Elsewhere {
    let (epoch, end) = (elsewhere.epoch, elsewhere.detached.end());
    let (saved, socket) = end.stand(epoch).await.expect("the socket lives");
    let connection = elsewhere.detached.connection().save().expect("small flows");
    let bytes = minicbor::to_vec((&saved, &connection)).expect("memory takes all that is written to it");
    end.vanish();
    drop(elsewhere);
    let (saved, connection): (SavedEnd, SavedConnection) =
        minicbor::decode(&bytes).expect("it was just written");
    let (inbox, parcels) = inbox(16, Arc::new(|| ()));
    let options = Options::new(Security::Plain);
    let its = (&connection, inbox);
    let returned = Returning::detached_client(options, (&saved, socket), epoch, its);
    let (detached, way) = returned.expect("it was just saved");
    Elsewhere { epoch, detached, way, parcels, outbox: Outbox::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_see_that_another_process_goes_on_with_its_client() {
    for security in securities() {
        let (epoch, options) = (Instant::now(), Options::new(security));
        let listener = PocListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), options.clone());
        let listener = listener.expect("a port");
        let (server, client) =
            connected(&listener, &options, media::to_send("/cam", Form::Ts, PATIENCE)).await;
        let (inbox, parcels) = inbox(16, Arc::new(|| ()));
        let (detached, way) = client.detach(inbox, NUMBER, epoch).expect("it is there");
        let mut elsewhere = Elsewhere { epoch, detached, way, parcels, outbox: Outbox::default() };
        let from = server.peer_addr();
        let hearing = tokio::spawn(async move { (heard(&server).await, server.peer_addr()) });
        for part in 1..=4 {
            let some = |it: &Detached| it.connection().outgoing_counts().delivered >= part * UNITS / 5;
            tokio::time::timeout(PATIENCE, elsewhere.run_until(some)).await.expect("in time");
            elsewhere = client_handed_over(elsewhere).await;
        }
        end(elsewhere).await;
        let heard = hearing.await.expect("no panic");
        assert_eq!(heard, ((UNITS, Code(70), "that was all".to_owned()), from));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_stood_still_goes_on_and_nothing_was_lost() {
    let (listener, client, mut elsewhere) = pair().await;
    let (socket, other) = connected(&listener, &Options::new(Security::Plain), playing()).await;
    listener.end().stand(elsewhere.epoch).await.expect("the socket lives");
    let (sent, late) = (socket.send("while it stands").await, connected_late(listener.local_addr()));
    assert_eq!(sent, Ok(0));
    // Its driver does not stand still, and hears nothing.
    elsewhere.turn();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(elsewhere.parcels.take().is_none() && other.try_event().is_none());
    listener.end().go_on();
    let unit = tokio::time::timeout(PATIENCE, other.recv()).await.expect("in time").expect("it is open");
    assert_eq!(unit.1, "while it stands");
    let asking = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a client");
    asking.refuse(Code(72), "no");
    assert!(late.await.expect("no panic").contains("no"));
    let hearing = tokio::spawn(async move { heard(&client).await });
    let all = |it: &Detached| it.connection().outgoing_counts().delivered == UNITS;
    tokio::time::timeout(PATIENCE, elsewhere.run_until(all)).await.expect("in time");
    drop(elsewhere);
    assert_eq!(hearing.await.expect("no panic"), (UNITS, Code::DONE, String::new()));
}

/// A client that asks, and why it gets nothing.
fn connected_late(at: SocketAddr) -> tokio::task::JoinHandle<String> {
    let request = media::to_receive("/cam", Form::Ts, None);
    tokio::spawn(async move {
        let options = Options::new(Security::Plain);
        PocSocket::connect(at, request, &options).await.expect_err("it is refused").to_string()
    })
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
