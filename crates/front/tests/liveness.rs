//! A worker or a task that ends, or hangs, is found out, and the relay ends in bounded time.

#![allow(clippy::disallowed_methods, reason = "a test of sockets and files")]

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::Request;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use outflow_config::Config;
use outflow_control::{Control, Front, Playing, PublishOptions, Publisher, Relay, Started, Task};
use outflow_door::local::own_user;
use outflow_engine::message::{
    ControlError, Delivery, Outlet, Peer, PeerEvent, PeerPath, PeerWake, Receiver,
};
use outflow_engine::{Packets, Recent};
use outflow_media::ecn::Mark;
use outflow_media::{Format, Time, Track};
use outflow_packet::TrackMask;
use outflow_relay::{Encapsulation, Report};
use outflow_rtp::PlainHeader;
use outflow_udp::{Options, Udp};
use tokio::time::timeout;
use tower::ServiceExt as _;

/// Longer than anything here takes, so that a failure is one and no hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A receiver's protocol with a mistake in it, which shows when there are packets.
#[derive(Debug)]
enum Mistaken {
    Panics,
    /// Says so, and hangs until the other end is dropped.
    Hangs(mpsc::Sender<()>, mpsc::Receiver<()>),
}

/// One that hangs; what says that it does, and what holds it.
fn hanging() -> (Mistaken, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((begun, hangs), (held, until)) = (mpsc::channel(), mpsc::channel());
    (Mistaken::Hangs(begun, until), hangs, held)
}

impl Peer for Mistaken {
    fn write(
        &mut self,
        _: Time,
        packets: &mut Packets<'_>,
        _: Option<&mut dyn Outlet>,
        _: &mut dyn FnMut(Report),
    ) -> usize {
        match self {
            Mistaken::Panics => panic!("on purpose"),
            Mistaken::Hangs(begun, until) => {
                let _ = begun.send(());
                let _ = until.recv();
            }
        }
        packets.heads().len()
    }

    fn write_rtcp(&mut self, _: Time, _: u8, _: &[u8]) {}

    fn handle_datagram(&mut self, _: Time, _: (SocketAddr, Mark), _: &mut [u8], _: &Recent) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        None
    }

    fn next_timeout(&self) -> Option<(Time, PeerWake)> {
        None
    }

    fn handle_timeout(&mut self, _: Time, _: &Recent) {}

    fn poll_event(&mut self) -> Option<PeerEvent> {
        None
    }

    fn close(&mut self, _: Time, _: &str) {}
}

async fn relay(fronts: Vec<Arc<dyn Front>>) -> Relay {
    let text = "[listen]\nrtsp = \"off\"\nhttp = \"off\"\nrtp_ports = \"47000-47199\"\n\
                [limits]\nworkers = 1\n[streams.live]\n";
    let config = Config::parse(text, "test", &outflow_fronts::protocols());
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    Relay::start(config, None, fronts, None).await.expect("started")
}

/// A stream of one packet, and a receiver of it.
async fn give_a_packet(control: &Control, mistaken: Mistaken) -> (Publisher, Playing) {
    let format = Format::Rtp(vec![Track::h264()]);
    let options = PublishOptions { format, peer: "test".to_owned(), configured: false };
    let camera = control.publish("live", options).await.expect("free");
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let receiver = Receiver::new("mistaken", here, Default::default());
    let playing = control
        .play("live", receiver, Delivery::Peer(Encapsulation::Rtp, 1, TrackMask::ALL))
        .await
        .expect("a place");
    let udp = Arc::new(Udp::bind(here, &Options::default()).expect("a port"));
    playing.start_peer(Box::new(mistaken), PeerPath { udp, peer: here, own: None });
    let header = PlainHeader { marker: true, payload_type: 96, sequence: 0, timestamp: 0, ssrc: 7 };
    let mut key_frame = BytesMut::from(&header.emit()[..]);
    key_frame.extend_from_slice(&[0x65, 0xb0]);
    camera.try_send(0, key_frame);
    (camera, playing)
}

/// The status and body of an answer.
async fn ask(control: &Control, path: &str) -> (u16, String) {
    let peer = outflow_api::Peer { address: SocketAddr::from(([127, 0, 0, 1], 9)), user: Some(own_user()) };
    let router = outflow_api::router(control.clone()).layer(Extension(peer));
    let request = Request::get(path).header("Host", "localhost").body(Body::empty()).expect("a request");
    let answer = router.oneshot(request).await.expect("routers do not fail");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a whole body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Asks until the answer has that status.
async fn answer(control: &Control, path: &str, status: u16) -> String {
    let asked = async {
        loop {
            match ask(control, path).await {
                (got, body) if got == status => return body,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{path} never answered {status}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_panics_is_told_with_its_reason() {
    let mut relay = relay(Vec::new()).await;
    let control = relay.control().clone();
    let _kept = give_a_packet(&control, Mistaken::Panics).await;
    let fatal = timeout(PATIENCE, relay.ended()).await.expect("in time").expect_err("not as it was told");
    assert_eq!((&*fatal.what, &*fatal.why), ("worker-0", "a panic: on purpose"));
    let asked = timeout(PATIENCE, control.describe("live", Default::default(), Encapsulation::Rtp))
        .await
        .expect("in time");
    assert_eq!(asked, Err(ControlError::ShuttingDown));
    assert!(relay.shut_down().is_empty(), "its thread has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs_is_not_well_as_long_as_it_does() {
    let relay = relay(Vec::new()).await;
    let control = relay.control();
    answer(control, "/readyz", 200).await;
    let (mistaken, _hangs, held) = hanging();
    let _kept = give_a_packet(control, mistaken).await;
    for path in ["/healthz", "/readyz"] {
        let body = answer(control, path, 503).await;
        assert!(body.contains("worker-0 for ") && !body.contains("control"), "{path}: {body}");
    }
    let (_, metrics) = ask(control, "/metrics").await;
    let age =
        metrics.lines().find_map(|line| line.strip_prefix("outflow_heartbeat_age_seconds{of=\"worker-0\"} "));
    let age: f64 = age.and_then(|age| age.parse().ok()).unwrap_or_else(|| panic!("{metrics}"));
    assert!(age > 1.0, "{age}");
    let (_, shown) = ask(control, "/api/v1/relay").await;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let late: Vec<_> =
        shown["heartbeats"].as_array().expect("a list").iter().map(|beat| &beat["late"]).collect();
    assert_eq!(late, [&serde_json::json!(false), &serde_json::json!(true)]);
    drop(held);
    answer(control, "/healthz", 200).await;
    assert!(relay.shut_down().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs_is_left_behind_at_the_end() {
    let relay = relay(Vec::new()).await;
    let (mistaken, hangs, held) = hanging();
    let _kept = give_a_packet(relay.control(), mistaken).await;
    hangs.recv_timeout(PATIENCE).expect("it hangs");
    assert_eq!(relay.shut_down(), ["worker-0"]);
    drop(held);
}

/// A protocol of which a task ends that should not.
#[derive(Debug)]
struct Ending;

impl Front for Ending {
    fn listen(&self, _: Control) -> Started {
        Box::pin(async { Ok(vec![Box::pin(async {}) as Task<()>]) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_ends_is_told() {
    let mut relay = relay(vec![Arc::new(Ending)]).await;
    let fatal = timeout(PATIENCE, relay.ended()).await.expect("in time").expect_err("not as it was told");
    assert_eq!(fatal.what, "a listener of Ending");
    relay.shut_down();
}
