//! Against a real `nats-server`: what two relays say to each other through it, and what becomes of it when it
//! is away.
#![allow(clippy::disallowed_methods, reason = "tests have processes, files and time")]

mod access;
mod server;

use std::cmp::Reverse;

use futures_util::StreamExt as _;
use outflow_directory::limits::{NEAREST, OTHERS, WATCHES_MAX};
use outflow_directory::{Away, Directory, Entry, Event, Options, RelayRecord, Storage};
use outflow_routing::tree::{Contact, Location, Offer, Path, RelayId, Root};
use server::{Server, back, connected, event, eventually};
use std::time::Duration;

const HERE: Location = Location { x_km: 0, y_km: 0 };

/// A relay, as many kilometres away as its number says, has a stream.
fn entry(stream: &str, relay: u64) -> Entry {
    let contact = Contact {
        relay: RelayId(relay),
        address: "192.0.2.1:8080".parse().expect("an address"),
        location: Location { x_km: relay as i32, y_km: 0 },
    };
    let root = Root { preference: 0, relay: RelayId(1), incarnation: Reverse(7) };
    let path = Path { root, beat: Reverse(3), depth: 2 };
    Entry { stream: stream.to_owned(), offer: Offer { contact, path, load: 9 } }
}

fn record(relay: u64) -> RelayRecord {
    RelayRecord {
        relay: RelayId(relay),
        name: format!("relay-{relay}"),
        addresses: vec!["192.0.2.1:8080".to_owned()],
        version: "0.1.0".to_owned(),
        location: HERE,
        load: 0,
        streams: vec!["a/b.c".to_owned()],
        streams_total: 1,
    }
}

async fn relays_of(directory: &Directory, stream: &str) -> Result<Vec<u64>, Away> {
    let entries = directory.lookup(stream, HERE).await?;
    Ok(entries.iter().map(|entry| entry.offer.contact.relay.0).collect())
}

/// Waits until a lookup answers with these relays.
async fn answers(directory: &Directory, stream: &str, relays: &[u64]) {
    let what = format!("{stream} is with {relays:?}");
    eventually(&what, async || relays_of(directory, stream).await.is_ok_and(|found| found == relays)).await;
}

#[tokio::test]
async fn what_one_relay_says_others_find() {
    let Some(server) = Server::start("what one relay says others find", "") else { return };
    let ((one, _events), (two, _)) = (connected(server.options()).await, connected(server.options()).await);
    assert_eq!(relays_of(&two, "a/b.c").await, Ok(vec![]), "none has it");
    one.register(&entry("a/b.c", 20));
    two.register(&entry("a/b.c", 10));
    one.register(&entry("a/b", 5));
    answers(&two, "a/b.c", &[10, 20]).await;
    answers(&one, "a/b.c", &[10, 20]).await;
    assert_eq!(two.lookup("a/b.c", HERE).await.expect("an answer")[1], entry("a/b.c", 20));

    let mut fuller = entry("a/b.c", 20);
    fuller.offer.load = 200;
    one.register(&fuller);
    eventually("the newest holds", async || two.lookup("a/b.c", HERE).await.is_ok_and(|e| e[1] == fuller))
        .await;
    one.withdraw("a/b.c", RelayId(20));
    answers(&two, "a/b.c", &[10]).await;

    one.announce(&record(20));
    two.announce(&record(10));
    eventually("both are there", async || two.relays().await == Ok(vec![record(10), record(20)])).await;
    let counters = two.counters();
    assert_eq!((counters.malformed, counters.put_refused, counters.lost), (0, 0, 0));
    assert!(counters.lookups_known > 0 && counters.put == 2, "{counters:?}");
}

#[tokio::test]
async fn a_relay_that_leaves_takes_back_what_it_said() {
    let Some(server) = Server::start("a relay that leaves", "") else { return };
    let ((one, _events), (two, _)) = (connected(server.options()).await, connected(server.options()).await);
    one.register(&entry("s", 1));
    one.announce(&record(1));
    answers(&two, "s", &[1]).await;
    one.leave().await;
    drop(one);
    // It is a new question, so the answer comes from NATS.
    let (three, _events) = connected(server.options()).await;
    assert_eq!(relays_of(&three, "s").await, Ok(vec![]));
    assert_eq!(three.relays().await, Ok(vec![]));
}

#[tokio::test]
async fn what_is_told_comes_to_those_that_listen() {
    let Some(server) = Server::start("what is told", "") else { return };
    let (one, _events) = connected(server.options()).await;
    let client = async_nats::connect(server.url()).await.expect("connected");
    let mut heard = client.subscribe("outflow.events.*.joined").await.expect("subscribed");
    client.flush().await.expect("sent");
    let message = tokio::time::timeout(Duration::from_secs(20), async {
        // Until the server knows what is listened to, it is told to none.
        loop {
            for kind in ["left", "joined"] {
                one.tell(format!("outflow.events.edge.{kind}"), kind.into()).await.expect("it is there");
            }
            if let Ok(message) = tokio::time::timeout(Duration::from_millis(100), heard.next()).await {
                break message.expect("a message");
            }
        }
    });
    let message = message.await.expect("in time");
    assert_eq!((&*message.subject, &message.payload[..]), ("outflow.events.edge.joined", &b"joined"[..]));
}

#[tokio::test]
async fn what_is_not_said_again_is_forgotten() {
    let Some(server) = Server::start("what is not said again", "") else { return };
    let options = Options { max_age: Duration::from_secs(2), ..server.options() };
    let ((one, _events), (two, _)) = (connected(options.clone()).await, connected(options.clone()).await);
    one.register(&entry("s", 1));
    one.announce(&record(1));
    answers(&two, "s", &[1]).await;
    drop(one);
    answers(&two, "s", &[]).await;
    let (three, _events) = connected(options).await;
    answers(&three, "s", &[]).await;
    eventually("the relay is forgotten", async || three.relays().await == Ok(vec![])).await;
}

/// NATS is killed and comes back: with what it kept, or with nothing.
async fn restarted(server: &mut Server, storage: Storage, is_emptied: bool) {
    let options = Options { storage, ..server.options() };
    let ((one, mut events), (two, _)) = (connected(options.clone()).await, connected(options).await);
    one.register(&entry("before", 1));
    one.register(&entry("withdrawn", 1));
    answers(&two, "before", &[1]).await;
    answers(&two, "withdrawn", &[1]).await;

    server.kill();
    assert!(matches!(event(&mut events).await, Event::Away { .. }));
    assert!(one.away().is_some());
    let why = one.lookup("before", HERE).await.expect_err("there is no answer").to_string();
    assert!(why.starts_with("the directory is away: nats://127.0.0.1:"), "{why}");
    assert!(one.relays().await.is_err());
    one.register(&entry("meanwhile", 1));
    one.withdraw("withdrawn", RelayId(1));
    if is_emptied {
        std::fs::remove_dir_all(server.store()).expect("removed");
    }

    server.restart();
    back(&mut events).await;
    for stream in ["before", "meanwhile"] {
        answers(&two, stream, &[1]).await;
    }
    answers(&two, "withdrawn", &[]).await;
    assert_eq!(one.counters().connected, 2);
}

#[tokio::test]
async fn after_a_restart_everything_is_there_again() {
    let Some(mut server) = Server::start("after a restart", "") else { return };
    restarted(&mut server, Storage::File, false).await;
}

#[tokio::test]
async fn after_a_restart_with_an_empty_store_everything_is_there_again() {
    let Some(mut server) = Server::start("after a restart with an empty store", "") else { return };
    restarted(&mut server, Storage::Memory, true).await;
}

#[tokio::test]
async fn relays_that_start_before_nats_find_each_other_when_it_is_there() {
    let Some(mut server) = Server::start("relays that start before NATS", "") else { return };
    server.kill();
    let (one, mut events) = Directory::start(server.options()).expect("good options");
    one.register(&entry("s", 1));
    assert!(matches!(event(&mut events).await, Event::Away { .. }));
    assert!(one.lookup("s", HERE).await.is_err());
    server.restart();
    back(&mut events).await;
    let (two, _events) = connected(server.options()).await;
    answers(&two, "s", &[1]).await;
}

#[tokio::test]
async fn a_server_that_is_silent_is_away() {
    let Some(server) = Server::start("a server that is silent", "") else { return };
    let (one, mut events) = connected(server.options()).await;
    server.pause();
    one.register(&entry("s", 1));
    assert!(one.lookup("s", HERE).await.is_err(), "the answer does not come");
    assert!(matches!(event(&mut events).await, Event::Away { .. }));
    server.resume();
    back(&mut events).await;
    answers(&one, "s", &[1]).await;
}

#[tokio::test]
async fn of_many_some_are_told() {
    let Some(server) = Server::start("of many some are told", "") else { return };
    let ((one, _events), (two, _)) = (connected(server.options()).await, connected(server.options()).await);
    let count = 2000;
    for relay in 1..=count {
        one.register(&entry("s", relay));
    }
    eventually("all are put", async || one.counters().put == count).await;
    for _ in 0..3 {
        let found = relays_of(&two, "s").await.expect("an answer");
        assert_eq!(found.len(), NEAREST + OTHERS);
        assert!(found[..NEAREST].is_sorted());
    }
    one.register(&entry("few", 1));
    answers(&two, "few", &[1]).await;
}

#[tokio::test]
async fn many_streams_are_looked_up_at_once() {
    let Some(server) = Server::start("many streams are looked up at once", "") else { return };
    let ((one, _events), (two, _)) = (connected(server.options()).await, connected(server.options()).await);
    let streams: Vec<_> = (0..WATCHES_MAX + 100).map(|n| format!("stream/{n}")).collect();
    for stream in &streams {
        one.register(&entry(stream, 1));
    }
    eventually("all are put", async || one.counters().put == streams.len() as u64).await;
    // Some answers may be late on a slow machine: relays ask again, too.
    let asked = streams.iter().map(|stream| answers(&two, stream, &[1]));
    futures_util::future::join_all(asked).await;
}

#[tokio::test]
async fn what_others_write_is_checked() {
    let Some(server) = Server::start("what others write is checked", "") else { return };
    let (one, _events) = connected(server.options()).await;
    one.register(&entry("s", 1));
    answers(&one, "s", &[1]).await;
    let client = async_nats::connect(server.url()).await.expect("a connection");
    let key = |relay: &str| format!("$KV.outflow.streams.s.{relay}");
    let newer = String::from_utf8(entry("s", 5).to_json()).expect("text").replace("\"v\":1", "\"v\":9");
    for (key, value) in [
        (key("0000000000000002"), b"{".to_vec()),
        (key("0000000000000003"), entry("s", 4).to_json()),
        (key("0000000000000004"), entry("other", 4).to_json()),
        (key("0000000000000005"), newer.into_bytes()),
        (key("six"), entry("s", 6).to_json()),
        (key("0000000000000007"), vec![b' '; 60_000]),
        ("$KV.outflow.relays.0000000000000001".to_owned(), record(2).to_json()),
    ] {
        client.publish(key, value.into()).await.expect("sent");
    }
    client.flush().await.expect("flushed");
    one.register(&entry("s", 8));
    answers(&one, "s", &[1, 8]).await;
    let counters = one.counters();
    assert_eq!((counters.malformed, counters.newer), (5, 1));
    assert_eq!(one.relays().await, Ok(vec![]));
    assert_eq!(one.counters().malformed, 6);
}

#[tokio::test]
async fn a_bucket_that_is_removed_is_made_again() {
    let Some(server) = Server::start("a bucket that is removed", "") else { return };
    let (one, mut events) = connected(server.options()).await;
    one.register(&entry("s", 1));
    answers(&one, "s", &[1]).await;
    let client = async_nats::connect(server.url()).await.expect("a connection");
    let context = async_nats::jetstream::new(client);
    context.delete_key_value("outflow").await.expect("deleted");
    one.register(&entry("t", 1));
    assert!(matches!(event(&mut events).await, Event::Away { .. }));
    back(&mut events).await;
    answers(&one, "s", &[1]).await;
    answers(&one, "t", &[1]).await;
}

#[tokio::test]
async fn a_bucket_of_somebody_else_is_used_as_it_is() {
    let Some(server) = Server::start("a bucket of somebody else", "") else { return };
    let client = async_nats::connect(server.url()).await.expect("a connection");
    let context = async_nats::jetstream::new(client);
    let theirs = async_nats::jetstream::stream::Config {
        name: "KV_outflow".to_owned(),
        subjects: vec!["$KV.outflow.>".to_owned()],
        max_messages_per_subject: 5,
        max_age: Duration::from_secs(600),
        ..Default::default()
    };
    context.create_stream(theirs).await.expect("a bucket");
    let (one, _events) = connected(server.options()).await;
    for _ in 0..3 {
        one.register(&entry("s", 1));
    }
    answers(&one, "s", &[1]).await;
    let mut stream = context.get_stream("KV_outflow").await.expect("the bucket");
    let info = stream.info().await.expect("its state");
    assert_eq!(info.config.max_age, Duration::from_secs(600));
}
