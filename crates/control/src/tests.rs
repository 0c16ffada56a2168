//! What control promises of a running relay.

use std::sync::Arc;

use outflow_config::{Config, Protocols, SourceUrl};
use outflow_engine::message::{CloseReason, Command, ControlError, Delivery, Framing, Receiver};
use outflow_media::Format;
use outflow_relay::{Encapsulation, Selection};
use tokio::sync::oneshot;

use crate::workers::Owner;
use crate::{PublishOptions, Relay, StreamLimits};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn once_a_worker_is_settled_all_that_it_was_told_before_is_done() {
    let relay = relay().await;
    let control = relay.control();
    let owner = control.entry("a").expect("there").owner;
    let mut answers = Vec::new();
    for stream in [owner.stream, u64::MAX] {
        let (reply, answer) = oneshot::channel();
        control.workers().tell(&owner, Command::Describe { stream, wanted: Selection::default(), reply });
        answers.push(answer);
    }
    control.workers().settled(&Owner { stream: u64::MAX, ..owner }).await;
    let mut answers = answers.iter_mut().map(|answer| answer.try_recv().expect("it has been answered"));
    assert_eq!(answers.next(), Some(Err(ControlError::NoSource("a".to_owned()))));
    assert_eq!(answers.next(), Some(Err(ControlError::StreamGone)), "there never was such a stream");
    relay.shut_down();
}

/// A relay that has one stream, "a", which takes publishers.
async fn relay() -> Relay {
    let text = "[limits]\nworkers = 1\n[streams.a]\n";
    Relay::start(Config::parse(text, "test", &Protocols::default()).expect("valid"), None, Vec::new())
        .await
        .expect("started")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_being_removed_is_not_there() {
    let relay = relay().await;
    let control = relay.control();
    let options = PublishOptions { format: Format::Ts, peer: "a test".to_owned(), configured: false };
    let _publisher = control.publish("a", options).await.expect("it takes one");
    let owner = control.entry("a").expect("there").owner;
    let reason = CloseReason::StreamRemoved;
    control.workers().tell(&owner, Command::RemoveStream { stream: owner.stream, reason });
    assert_eq!(control.describe("a", Selection::default()).await, Err(ControlError::StreamGone));
    let receiver = Receiver::new("test", "nowhere", Selection::default());
    let delivery = Delivery::Bytes(Encapsulation::Ts, Framing::Raw);
    let refused = control.play("a", receiver, delivery).await.expect_err("there is nothing to be played");
    assert_eq!(refused, ControlError::StreamGone);
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_not_configured_goes_though_limits_of_another_were_changed() {
    let relay = relay().await;
    let control = relay.control();
    control.adopt("b", SourceUrl::Push).await.expect("made");
    let limits = StreamLimits { max_receivers: Some(7), ..StreamLimits::default() };
    let changed = control.set_limits("a", limits).await.expect("possible");
    assert_eq!((changed.max_receivers, control.entry("a").expect("there").receivers_max), (7, 7));
    assert!(control.known("b").is_some() && control.config().streams.contains_key("b"));
    control.abandon("b").await;
    assert!(control.known("b").is_none() && !control.config().streams.contains_key("b"));
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_change_of_one_stream_leaves_the_others_where_they_are() {
    let relay = relay().await;
    let control = relay.control();
    control.adopt("b", SourceUrl::Push).await.expect("made");
    let before = control.config();
    let limits = StreamLimits { max_receivers: Some(7), ..StreamLimits::default() };
    control.set_limits("a", limits).await.expect("possible");
    let after = control.config();
    let is_same = |name: &str| Arc::ptr_eq(&before.streams[name], &after.streams[name]);
    assert_eq!((is_same("a"), is_same("b")), (false, true));
    relay.shut_down();
}
