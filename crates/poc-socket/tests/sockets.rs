//! Sockets on loopback.
#![allow(clippy::disallowed_methods, reason = "a driver is tested")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_petri::service::presets::{Order, datagrams};
use outflow_petri::service::{Class, Flow, Request};
use outflow_poc::connection::By;
use outflow_poc::endpoint::ConnectError;
use outflow_poc::packet::Code;
use outflow_poc_socket::noise::Keys;
use outflow_poc_socket::{OpenError, Options, PocListener, PocSocket, Security, blocking};

fn flow() -> Flow {
    datagrams(Order::Total, None, Class::Reliable).expect("a flow")
}

fn request() -> Request {
    Request { resource: "/live/cam".to_owned(), to_server: Some(flow()), to_client: None }
}

fn here() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn keys(text: &str) -> Options {
    Options::new(Security::Keys(Arc::new(text.parse::<Keys>().expect("keys"))))
}

const KEY: &str = "shared:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

async fn exchange(server_options: Options, client_options: Options) {
    let listener = PocListener::bind(here(), server_options).expect("a port");
    let server = listener.local_addr();
    let receiving = tokio::spawn(async move {
        let socket = listener.accept().await.expect("a client").answer(None).expect("a service");
        let mut bytes = 0;
        for number in 0..2000 {
            let (unit, data) = socket.recv().await.expect("a unit");
            assert_eq!(unit, number);
            bytes += data.len();
        }
        (bytes, socket.recv().await.expect_err("the end"))
    });
    let socket = PocSocket::connect(server, request(), &client_options).await.expect("a connection");
    for unit in 0..2000_usize {
        socket.send(vec![1; unit % 3000]).await.expect("it is open");
    }
    assert_eq!(socket.finish().await.code, Code::DONE);
    let (bytes, end) = receiving.await.expect("no panic");
    assert_eq!(bytes, (0..2000).map(|unit| unit % 3000).sum::<usize>());
    assert_eq!((end.by, end.code), (By::Peer, Code::DONE));
}

#[tokio::test]
async fn units_go_from_socket_to_socket() {
    exchange(Options::new(Security::Plain), Options::new(Security::Plain)).await;
}

/// One thread has both ends: the end that waits lets the other go on.
#[tokio::test]
async fn one_that_gives_more_than_there_is_room_for_waits() {
    let listener = PocListener::bind(here(), Options::new(Security::Plain)).expect("a port");
    let server = listener.local_addr();
    let receiving = tokio::spawn(async move {
        let socket = listener.accept().await.expect("a client").answer(None).expect("a service");
        let mut count = 0;
        while socket.recv().await.is_ok() {
            count += 1;
        }
        count
    });
    let small = Flow { buffer_bytes: 20_000, ..flow() };
    let request = Request { to_server: Some(small), ..request() };
    let options = Options::new(Security::Plain);
    let socket = PocSocket::connect(server, request, &options).await.expect("a connection");
    for _ in 0..3000 {
        socket.send(vec![1; 1300]).await.expect("it is open");
    }
    assert_eq!(socket.finish().await.code, Code::DONE);
    assert_eq!(receiving.await.expect("no panic"), 3000);
}

#[tokio::test]
async fn units_go_encrypted() {
    exchange(keys(KEY), keys(KEY)).await;
}

#[tokio::test]
async fn one_that_has_another_key_is_refused_with_the_reason() {
    let listener = PocListener::bind(here(), keys(KEY)).expect("a port");
    let other = KEY.replace("0001", "0002");
    for options in [keys(&other), Options::new(Security::Plain)] {
        let error =
            PocSocket::connect(listener.local_addr(), request(), &options).await.expect_err("refused");
        assert!(error.to_string().contains("check the keys"), "{error}");
    }
}

#[tokio::test]
async fn a_service_that_cannot_be_had_is_refused_as_such() {
    let listener = PocListener::bind(here(), Options::new(Security::Plain)).expect("a port");
    let server = listener.local_addr();
    let refusing = tokio::spawn(async move {
        listener.accept().await.expect("a client").answer(None).expect_err("nothing is asked for")
    });
    let nothing = Request { to_server: None, ..request() };
    let error = PocSocket::connect(server, nothing, &Options::new(Security::Plain)).await;
    let error = error.expect_err("refused");
    let OpenError::Connect(ConnectError::Refused { code, text }) = &error else { panic!("{error}") };
    assert_eq!(*code, Code::SERVICE);
    assert!(text.contains("nothing is asked for in either direction"), "{text}");
    assert!(matches!(refusing.await.expect("no panic"), OpenError::Refused(_)));
}

#[tokio::test]
async fn where_none_listens_none_answers() {
    let mut options = Options::new(Security::Plain);
    options.settings.patience = Duration::from_millis(300);
    let silent = std::net::UdpSocket::bind(here()).expect("a port");
    let address = silent.local_addr().expect("an address");
    let error = PocSocket::connect(address, request(), &options).await.expect_err("there is no answer");
    assert!(
        matches!(error, OpenError::Connect(_)) && error.to_string().contains("there is no answer"),
        "{error}"
    );
}

#[test]
fn programs_without_tokio_have_sockets_too() {
    let port = std::net::UdpSocket::bind(here()).and_then(|socket| socket.local_addr()).expect("a port");
    let server = std::thread::spawn(move || {
        let socket = blocking::PocSocket::bind(port, None, Options::new(Security::Plain)).expect("a client");
        core::iter::from_fn(|| socket.recv().ok()).map(|(_, data)| data.len()).sum::<usize>()
    });
    let client =
        blocking::PocSocket::connect(port, request(), &Options::new(Security::Plain)).expect("a server");
    for _ in 0..100 {
        client.send(vec![0; 1000]).expect("it is open");
    }
    assert_eq!(client.finish().map(|closed| closed.code), Some(Code::DONE));
    assert_eq!(server.join().expect("no panic"), 100_000);
}
