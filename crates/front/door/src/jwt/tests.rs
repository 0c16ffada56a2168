//! Signed tokens.

use std::net::IpAddr;
use std::path::PathBuf;

use super::vectors::{BARE, EC, ED, ENDLESS, HMAC, JWKS, NONE, OTHER_AUDIENCE, OTHER_ISSUER, OTHER_KEY, RSA};
use outflow_config::KeysAt;

use super::*;

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

fn config() -> Arc<JwtConfig> {
    Arc::new(JwtConfig {
        jwks: KeysAt::File(PathBuf::from("keys.json")),
        issuer: "https://id.example".to_owned(),
        audience: "outflow".to_owned(),
        algorithms: vec![JwtAlgorithm::EdDsa, JwtAlgorithm::Es256, JwtAlgorithm::Rs256],
    })
}

fn signed() -> Signed {
    let signed = Signed::new();
    signed.set_keys(Some(Keys::parse(config().jwks.clone(), JWKS.as_bytes()).expect("keys")));
    signed
}

fn asked(right: Right, stream: Option<&str>, today: i64) -> Asked<'_> {
    Asked { right, peer: PEER, stream, today: Date(today) }
}

/// Why a token does not let in, or its name if it does.
fn judged(token: &str, asked: &Asked<'_>) -> String {
    match signed().judge(&config(), token, asked) {
        Ok(By::Signed { name, until, .. }) => format!("{name} until {}", until.0),
        Ok(_) => panic!("it is signed"),
        Err(NotSigned::Wrong) => "wrong".to_owned(),
        Err(NotSigned::Refused(refused)) => refused.to_string(),
    }
}

#[test]
fn a_token_gives_the_rights_that_it_claims_on_the_streams_that_it_names() {
    for token in [ED, EC, RSA] {
        assert!(is_signed(token));
        for (right, stream, expected) in [
            (Right::Publish, Some("live/b"), "JWT camera-7 until 2000"),
            (Right::Publish, Some("other"), "does not name this right with this stream"),
            (Right::Play, Some("live/a"), "JWT camera-7 until 2000"),
            (Right::Play, Some("live/b"), "does not name"),
            (Right::Play, None, "JWT camera-7 until 2000"),
            (Right::Control, None, "does not name"),
            (Right::Relay, None, "does not name"),
        ] {
            let said = judged(token, &asked(right, stream, 1500));
            assert!(said.contains(expected), "{right:?} {stream:?}: {said}");
        }
        assert!(judged(token, &asked(Right::Play, Some("live/a"), 2000)).contains("has expired"));
        assert!(judged(token, &asked(Right::Play, Some("live/a"), 900)).contains("not good yet"));
        assert!(
            judged(token, &asked(Right::Play, Some("live/a"), 950)).contains("camera-7"),
            "clocks differ"
        );
    }
}

#[test]
fn a_token_that_could_be_forged_or_is_for_others_is_wrong() {
    let play = asked(Right::Play, Some("live/a"), 1500);
    let (head, signature) = ED.rsplit_once('.').expect("three parts");
    let changed = format!("{head}.{}{}", if signature.starts_with('A') { 'B' } else { 'A' }, &signature[1..]);
    let unsigned = format!("{head}.");
    // Its head names a key of another kind.
    let mixed = [EC.split('.').next().expect("a head"), &ED[ED.find('.').expect("a dot") + 1..]].join(".");
    for token in [HMAC, NONE, OTHER_ISSUER, OTHER_AUDIENCE, ENDLESS, &changed, &unsigned, &mixed, "eyJ.a.b"] {
        let said = judged(token, &play);
        assert!(
            said == "wrong" || said.contains("key that it is signed with is not known"),
            "{token}: {said}"
        );
    }
    assert!(judged(BARE, &play).contains("does not name"));
    let long = format!("{head}.{}", "A".repeat(JWT_BYTES_MAX));
    assert_eq!(judged(&long, &play), "wrong");
}

#[test]
fn only_algorithms_that_are_listed_count() {
    let config = JwtConfig { algorithms: vec![JwtAlgorithm::Es256], ..(*config()).clone() };
    let play = asked(Right::Play, Some("live/a"), 1500);
    assert!(matches!(signed().judge(&Arc::new(config.clone()), ED, &play), Err(NotSigned::Wrong)));
    assert!(signed().judge(&Arc::new(config), EC, &play).is_ok());
}

#[tokio::test]
async fn a_key_that_is_not_known_is_asked_for_and_keys_of_another_place_do_not_count() {
    let play = asked(Right::Play, Some("live/a"), 1500);
    let signed = signed();
    let is_unknown = |judged: Result<By, NotSigned>| match judged {
        Err(NotSigned::Refused(refused)) => refused.to_string().contains("is not known"),
        _ => false,
    };
    assert!(is_unknown(signed.judge(&config(), OTHER_KEY, &play)));
    signed.wanted.notified().await;
    let elsewhere =
        JwtConfig { jwks: KeysAt::from_text("https://b.example").expect("a place"), ..(*config()).clone() };
    assert!(is_unknown(signed.judge(&Arc::new(elsewhere), ED, &play)));
    signed.set_keys(None);
    assert!(is_unknown(signed.judge(&config(), ED, &play)));
}

#[test]
fn a_set_without_keys_of_use_is_none() {
    let parse = |json: &str| Keys::parse(KeysAt::File(PathBuf::new()), json.as_bytes());
    for bad in ["", "{}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    let strange = JWKS.replace("{\"keys\":[", "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"secp256k1\"},7,");
    assert_eq!(parse(&strange).expect("keys").count(), 3, "what is not known here is left out");
    assert_eq!(parse(JWKS).expect("keys").count(), 3, "what signs with a shared secret is left out");
}

#[test]
fn the_first_end_of_those_that_are_in_is_noted() {
    let signed = signed();
    assert!(!signed.has_ended(Date(1000)));
    [30, 10, 20].into_iter().for_each(|until| signed.note(Some(Date(until))));
    assert!(!signed.has_ended(Date(9)) && signed.has_ended(Date(10)) && !signed.has_ended(Date(40)));
    signed.note(Some(Date(20)));
    assert!(signed.has_ended(Date(40)));
}
