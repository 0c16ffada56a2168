//! What receivers of a relay want is asked for at its parent.

use std::net::SocketAddr;

use bytes::BytesMut;
use outflow_config::Config;
use outflow_control::Relay;
use outflow_media::Track;
use outflow_poc_socket::{PocListener, Security};
use outflow_rtp::PlainHeader;
use tokio::time::{sleep, timeout};

use super::*;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A relay of a tree, and where others reach it.
async fn relay(name: &str, more: &str) -> (Relay, SocketAddr) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = PocListener::bind(any, plain()).expect("bound");
    let at = listener.local_addr();
    let text = format!(
        "[listen]\npoc = \"{at}\"\n[poc]\nencryption = \"off\"\n[limits]\nworkers = 1\n\
         [tree]\nname = \"{name}\"\naddress = \"{at}\"\n{more}"
    );
    let fronts = vec![outflow_front_poc::front(), crate::front()];
    let known = fronts.iter().map(|front| front.protocol()).collect();
    let mut config = Config::parse(&text, "test", &known).unwrap_or_else(|errors| panic!("{errors}"));
    // It is bound already.
    config.listen.set("poc", None);
    let relay = Relay::start(config, None, fronts, None).await.expect("started");
    tokio::spawn(outflow_front_poc::serve(listener, relay.control().clone()));
    (relay, at)
}

fn plain() -> outflow_poc_socket::Options {
    outflow_poc_socket::Options::new(Security::Plain)
}

/// A camera that has sent one key frame.
async fn camera(control: &Control) -> Publisher {
    let format = Format::Rtp(vec![Track::h264()]);
    let options = PublishOptions { format, peer: "a camera".to_owned(), configured: false };
    let publisher = control.publish("live", options).await.expect("it takes one");
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 1, timestamp: 3_600, ssrc: 7 };
    let picture = [&header.emit()[..], &[0x65, 0xb0]].concat();
    assert_eq!(publisher.try_send(0, BytesMut::from(&picture[..])), Push::Taken);
    publisher
}

/// A player that has the picture.
async fn player(at: SocketAddr) -> Subscription {
    let options = Options { poc: Some(plain()), ..Options::default() };
    let mut player = loop {
        match subscribe(&format!("poc://{at}/live"), options.clone()).await {
            Ok(player) => break player,
            // The two relays do not know each other yet.
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    };
    while packet(&player.recv().await.expect("it goes on")).is_none() {}
    player
}

/// Receives, so that what is asked for is sent.
async fn keep_on(mut player: Subscription) -> Error {
    loop {
        if let Err(error) = player.recv().await {
            return error;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_frame_that_a_receiver_wants_is_asked_for_at_the_parent() {
    let (above, at_above) = relay("above", "[streams.live]\n").await;
    let (below, at_below) = relay("below", &format!("parents = [\"{at_above}\"]\n")).await;
    let mut camera = camera(above.control()).await;
    let mut heard = camera.take_feedback();
    let mut player = timeout(PATIENCE, player(at_below)).await.expect("in time");
    player.ask_key_frame(0);
    let asked = async {
        tokio::select! {
            track = heard.key_frame() => track,
            error = keep_on(player) => panic!("{error}"),
        }
    };
    assert_eq!(timeout(PATIENCE, asked).await.expect("in time"), 0);
    below.shut_down();
    above.shut_down();
}
