//! Connections that did not leave their end go on in another process with it: a client's, and one of a listener.

#![allow(clippy::disallowed_methods, reason = "a test of sockets")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use outflow_poc::connection::Event;
use outflow_poc::packet::Code;
use outflow_poc_socket::media::{Form, to_send};
use outflow_poc_socket::save::{Returning, SavedEnd};
use outflow_poc_socket::{Options, PocListener, PocSocket, Security};
use tokio::time::timeout;

/// Longer than anything here takes: all that is sent is of use.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a unit is: its number.
fn unit(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Both ends of a connection.
struct Pair {
    epoch: Instant,
    options: Options,
    listener: PocListener,
    server: PocSocket,
    client: PocSocket,
    /// Units that were sent, and those that came.
    sent: u64,
    came: u64,
}

impl Pair {
    async fn connect(options: Options) -> Self {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = PocListener::bind(at, options.clone()).expect("a port");
        let request = to_send("/cam", Form::Ts, PATIENCE);
        assert!(matches!(request.to_server, Some(ref flow) if flow.check().is_ok()));
        let (at, own) = (listener.local_addr(), options.clone());
        let client = tokio::spawn(async move { PocSocket::connect(at, request, &own).await });
        let asking = timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a client");
        let server = asking.answer(None).expect("a service");
        let client = client.await.expect("no panic").expect("a connection");
        Pair { epoch: Instant::now(), options, listener, server, client, sent: 0, came: 0 }
    }

    async fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.client.send(unit(self.sent)).await.expect("it is open");
            self.sent += 1;
        }
    }

    async fn receive(&mut self, count: u64) {
        for _ in 0..count {
            let (_, data) =
                timeout(PATIENCE, self.server.recv()).await.expect("in time").expect("it is open");
            assert_eq!(data, unit(self.came), "each once, in order");
            self.came += 1;
        }
    }

    /// As another process would go on with the client.
    async fn client_elsewhere(mut self) -> Self {
        let (saved, socket) = self.client.end().stand(self.epoch).await.expect("the socket lives");
        self.client.end().vanish();
        let saved = written(&saved);
        let client = Returning::client(self.options.clone(), (&saved, socket), self.epoch);
        let client = client.expect("it was just saved");
        assert_eq!(client.service(), self.client.service());
        self.client = client;
        self
    }

    /// As another process would go on with the listener.
    async fn server_elsewhere(mut self) -> Self {
        let (saved, socket) = self.listener.end().stand(self.epoch).await.expect("the socket lives");
        assert!(self.server.try_event().is_none(), "what was saved is not read");
        self.listener.end().vanish();
        let saved = written(&saved);
        let returning = Returning::listener(self.options.clone(), (&saved, socket), self.epoch);
        let mut returning = returning.expect("it was just saved");
        let number = self.server.number();
        let server = returning.socket(number).expect("it is known");
        assert!(returning.socket(number).is_none(), "it is there once");
        assert_eq!(server.service(), self.server.service());
        assert_eq!(server.peer_addr().map(|peer| peer.port()), Some(self.client.local_addr().port()));
        self.listener = returning.begin(Code(71), "it went on without you");
        self.server = server;
        self
    }
}

/// What was saved, as another process reads it.
fn written(saved: &SavedEnd) -> SavedEnd {
    let bytes = minicbor::to_vec(saved).expect("memory takes all that is written to it");
    minicbor::decode(&bytes).expect("it was just written")
}

#[tokio::test(flavor = "multi_thread")]
async fn either_end_goes_on_and_all_that_was_sent_comes() {
    let keys = "shared:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let keys = Security::Keys(std::sync::Arc::new(keys.parse().expect("a key")));
    for security in [Security::Plain, keys] {
        let mut pair = Pair::connect(Options::new(security)).await;
        for _ in 0..3 {
            pair.send(10).await;
            pair.receive(5).await;
            // The others were sent, and may have come and not been read.
            pair = pair.server_elsewhere().await;
            pair.send(10).await;
            pair = pair.client_elsewhere().await;
            pair.receive(15).await;
        }
        let closed = tokio::spawn(pair.client.finish());
        let end =
            timeout(PATIENCE, async { while !matches!(pair.server.event().await, Event::Closed(_)) {} });
        end.await.expect("in time");
        assert_eq!(closed.await.expect("no panic").code, Code::DONE);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_stands_still_goes_on_here_if_no_other_does() {
    let mut pair = Pair::connect(Options::new(Security::Plain)).await;
    pair.send(3).await;
    pair.receive(1).await;
    let _saved = pair.listener.end().stand(pair.epoch).await.expect("the socket lives");
    assert!(timeout(Duration::from_millis(50), pair.server.recv()).await.is_err(), "it stands still");
    pair.listener.end().go_on();
    pair.receive(2).await;
    let _saved = pair.client.end().stand(pair.epoch).await.expect("the socket lives");
    pair.client.end().go_on();
    pair.send(2).await;
    pair.receive(2).await;
}
