use futures_util::FutureExt as _;

use super::*;
use crate::limits::{FORGIVEN_EVERY, WRONG_TOKENS};
use outflow_config::{StreamPattern, Text as _, TokenHash, TokenRight};
use outflow_media::Network;
use sha2::Digest as _;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

fn door() -> Door {
    let secrets = |texts: &[&str]| texts.iter().map(|text| Secret::new(*text)).collect();
    Door::new(Rules {
        publish: secrets(&["in"]),
        play: secrets(&["out", "out2"]),
        control: secrets(&["ctl"]),
        relay: secrets(&["tree"]),
        ..Rules::default()
    })
}

fn enter(door: &Door, right: Right, token: &str) -> Result<(), Refused> {
    door.pass(right, PEER, Some(token)).map(drop)
}

fn enter_by(
    door: &Door,
    now: Instant,
    right: Right,
    peer: IpAddr,
    shown: &[Credential<'_>],
) -> Result<(), Refused> {
    door.pass_by(now, right, peer, shown).map(drop)
}

#[test]
fn each_right_has_its_tokens_and_relays_may_play() {
    let door = door();
    for (right, tokens) in [
        (Right::Publish, &["in"][..]),
        (Right::Play, &["out", "out2", "tree"]),
        (Right::Control, &["ctl"]),
        (Right::Relay, &["tree"]),
    ] {
        for token in ["in", "out", "out2", "ctl", "tree"] {
            let expected = if tokens.contains(&token) { Ok(()) } else { Err(Refused::TokenWrong) };
            assert_eq!(enter(&door, right, token), expected, "{right:?} {token}");
        }
        assert_eq!(door.pass(right, PEER, None).map(drop), Err(Refused::TokenMissing));
    }
}

#[test]
fn without_tokens_everybody_may_do_all_but_control() {
    let (door, now) = (Door::new(Rules::default()), Instant::now());
    for right in [Right::Publish, Right::Play, Right::Relay] {
        assert_eq!(enter_by(&door, now, right, PEER, &[]), Ok(()));
    }
    assert_eq!(enter(&door, Right::Control, "x"), Err(Refused::NotLocal));
    let local = IpAddr::V6("::ffff:127.0.0.1".parse().expect("an address"));
    assert_eq!(enter_by(&door, now, Right::Control, local, &[]), Ok(()));
}

#[test]
fn guesses_count_whatever_they_are_for_and_right_tokens_do_not() {
    let (door, now) = (door(), Instant::now());
    let rights = [Right::Publish, Right::Play, Right::Control, Right::Relay];
    for n in 0..WRONG_TOKENS as usize {
        let shown = [Credential::Token("x")];
        assert_eq!(enter_by(&door, now, rights[n % 4], PEER, &shown), Err(Refused::TokenWrong));
        let stale = [Credential::Answer(&|_| Verdict::Stale)];
        if n + 1 < WRONG_TOKENS as usize {
            assert_eq!(enter_by(&door, now, Right::Play, PEER, &[Credential::Token("out")]), Ok(()));
            assert_eq!(enter_by(&door, now, Right::Play, PEER, &stale), Err(Refused::TokenWrong));
        }
    }
    let right = [Credential::Token("out")];
    let refused = enter_by(&door, now, Right::Play, PEER, &right).expect_err("it has to wait");
    assert_eq!((&refused, refused.retry_after_s()), (&Refused::TooOften { wait: FORGIVEN_EVERY }, Some(3)));
    assert_eq!(enter_by(&door, now, Right::Play, IpAddr::from([10, 0, 0, 2]), &right), Ok(()));
    assert_eq!(enter_by(&door, now + FORGIVEN_EVERY, Right::Play, PEER, &right), Ok(()));
    let counts = door.counts();
    assert_eq!((counts.wrong_tokens, counts.too_often), (u64::from(WRONG_TOKENS), 1));
}

#[test]
fn one_right_credential_is_enough() {
    let (door, now) = (door(), Instant::now());
    let answers = |known: Known<'_>| match known {
        Known::Text("out2") => Verdict::Right,
        _ => Verdict::Wrong,
    };
    let shown = [Credential::Token("x"), Credential::Answer(&answers)];
    assert_eq!(enter_by(&door, now, Right::Play, PEER, &shown), Ok(()));
    assert_eq!(door.counts().wrong_tokens, 0);
    assert_eq!(enter_by(&door, now, Right::Publish, PEER, &shown), Err(Refused::TokenWrong));
    assert_eq!(door.counts().wrong_tokens, 2, "each is a guess");
}

/// A token with a name that is "k" (SHA-256 of `secret`).
fn named(rights: &[TokenRight], streams: &[&str], from: &[&str], expires: Option<i64>) -> AccessToken {
    AccessToken {
        name: "k".to_owned(),
        sha256: TokenHash(sha2::Sha256::digest(b"secret").into()),
        ha1: Vec::new(),
        rights: rights.to_vec(),
        streams: streams.iter().map(|text| StreamPattern::from_text(text).expect("a pattern")).collect(),
        from: from.iter().map(|text| Network::from_text(text).expect("a network")).collect(),
        expires: expires.map(Date),
    }
}

fn with(tokens: Vec<AccessToken>) -> Rules {
    Rules { tokens, ..Rules::default() }
}

fn ask(door: &Door, right: Right, stream: &str, today: i64) -> Result<By, Refused> {
    let asked = Asked { right, peer: PEER, stream: Some(stream), today: Date(today) };
    door.let_in(Instant::now(), &asked, &[Credential::Token("secret")])
}

#[test]
fn a_token_with_a_name_gives_its_rights_on_its_streams_from_its_addresses_until_it_expires() {
    let rights = [TokenRight::Publish];
    let door = Door::new(with(vec![named(&rights, &["live/*"], &["10.0.0.0/24"], Some(100))]));
    let why = |refused: Result<By, Refused>| match refused {
        Ok(By::Named(name, _)) => format!("by {name}"),
        Ok(_) => "open".to_owned(),
        Err(refused) => refused.to_string(),
    };
    assert_eq!(why(ask(&door, Right::Publish, "live/a", 99)), "by k");
    assert_eq!(why(ask(&door, Right::Play, "live/a", 99)), "open", "no token says anything of playing");
    assert!(why(ask(&door, Right::Publish, "other", 99)).contains("none of its streams"));
    assert!(why(ask(&door, Right::Publish, "live/a", 100)).contains("has expired"));
    door.set_rules(with(vec![named(&rights, &["*"], &["10.0.1.0/24"], None)]));
    assert!(why(ask(&door, Right::Publish, "live/a", 99)).contains("not for this address"));
    let play = Rules { play: vec![Secret::new("x")], ..with(vec![named(&rights, &["*"], &[], None)]) };
    door.set_rules(play);
    assert!(why(ask(&door, Right::Play, "live/a", 99)).contains("none of its rights"));
    assert_eq!(door.counts().wrong_tokens, 0, "a token that is known is no guess");
    assert_eq!(door.pass(Right::Publish, PEER, Some("sekret")).map(drop), Err(Refused::TokenWrong));
    door.set_rules(with(vec![named(&[TokenRight::Relay, TokenRight::Play], &["*"], &[], None)]));
    assert_eq!(why(ask(&door, Right::Play, "any", 99)), "by k");
}

/// A grant for playing "live/a", which these rules give.
fn granted(rules: &Rules, token: Option<&str>) -> Grant {
    let request = Request::parse((PEER, 5000).into(), "live/a", "").expect("a request");
    let request = Request { token: token.map(str::to_owned), ..request };
    let door = Door::new(rules.clone());
    door.enter(Right::Play, &request).now_or_never().expect("no hook is asked").expect("it may")
}

#[test]
fn a_grant_holds_for_as_long_as_it_would_be_given() {
    let token = |streams, from, expires| with(vec![named(&[TokenRight::Play], streams, from, expires)]);
    let good = token(&["live/*"], &["10.0.0.0/24"], None);
    let grant = granted(&good, Some("secret"));
    assert_eq!((grant.name(), &**grant.stream()), (Some("k"), "live/a"));
    assert!(grant.holds(&good, Date(5)) && grant.holds(&Rules::default(), Date(5)));
    assert!(grant.holds(&token(&["live/a"], &[], Some(6)), Date(5)));
    let other = AccessToken { sha256: TokenHash([0; 32]), ..named(&[TokenRight::Play], &["*"], &[], None) };
    for bad in [
        token(&["live/*"], &[], Some(5)),
        token(&["other"], &[], None),
        token(&["*"], &["10.0.1.0/24"], None),
        Rules { play: vec![Secret::new("secret")], ..Rules::default() },
        with(vec![other]),
    ] {
        assert!(!grant.holds(&bad, Date(5)), "{bad:?}");
    }
    let listed = |text: &str| Rules { play: vec![Secret::new(text)], ..Rules::default() };
    let grant = granted(&listed("one"), Some("one"));
    assert!(grant.holds(&listed("one"), Date(5)) && !grant.holds(&listed("two"), Date(5)));
    let relay = Rules { relay: vec![Secret::new("one")], ..listed("two") };
    assert!(grant.holds(&relay, Date(5)), "relays may play");
    let grant = granted(&Rules::default(), None);
    assert!(grant.holds(&Rules::default(), Date(5)) && !grant.holds(&listed("one"), Date(5)));
}

#[test]
fn grants_are_looked_at_when_rules_change_and_when_a_token_expires() {
    let door = Door::new(with(vec![named(&[TokenRight::Play], &["*"], &[], Some(100))]));
    let mut look = Look::default();
    let mut lapsed = |today| door.have_lapsed_at(Date(today), &mut look);
    assert!(lapsed(98) && !lapsed(98) && !lapsed(99), "the first look is at all");
    assert!(lapsed(100) && !lapsed(101));
    door.set_rules(Rules::default());
    assert!(lapsed(101) && !lapsed(101));
}

#[tokio::test]
async fn the_end_of_a_grant_is_waited_for() {
    let rules = Rules { play: vec![Secret::new("one")], ..Rules::default() };
    let (door, grant) = (Arc::new(Door::new(rules.clone())), granted(&rules, Some("one")));
    let over = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.over(&grant).await }
    });
    tokio::task::yield_now().await;
    assert!(!over.is_finished());
    door.set_rules(Rules { play: vec![Secret::new("two")], ..rules });
    over.await.expect("over");
}

#[test]
fn secrets_are_in_nothing_that_is_printed() {
    let rules = Rules { play: vec![Secret::new("s3cret")], ..with(vec![named(&[], &["*"], &[], None)]) };
    let (door, grant) = (Door::new(rules.clone()), granted(&rules, Some("s3cret")));
    let printed = format!("{door:?} {grant:?}");
    assert!(!printed.contains("s3cret") && !printed.contains("43, 184"), "{printed}");
}
