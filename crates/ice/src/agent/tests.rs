//! Peers that are what they say, and others.

use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::testing;

const START: Time = Time::from_millis(1000);

fn path(last: u8) -> Path {
    Path { own: 0, peer: ([192, 0, 2, last], 40_000).into() }
}

fn credentials(name: &str) -> Credentials {
    Credentials { ufrag: name.to_owned(), password: format!("the password of {name}") }
}

fn agent() -> Agent {
    Agent::new(START, [7; 32], credentials("relay"), credentials("peer"))
}

fn checks(nominates: bool) -> Vec<u8> {
    testing::request("relay:peer", &credentials("relay"), nominates)
}

/// What the peer answers to what it is asked.
fn answered(question: &[u8]) -> Vec<u8> {
    testing::answer(question, &credentials("peer"))
}

/// Hands over a message, and takes out all that follows from it.
fn hand(agent: &mut Agent, now: Time, from: Path, bytes: &[u8]) -> (Result<(), Ignored>, Vec<Output>) {
    let result = agent.handle(now, from, &Check::new_checked(bytes).expect("a message"));
    (result, outputs(agent))
}

fn outputs(agent: &mut Agent) -> Vec<Output> {
    core::iter::from_fn(|| match agent.poll() {
        Output::Wait(..) | Output::Nothing => None,
        output => Some(output),
    })
    .collect()
}

/// All but datagrams.
fn told(outputs: &[Output]) -> Vec<Output> {
    outputs.iter().filter(|output| !matches!(output, Output::Send(..))).cloned().collect()
}

fn sent(outputs: &[Output]) -> Vec<(Path, &[u8])> {
    let datagram = |output| match output {
        &Output::Send(path, ref bytes) => Some((path, &bytes[..])),
        _ => None,
    };
    outputs.iter().filter_map(datagram).collect()
}

/// A peer with a path that it has chosen, and shown by DTLS that it is there.
fn secure(agent: &mut Agent, at: Path) {
    let (result, _) = hand(agent, START, at, &checks(true));
    assert_eq!(result, Ok(()));
    agent.handle_proof(START, at);
}

#[test]
fn a_peers_checks_are_answered_and_it_says_which_way_it_wants() {
    let mut agent = agent();
    assert_eq!(agent.poll(), Output::Wait(START + CONSENT, Wake::Consent));
    let (result, outputs) = hand(&mut agent, START, path(1), &checks(false));
    assert_eq!((result, told(&outputs)), (Ok(()), vec![Output::Valid(path(1))]));
    let [(to, answer)] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(to, path(1));
    assert!(answer.len() <= checks(false).len(), "an answer is no longer than what it answers");
    assert!(Check::new_checked(answer).expect("an answer").is_signed_by(&credentials("relay").key()));
    assert_eq!(agent.selected(), None, "it has not chosen");
    let (_, outputs) = hand(&mut agent, START, path(2), &checks(true));
    assert_eq!(told(&outputs), [Output::Valid(path(2)), Output::Selected(path(2))]);
    let (_, outputs) = hand(&mut agent, START, path(1), &checks(true));
    assert_eq!(told(&outputs), [Output::Selected(path(1))], "the latest is the one");
    assert_eq!(agent.selected(), Some(path(1)));
}

#[test]
fn messages_of_others_get_no_answer() {
    let (mut agent, relay, peer) = (agent(), credentials("relay"), credentials("peer"));
    for (bytes, why) in [
        (testing::request("relay:other", &relay, true), Ignored::OtherNames),
        (testing::request("other:peer", &relay, true), Ignored::OtherNames),
        (testing::request("relay", &relay, true), Ignored::OtherNames),
        (testing::request("relay:peer", &peer, true), Ignored::Unsigned),
        (answered(&checks(false)), Ignored::NotAsked),
    ] {
        assert_eq!(hand(&mut agent, START, path(1), &bytes), (Err(why), vec![]));
    }
    assert_eq!(agent.selected(), None);
}

#[test]
fn media_of_a_secure_peer_goes_elsewhere_only_if_it_says_so_there() {
    let mut agent = agent();
    secure(&mut agent, path(1));
    let (_, outputs) = hand(&mut agent, START, path(2), &checks(true));
    assert_eq!(told(&outputs), [Output::Valid(path(2))]);
    let [(_, _), (to, question)] = sent(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((to, agent.selected()), (path(2), Some(path(1))));
    let check = Check::new_checked(question).expect("a request");
    assert_eq!(check.names(), Some(("peer".into(), "relay".into())));
    assert!(check.is_signed_by(&credentials("peer").key()));
    let answer = answered(question);
    let elsewhere = hand(&mut agent, START, path(3), &answer);
    assert_eq!(elsewhere, (Err(Ignored::NotAsked), vec![]), "it must come from there");
    let (result, outputs) = hand(&mut agent, START, path(2), &answer);
    assert_eq!((result, outputs), (Ok(()), vec![Output::Selected(path(2))]));
}

#[test]
fn a_way_that_does_not_answer_is_asked_a_few_times_and_not_taken() {
    let mut agent = agent();
    secure(&mut agent, path(1));
    let (_, outputs) = hand(&mut agent, START, path(2), &checks(true));
    let mut questions = sent(&outputs).len() - 1;
    let mut waits = Vec::new();
    while let Output::Wait(at, Wake::Ask) = agent.poll() {
        waits.push((at.since(START)).as_millis());
        // The peer repeats its check meanwhile.
        let (_, outputs) = hand(&mut agent, at, path(2), &checks(true));
        assert_eq!(sent(&outputs).len(), 1, "the answer alone");
        agent.handle_timeout(at);
        questions += self::outputs(&mut agent).len();
        if questions > 9 {
            break;
        }
    }
    assert_eq!(questions, ASK_TIMES as usize);
    assert_eq!(waits, [250, 750, 1750, 3750, 7750]);
    assert_eq!(agent.selected(), Some(path(1)));
}

#[test]
fn ids_of_questions_cannot_be_told_from_those_of_others() {
    let id = |secret| {
        let mut agent = Agent::new(START, [secret; 32], credentials("relay"), credentials("peer"));
        secure(&mut agent, path(1));
        let (_, outputs) = hand(&mut agent, START, path(2), &checks(true));
        Check::new_checked(sent(&outputs)[1].1).expect("a request").transaction()
    };
    assert_ne!(id(1), id(2));
    assert_eq!(id(1), id(1), "the same seed gives the same bytes");
}

#[test]
fn a_peer_that_does_not_say_that_it_goes_on_has_ended() {
    for (is_heard, why) in [(false, End::NeverCame), (true, End::Silent)] {
        let mut agent = agent();
        if is_heard {
            secure(&mut agent, path(1));
        }
        agent.handle_timeout(START + CONSENT - Duration::from_millis(1));
        assert!(matches!(agent.poll(), Output::Wait(_, Wake::Consent)));
        agent.handle_timeout(START + CONSENT);
        assert_eq!((agent.poll(), agent.poll()), (Output::Ended(why), Output::Nothing));
        agent.handle_timeout(START + CONSENT * 2);
        assert_eq!(agent.poll(), Output::Nothing, "it ends once");
    }
}

#[test]
fn checks_and_proofs_say_that_it_goes_on() {
    let mut agent = agent();
    secure(&mut agent, path(1));
    let later = START + CONSENT / 2;
    agent.handle_proof(later, path(2));
    assert_eq!(agent.poll(), Output::Wait(START + CONSENT, Wake::Consent), "from a path that is not its own");
    agent.handle_proof(later, path(1));
    assert_eq!(agent.poll(), Output::Wait(later + CONSENT, Wake::Consent));
    let last = later + CONSENT / 2;
    hand(&mut agent, last, path(1), &checks(false)).0.expect("a check");
    assert_eq!(agent.poll(), Output::Wait(last + CONSENT, Wake::Consent));
}

#[test]
fn after_a_restart_both_names_hold_until_a_way_is_chosen_by_the_new_ones() {
    let mut agent = agent();
    secure(&mut agent, path(1));
    agent.restart(credentials("relay2"), credentials("peer2"));
    assert_eq!(agent.names().collect::<Vec<_>>(), ["relay2", "relay"]);
    let (result, outputs) = hand(&mut agent, START, path(3), &checks(true));
    assert_eq!((result, told(&outputs)), (Ok(()), vec![Output::Valid(path(3))]), "answered, and no more");
    let mixed = testing::request("relay2:peer", &credentials("relay2"), true);
    assert_eq!(hand(&mut agent, START, path(3), &mixed).0, Err(Ignored::OtherNames));
    assert_eq!(agent.selected(), Some(path(1)), "media goes on");
    let new = testing::request("relay2:peer2", &credentials("relay2"), true);
    assert_eq!(hand(&mut agent, START, path(1), &new).0, Ok(()));
    assert_eq!(agent.names().collect::<Vec<_>>(), ["relay2"]);
    assert_eq!(hand(&mut agent, START, path(1), &checks(true)).0, Err(Ignored::OtherNames));
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?}", agent());
    assert!(shown.contains("relay") && shown.contains("peer"), "{shown}");
    let password = format!("{:?}", "the password".as_bytes());
    for secret in ["password", password.trim_matches(['[', ']']), "7, 7"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_connection_that_was_closed_is_not_sent_to() {
    let mut agent = agent();
    secure(&mut agent, path(1));
    hand(&mut agent, START, path(2), &checks(true)).0.expect("a check");
    agent.handle_closed(path(2));
    assert!(matches!(agent.poll(), Output::Wait(_, Wake::Consent)), "nothing is asked there");
    agent.handle_closed(path(1));
    assert_eq!(agent.selected(), None);
}

proptest! {
    /// A peer may check from everywhere: what is known of that stays bounded, is told whole, and has the path in use.
    #[test]
    fn paths_are_bounded_and_what_is_told_of_them_is_right(
        steps in proptest::collection::vec((0_u8..20, any::<bool>(), any::<bool>()), 0..80),
    ) {
        let mut agent = agent();
        let mut known = std::collections::BTreeSet::new();
        for (place, nominates, proves) in steps {
            let (_, outputs) = hand(&mut agent, START, path(place), &checks(nominates));
            if proves {
                agent.handle_proof(START, path(place));
            }
            for output in told(&outputs) {
                match output {
                    Output::Valid(path) => prop_assert!(known.insert(path)),
                    Output::Invalid(path) => prop_assert!(known.remove(&path)),
                    Output::Selected(path) => prop_assert_eq!(agent.selected(), Some(path)),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert!(known.len() <= PATHS_MAX);
            prop_assert!(agent.selected().is_none_or(|path| known.contains(&path)));
            prop_assert!(known.contains(&path(place)), "it was heard there");
        }
    }
}
