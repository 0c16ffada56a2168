//! Receivers of the process before are found by those that ask for them; the others end, and their peers are told.

use std::net::SocketAddr;
use std::time::Duration;

use outflow_config::{Config, Protocols, SinkUrl};
use outflow_control::{PublishOptions, Relay};
use outflow_media::Format;
use outflow_poc::connection::{By, Closed, Event};
use outflow_poc_socket::media::{Form, to_send};
use outflow_poc_socket::{Options, PocListener, PocSocket};
use outflow_relay::Selection;
use tokio::time::timeout;

use super::*;
use crate::send::{Media, delivery};

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

const NAME: &str = "sink";

fn config(text: &str, known: &Protocols) -> Config {
    let all = format!("[limits]\nworkers = 1\n[poc]\nencryption = \"off\"\n[streams.live]\n{text}");
    Config::parse(&all, "test", known).unwrap_or_else(|errors| panic!("{errors}"))
}

fn asked(stream: &str, to: &SinkUrl) -> PushOptions {
    PushOptions::new(stream, to.clone(), NAME.to_owned(), Selection::default())
}

/// Puts a receiver there that is sent to. Answers its peer.
async fn put(control: &Control, taken: &Taken, listener: &PocListener, push: &PushOptions) -> PocSocket {
    let (at, request) = (listener.local_addr(), to_send("/live", Form::Ts, PATIENCE));
    let options = Options::new(Security::Plain);
    let connecting = tokio::spawn(async move { PocSocket::connect(at, request, &options).await });
    let asking = timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a client");
    let peer = asking.answer(None).expect("a service");
    let socket = connecting.await.expect("no panic").expect("a connection");
    let playing = control.play(&push.stream, push.receiver.clone(), delivery(Form::Ts)).await;
    let mut playing = playing.expect("it has a source");
    let media = Media { form: Form::Ts, described: None, latency: PATIENCE };
    let end = media.begin(control.epoch(), socket, &mut playing).await.expect("it is open");
    let (stream, to) = (push.stream.clone(), push.receiver.address.clone());
    taken.all().insert(NAME.to_owned(), TakenSink { stream, to, sink: Sink { playing, end } });
    peer
}

/// Which end has closed it.
async fn closed_by(peer: &PocSocket) -> By {
    let closed = async {
        loop {
            if let Event::Closed(Closed { by, .. }) = peer.event().await {
                return by;
            }
        }
    };
    timeout(PATIENCE, closed).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_goes_on_that_is_asked_for_as_it_was_and_others_end_with_a_word() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = PocListener::bind(any, Options::new(Security::Plain)).expect("bound");
    let fronts = vec![crate::front()];
    let known = fronts.iter().map(|front| front.protocol()).collect();
    let [here, elsewhere] = ["live", "gate"].map(|path| {
        let to = format!("poc://{}/{path}", listener.local_addr());
        let text = format!("[[sinks]]\nstream = \"live\"\nto = \"{to}\"\n");
        config(&text, &known).sinks.remove(0).to
    });
    let relay = Relay::start(config("", &known), None, fronts, None).await.expect("started");
    let (control, taken) = (relay.control(), Taken::default());
    let options = PublishOptions { format: Format::Ts, peer: "a test".to_owned(), configured: false };
    let _publisher = control.publish("live", options).await.expect("it takes one");

    for (stream, to, goes_on) in [("live", &here, true), ("other", &here, false), ("live", &elsewhere, false)]
    {
        let peer = put(control, &taken, &listener, &asked("live", &here)).await;
        let sink = taken.of(&asked(stream, to));
        assert_eq!(sink.is_some(), goes_on, "{stream} to {to}");
        assert!(taken.of(&asked("live", &here)).is_none(), "it is there once");
        if let Some(Sink { mut playing, end: _end }) = sink {
            assert!(timeout(Duration::from_millis(50), playing.closed()).await.is_err(), "it is sent to");
        }
        assert_eq!(closed_by(&peer).await, By::Peer, "{stream} to {to}");
    }
    let peer = put(control, &taken, &listener, &asked("live", &here)).await;
    taken.end();
    assert_eq!(closed_by(&peer).await, By::Peer, "nothing has asked for it");
    relay.shut_down();
}
