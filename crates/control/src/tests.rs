//! What control promises of a running relay.

use std::sync::Arc;

use outflow_config::{ByteSize, Config, Protocols, Share, SourceUrl, Weight};
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
        let wanted = (Selection::default(), Encapsulation::Ts);
        control.workers().tell(&owner, Command::Describe { stream, wanted, reply });
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
    Relay::start(Config::parse(text, "test", &Protocols::default()).expect("valid"), None, Vec::new(), None)
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
    assert_eq!(
        control.describe("a", Selection::default(), Encapsulation::Ts).await,
        Err(ControlError::StreamGone)
    );
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

async fn started(text: &str) -> Result<Relay, ControlError> {
    Relay::start(Config::parse(text, "test", &Protocols::default()).expect("valid"), None, Vec::new(), None)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rings_take_no_more_memory_than_there_is_whatever_is_changed() {
    let relay =
        started("[limits]\nworkers = 1\nmemory = \"40 MB\"\n[streams.a]\n").await.expect("8 of 20 MB");
    let control = relay.control();
    let ring = |megabytes: u64| StreamLimits {
        ring: Some(ByteSize(megabytes * 1_000_000)),
        ..StreamLimits::default()
    };
    assert!(control.set_limits("a", ring(20)).await.is_ok());
    let refused = control.set_limits("a", ring(21)).await.expect_err("more than half").to_string();
    assert!(refused.contains("take 21 MB together, more than half of the memory (40 MB)"), "{refused}");
    assert_eq!(control.config().streams["a"].ring, ByteSize(20_000_000), "as it was");
    let refused = control.adopt("b", SourceUrl::Push).await.expect_err("8 MB more").to_string();
    assert!(refused.contains("limits.memory"), "{refused}");
    assert!(control.known("b").is_none());
    assert!(control.set_limits("a", ring(12)).await.is_ok());
    control.adopt("b", SourceUrl::Push).await.expect("there is room");
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_stream_reserves_changes_where_there_is_room_for_it() {
    let text = "[limits]\nworkers = 1\n[streams.a]\nreserve = \"50 %\"\n[streams.b]\n";
    let relay = started(text).await.expect("there is room");
    let control = relay.control();
    let wish = |percent: u64| StreamLimits {
        weight: Some(Weight::new(7).expect("possible")),
        reserve: Some(Some(Share(percent * 1000))),
        ..StreamLimits::default()
    };
    let options = || control.entry("b").expect("there").options;
    let before = (options(), control.config().streams["b"].clone());
    let refused = control.set_limits("b", wish(31)).await.expect_err("81 % of a worker");
    assert!(matches!(refused, ControlError::NoRoom(_)), "{refused}");
    assert_eq!((options(), control.config().streams["b"].clone()), before, "it is as it was");
    control.set_limits("b", wish(30)).await.expect("there is room");
    assert_eq!((options().reserve, options().weight), (30_000, 7));
    let none = StreamLimits { reserve: Some(None), ..StreamLimits::default() };
    control.set_limits("b", none).await.expect("nothing is reserved");
    assert_eq!((options().reserve, options().weight), (0, 7));
    control.set_limits("a", wish(80)).await.expect("all of it is free");
    relay.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_relay_whose_rings_are_more_than_the_machine_has_does_not_start() {
    let streams =
        |count| (0..count).map(|n| format!("[streams.s{n}]\nring = \"4 GiB\"\n")).collect::<String>();
    let refused = started(&format!("[limits]\nworkers = 1\n{}", streams(4000))).await.err().expect("16 TB");
    assert!(refused.to_string().contains("the rings of 4000 streams take 16000 GiB together"), "{refused}");
}
