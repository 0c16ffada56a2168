//! What the book says of streams and receivers.

use std::time::Duration;

use futures_util::FutureExt as _;
use outflow_config::{StreamConfig, Takeover};

use super::*;
use crate::limits::REPLICA_LINGER;
use crate::turn::TurnRules;

const ALONE: Terms = terms(1, 1);

const fn terms(workers: usize, split: usize) -> Terms {
    Terms { relay_max: 10, placing: Placing { workers, split }, worker: None }
}

fn entry(receivers_max: usize) -> StreamEntry {
    StreamEntry {
        renditions: Vec::new(),
        owner: Owner { worker: 0, stream: 1 },
        options: StreamOptions::default(),
        bounds: LevelBounds::default(),
        is_pushed: true,
        turns: (&StreamConfig::default()).into(),
        receivers_max,
        receivers: 0,
        publisher: None,
        replicas: Vec::new(),
    }
}

fn admit(registry: &Registry, stream: &str, receiver: ReceiverId, terms: Terms) -> Admission {
    let mut replicated = false;
    let replicate = |_| {
        replicated = true;
        vec![tokio::sync::watch::channel(true).1]
    };
    let admitted = registry.admit(stream, receiver, terms, || 100 + receiver, replicate);
    admitted.map(|admitted| (admitted.owner.worker, admitted.owner.stream, replicated))
}

/// A turn at stream "a", if it may begin.
fn claim(registry: &Registry, turn: Turn, now: Time) -> Result<Owner, ControlError> {
    let mut begun = None;
    let claimed = registry.claim("a", turn, now, |owner| begun = Some(owner));
    assert_eq!(begun, claimed.as_ref().ok().copied(), "its worker is told if it begins");
    claimed
}

/// The worker, the stream's number there, and whether it has been told of the stream.
type Admission = Result<(usize, StreamId, bool), ControlError>;

#[test]
fn one_publisher_at_a_time() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(1));
    let begin = |source| claim(&registry, Turn::new(source, "a test", Time::ZERO), Time::ZERO);
    begin(1).expect("free");
    assert_eq!(begin(2), Err(ControlError::Busy("a".to_owned())));
    registry.release("a", 2);
    assert!(begin(2).is_err(), "only its holder gives the place back");
    registry.release("a", 1);
    begin(2).expect("free again");
}

#[test]
fn a_publisher_is_taken_over_as_the_stream_says() {
    let (timeout, almost) = (Duration::from_secs(2), Duration::from_millis(1999));
    let at = |after| Time::from_millis(5000) + after;
    for (takeover, when_live, when_silent) in
        [(Takeover::Always, true, true), (Takeover::Silent, false, true), (Takeover::Never, false, false)]
    {
        let registry = Registry::default();
        let config = StreamConfig { takeover, source_timeout: timeout, ..StreamConfig::default() };
        let turns = TurnRules::from(&config);
        for (now, is_taken) in [(at(almost), when_live), (at(timeout), when_silent)] {
            registry.insert("a".into(), StreamEntry { turns, ..entry(1) });
            let first = Turn::new(1, "first", Time::from_millis(1000));
            let (media, ended) = (first.media(), first.ended());
            claim(&registry, first, Time::from_millis(1000)).expect("free");
            media.came(at(Duration::ZERO));
            let counted = registry.ended_turns().taken_over;
            let claimed = claim(&registry, Turn::new(2, "second", now), now);
            assert_eq!(claimed.is_ok(), is_taken, "{takeover:?} at {now}");
            assert_eq!(ended.get(), is_taken.then_some(&CloseReason::TakenOver), "{takeover:?} at {now}");
            assert_eq!(registry.ended_turns().taken_over - counted, u64::from(is_taken));
            registry.release("a", 1);
            let third = claim(&registry, Turn::new(3, "third", now), now).is_ok();
            assert_eq!(third, !is_taken || takeover == Takeover::Always, "the old one gives nothing back");
        }
    }
}

#[test]
fn a_publisher_that_has_sent_nothing_counts_from_its_beginning() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(1));
    let begun = Time::from_millis(1000);
    claim(&registry, Turn::new(1, "first", begun), begun).expect("free");
    let may_begin = |after| {
        let now = begun + Duration::from_millis(after);
        claim(&registry, Turn::new(2, "second", now), now).is_ok()
    };
    assert!(!may_begin(1999), "it has only just come");
    assert!(may_begin(2000));
}

#[test]
fn a_publisher_without_media_is_let_go_and_one_with_media_is_waited_for() {
    let registry = Registry::default();
    let config = StreamConfig {
        source_timeout: Duration::from_secs(20),
        publish_timeout: Duration::from_secs(10),
        ..StreamConfig::default()
    };
    registry.insert("a".into(), StreamEntry { turns: (&config).into(), ..entry(1) });
    let at = |seconds: u64| Time::from_millis(1000 * seconds);
    let turn = Turn::new(1, "first", at(5));
    let (media, ended) = (turn.media(), turn.ended());
    claim(&registry, turn, at(5)).expect("free");
    assert_eq!(registry.look_for_media("a", 1, at(14)), Some(at(15)));
    media.came(at(14));
    assert_eq!(registry.look_for_media("a", 1, at(15)), Some(at(34)), "as long as it does not count as away");
    assert_eq!(registry.look_for_media("a", 2, at(99)), None, "another turn");
    assert_eq!((ended.get(), registry.ended_turns().no_media), (None, 0));
    assert_eq!(registry.look_for_media("a", 1, at(34)), None);
    assert_eq!((ended.get(), registry.ended_turns().no_media), (Some(&CloseReason::NoMedia), 1));
    claim(&registry, Turn::new(2, "second", at(34)), at(34)).expect("its place is free");
}

#[test]
fn receivers_are_counted_and_limited() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(2));
    admit(&registry, "a", 1, ALONE).expect("room");
    admit(&registry, "a", 2, ALONE).expect("room");
    let limited = admit(&registry, "a", 3, ALONE);
    assert!(matches!(limited, Err(ControlError::Limit { limit: 2, .. })));
    registry.discharge(1);
    registry.discharge(1);
    admit(&registry, "a", 3, ALONE).expect("room again");
    assert!(registry.receiver(1).is_none() && registry.receiver(3).is_some());
    let full = admit(&registry, "a", 4, Terms { relay_max: 2, ..ALONE });
    assert!(matches!(full, Err(ControlError::Limit { .. })));
}

#[test]
fn beyond_the_split_others_help_and_those_that_do_so_are_filled_first() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    let terms = terms(3, 2);
    let mut places = Vec::new();
    for receiver in 1..=8 {
        places.push(admit(&registry, "a", receiver, terms).expect("room"));
    }
    let (owner, first, second) = ((0, 1, false), (1, 103, true), (2, 105, true));
    let again = |(worker, stream, _)| (worker, stream, false);
    // Two with its owner, two each at the others; then everywhere in turn.
    assert_eq!(places[..6], [owner, owner, first, again(first), second, again(second)]);
    assert_eq!(places[6..], [owner, again(first)]);
    assert_eq!(registry.receiver(3), Some(Owner { worker: 1, stream: 103 }));
    registry.discharge(1);
    registry.discharge(2);
    assert_eq!(admit(&registry, "a", 9, terms), Ok(owner), "there is room at owner again");
}

#[test]
fn a_worker_that_has_much_to_do_does_not_help() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    let busy = StreamEntry { owner: Owner { worker: 1, stream: 2 }, ..entry(20) };
    registry.insert("busy".into(), busy);
    let (alone, two) = (terms(1, 9), terms(2, 1));
    for receiver in 1..=2 {
        admit(&registry, "busy", receiver, alone).expect("room");
    }
    let mut workers = Vec::new();
    for receiver in 3..=6 {
        workers.push(admit(&registry, "a", receiver, two).expect("room").0);
    }
    assert_eq!(workers, [0, 0, 0, 1]);
    registry.remove("busy");
    assert_eq!(registry.place("a", two.placing), Ok(1), "its receivers are gone");
}

#[test]
fn a_stream_that_reserves_is_served_where_there_is_room_for_it() {
    let reserving = |(worker, stream), reserve| StreamEntry {
        owner: Owner { worker, stream },
        options: StreamOptions { reserve, ..StreamOptions::default() },
        ..entry(20)
    };
    let registry = Registry::default();
    registry.insert("a".into(), reserving((0, 1), 50_000));
    registry.insert("b".into(), reserving((1, 2), 40_000));
    let three = terms(3, 1);
    let workers: Vec<_> =
        (1..=4).map(|receiver| admit(&registry, "a", receiver, three).expect("room").0).collect();
    assert_eq!(workers, [0, 2, 0, 2], "worker 1 has no room, and others have not many receivers");
    assert!(registry.reserves_but("b").fits(1, 80_000));
    assert!(!registry.reserves_but("b").fits(2, 31_000), "a replica reserves the same");
    let chosen = Terms { worker: Some(1), ..three };
    assert!(matches!(admit(&registry, "a", 9, chosen), Err(ControlError::NoRoom(_))));
    registry.remove("b");
    assert_eq!(admit(&registry, "a", 9, chosen).map(|(worker, ..)| worker), Ok(1));
}

#[test]
fn a_session_goes_with_its_receiver() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    let token = |digit: char| digit.to_string().repeat(32).parse().expect("a token");
    registry.open_session(1, token('1'));
    assert_eq!(registry.session(token('1')), None, "none is there");
    for receiver in 1..=3 {
        admit(&registry, "a", receiver, ALONE).expect("room");
    }
    registry.open_session(1, token('0'));
    registry.open_session(1, token('1'));
    registry.open_session(2, token('2'));
    assert_eq!(['0', '1', '2'].map(|digit| registry.session(token(digit))), [None, Some(1), Some(2)]);
    registry.discharge(1);
    assert_eq!(['1', '2'].map(|digit| registry.session(token(digit))), [None, Some(2)]);
    registry.remove("a");
    assert_eq!(registry.session(token('2')), None);
}

#[test]
fn a_stream_is_known_by_its_number_with_any_worker() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    registry.insert("b".into(), StreamEntry { owner: Owner { worker: 0, stream: 2 }, ..entry(20) });
    let name = |number| registry.of_number(number).map(|(name, _)| name);
    let chosen = Terms { worker: Some(1), ..terms(2, 1) };
    admit(&registry, "a", 1, chosen).expect("room");
    assert_eq!([1, 101, 2, 3].map(name), [Some("a".into()), Some("a".into()), Some("b".into()), None]);
    registry.insert("a".into(), StreamEntry { owner: Owner { worker: 0, stream: 3 }, ..entry(20) });
    assert_eq!([1, 101, 3].map(name), [None, None, Some("a".into())], "another stream of this name");
    registry.remove("a");
    assert_eq!([2, 3].map(name), [Some("b".into()), None]);
}

#[test]
fn a_worker_that_was_chosen_before_serves() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    let chosen = Terms { worker: Some(1), ..terms(2, 1) };
    assert_eq!(registry.place("a", chosen.placing), Ok(0));
    assert_eq!(admit(&registry, "a", 1, chosen), Ok((1, 101, true)));
}

#[test]
fn a_replica_without_receivers_rests_after_a_while_and_serves_again_when_needed() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    let terms = terms(2, 1);
    let resting = |wait| {
        let mut resting = Vec::new();
        registry.rest_idle(Instant::now() + wait, |owner| resting.push(owner.stream));
        resting
    };
    admit(&registry, "a", 1, terms).expect("room");
    assert_eq!(admit(&registry, "a", 2, terms), Ok((1, 102, true)));
    assert!(resting(2 * REPLICA_LINGER).is_empty(), "it has a receiver");
    registry.discharge(2);
    assert!(resting(REPLICA_LINGER / 2).is_empty(), "somebody may come");
    assert_eq!(resting(2 * REPLICA_LINGER), [102]);
    assert!(resting(2 * REPLICA_LINGER).is_empty(), "told once");
    assert_eq!(admit(&registry, "a", 3, terms), Ok((1, 102, true)), "under the same number");
}

#[test]
fn streams_are_counted_where_their_sources_are() {
    let registry = Registry::default();
    let at = |worker, stream| StreamEntry { owner: Owner { worker, stream }, ..entry(20) };
    for (name, worker, stream) in [("a", 0, 1), ("b", 2, 2), ("c", 2, 3)] {
        registry.insert(name.into(), at(worker, stream));
    }
    let chosen = Terms { worker: Some(1), ..terms(3, 1) };
    admit(&registry, "a", 1, chosen).expect("room");
    assert_eq!(registry.load(3), [1, 0, 2], "a replica does not count");
    registry.insert("b".into(), at(1, 4));
    assert_eq!(registry.load(3), [1, 1, 1], "another stream of this name");
    registry.remove("c");
    registry.remove("c");
    assert_eq!(registry.load(4), [1, 1, 0, 0]);
}

#[test]
fn the_receivers_of_a_stream_go_with_it_and_no_others() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    registry.insert("b".into(), StreamEntry { owner: Owner { worker: 0, stream: 2 }, ..entry(20) });
    for (stream, receiver) in [("a", 1), ("b", 2), ("a", 3), ("a", 4)] {
        admit(&registry, stream, receiver, ALONE).expect("room");
    }
    assert_eq!(registry.stream_of(3).as_deref(), Some("a"));
    registry.discharge(3);
    registry.insert("a".into(), StreamEntry { owner: Owner { worker: 0, stream: 3 }, ..entry(20) });
    registry.remove("a");
    let there = [1, 2, 3, 4].map(|receiver| registry.stream_of(receiver));
    assert_eq!(there, [None, Some("b".to_owned()), None, None]);
}

#[test]
fn a_replica_rests_only_if_it_had_no_receiver_all_the_while_and_its_stream_is_there() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(20));
    registry.insert("b".into(), StreamEntry { owner: Owner { worker: 0, stream: 2 }, ..entry(20) });
    let chosen = Terms { worker: Some(1), ..terms(2, 1) };
    let later = Instant::now() + 2 * REPLICA_LINGER;
    let resting = || {
        let mut resting = Vec::new();
        registry.rest_idle(later, |owner| resting.push((owner.worker, owner.stream)));
        resting
    };
    for (stream, receiver) in [("a", 1), ("a", 2), ("b", 3)] {
        admit(&registry, stream, receiver, chosen).expect("room");
        registry.discharge(receiver);
    }
    admit(&registry, "a", 4, chosen).expect("room");
    assert_eq!(resting(), [(1, 103)], "that of the other one has a receiver again");
    registry.discharge(4);
    registry.remove("a");
    assert!(resting().is_empty());
}

/// A grant for stream "a".
fn grant() -> Grant {
    let peer = std::net::SocketAddr::from(([10, 0, 0, 1], 5000));
    let request = outflow_door::Request::parse(peer, "a", "").expect("a request");
    let door = outflow_door::Door::new(outflow_door::Rules::default());
    let entered = door.enter(outflow_door::Right::Play, &request).now_or_never();
    entered.expect("no hook is asked").expect("it is open")
}

#[test]
fn what_was_granted_and_holds_no_longer_is_ended_and_nothing_else() {
    let registry = Registry::default();
    registry.insert("a".into(), entry(9));
    for receiver in [5, 6] {
        admit(&registry, "a", receiver, ALONE).expect("a place");
    }
    registry.keep(5, Some(grant()));
    let turn = Turn::new(1, "a peer", Time::ZERO).of(Some(&grant()));
    let ended = turn.ended();
    claim(&registry, turn, Time::ZERO).expect("free");
    let revoke = |holds: bool| {
        let mut told = Vec::new();
        let revoked = registry.revoke(
            |_| holds,
            |_, command| match command {
                Command::Leave { receiver, reason, .. } => told.push((receiver, reason)),
                Command::CloseSource { source, .. } => told.push((source, CloseReason::Revoked)),
                _ => panic!("nothing else is told"),
            },
        );
        (told, revoked.sessions, revoked.lingering)
    };
    let reason = CloseReason::Revoked;
    assert_eq!(revoke(true), (Vec::new(), 0, false));
    assert_eq!(revoke(false), (vec![(5, reason), (1, reason)], 2, true));
    assert_eq!(ended.get(), Some(&reason));
    assert_eq!(revoke(false), (vec![(5, reason)], 0, true), "it may have been told before it had joined");
    registry.discharge(5);
    assert_eq!(revoke(false), (Vec::new(), 0, false), "what the relay itself wanted stays");
    claim(&registry, Turn::new(2, "another", Time::ZERO), Time::ZERO).expect("its place is free");
}
