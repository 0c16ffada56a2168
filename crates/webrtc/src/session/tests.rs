//! A peer that finds the relay, shows its certificate, sends and is sent to.

use core::time::Duration;

use outflow_dtls::testing::{Peer, Version, clock};
use outflow_dtls::{Fingerprint, Identity, Settings};
use outflow_ice::limits::CONSENT;
use outflow_ice::testing::{answer, request};
use outflow_srtp::Halves;

use super::*;

const START: Time = Time::from_millis(5000);

fn credentials(name: &str) -> Credentials {
    Credentials { ufrag: name.to_owned(), password: format!("the password of {name}") }
}

fn path(last: u8) -> Path {
    Path { own: 0, peer: ([192, 0, 2, last], 40_000).into() }
}

struct Both {
    now: Time,
    session: Session,
    peer: Peer,
    scratch: Scratch,
    told: Vec<Output>,
}

impl Both {
    fn new() -> Self {
        let identity = Identity::generate().expect("a certificate");
        Self::with(&identity, identity.fingerprint())
    }

    fn with(peer: &Identity, said: Fingerprint) -> Self {
        let clock = clock();
        let agent = Agent::new(START, [7; 32], credentials("relay"), credentials("peer"));
        let settings = Settings::new().expect("it works");
        let ours = Identity::generate().expect("a certificate");
        let session = Session::new(agent, Server::new(START, clock, &settings, &ours, vec![said]));
        let peer = Peer::new(START, clock, Version::V13, peer);
        Both { now: START, session, peer, scratch: Scratch::default(), told: Vec::new() }
    }

    /// A datagram of the peer's by a path. What is sent to it by DTLS it gets.
    fn hand(&mut self, from: Path, bytes: &[u8]) -> Result<Received, Ignored> {
        let mut bytes = bytes.to_vec();
        let handled = self.session.handle_datagram(self.now, from, &mut bytes, &mut self.scratch);
        self.drain();
        handled
    }

    fn drain(&mut self) {
        loop {
            match self.session.poll() {
                Output::Send(_, bytes) if Server::is_dtls(&bytes) => {
                    self.peer.handle_datagram(self.now, &bytes)
                }
                Output::Wait(..) | Output::Nothing => return,
                output => self.told.push(output),
            }
        }
    }

    fn check(&mut self, from: Path, nominates: bool) {
        let request = request("relay:peer", &credentials("relay"), nominates);
        assert_eq!(self.hand(from, &request), Ok(Received::Own));
    }

    fn shake_hands(&mut self, from: Path) {
        loop {
            let sent = self.peer.sends();
            if sent.is_empty() {
                return;
            }
            for datagram in sent {
                let _late = self.hand(from, &datagram);
            }
        }
    }

    /// A peer that is ready at a path.
    fn ready() -> Self {
        let mut both = Both::new();
        both.check(path(1), true);
        both.shake_hands(path(1));
        assert!(both.told.contains(&Output::Ready), "{:?}", both.told);
        both
    }

    /// The peer's ends of SRTP.
    fn srtp(&self) -> (Sealer, Opener) {
        let profile = self.session.profile().expect("it is ready");
        let halves = Halves::new(profile, self.peer.material().expect("it is ready")).expect("their length");
        (Sealer::new(profile, &halves.client), Opener::new(profile, &halves.server))
    }
}

fn rtp() -> Vec<u8> {
    vec![0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, b'a', b'b']
}

fn rtcp() -> Vec<u8> {
    vec![0x80, 201, 0, 1, 0, 0, 0, 5]
}

#[test]
fn a_peer_is_found_known_and_sent_to() {
    let mut both = Both::new();
    assert_eq!(both.session.seal(&mut rtp(), 0, 0), Err(Ignored::TooEarly));
    both.check(path(1), true);
    assert_eq!(both.session.path(), None, "it has not shown its certificate");
    both.shake_hands(path(1));
    assert_eq!(both.session.path(), Some(path(1)));
    let (mut sealer, mut opener) = both.srtp();
    let mut packet = rtp();
    both.session.seal(&mut packet, 0, 0).expect("there are keys");
    assert_eq!(opener.open(&mut packet), Ok(14));
    let mut packet = rtcp();
    both.session.seal_control(&mut packet).expect("there are keys");
    assert_eq!(opener.open_control(&mut packet), Ok(8));
    let (mut media, mut control) = (rtp(), rtcp());
    sealer.seal(&mut media, 0, 0).expect("RTP");
    sealer.seal_control(&mut control).expect("RTCP");
    assert_eq!(both.hand(path(1), &media), Ok(Received::Media(14)));
    assert_eq!(both.hand(path(1), &control), Ok(Received::Control(8)));
    assert_eq!(both.hand(path(1), &media), Err(Ignored::Srtp(Refused::Replayed)));
}

#[test]
fn nothing_but_checks_is_taken_from_where_the_peer_was_not_heard() {
    let mut both = Both::new();
    let hello = both.peer.sends();
    assert_eq!(both.hand(path(1), &hello[0]), Err(Ignored::Elsewhere));
    assert_eq!(both.hand(path(1), &rtp()), Err(Ignored::Elsewhere));
    both.check(path(1), false);
    assert_eq!(both.hand(path(1), &rtp()), Err(Ignored::TooEarly));
    assert_eq!(both.hand(path(1), &[64; 20]), Err(Ignored::Unknown));
    assert!(matches!(both.hand(path(1), &[0; 20]), Err(Ignored::Check(_))));
    assert_eq!(both.hand(path(1), &hello[0]), Ok(Received::Own), "before it has chosen a path");
    assert_eq!(both.hand(path(2), &hello[0]), Err(Ignored::Elsewhere));
}

#[test]
fn a_peer_with_another_certificate_gets_nothing() {
    let [peer, other] = [(); 2].map(|()| Identity::generate().expect("a certificate"));
    let mut both = Both::with(&peer, other.fingerprint());
    both.check(path(1), true);
    both.shake_hands(path(1));
    assert_eq!(both.told.last(), Some(&Output::Ended(End::Dtls(outflow_dtls::End::OtherCertificate))));
    assert_eq!((both.session.path(), both.session.profile()), (None, None));
    assert_eq!(both.session.poll(), Output::Nothing);
}

#[test]
fn a_peer_that_moves_is_asked_before_media_follows() {
    let mut both = Both::ready();
    let move_there = request("relay:peer", &credentials("relay"), true);
    both.told.clear();
    both.hand(path(2), &move_there).expect("a check");
    assert_eq!(both.session.path(), Some(path(1)));
    let question = both.told.iter().find_map(|output| match output {
        Output::Send(to, bytes) if Check::new_checked(bytes).is_ok_and(|check| check.names().is_some()) => {
            (*to == path(2)).then(|| bytes.clone())
        }
        _ => None,
    });
    let answer = answer(&question.expect("it is asked there"), &credentials("peer"));
    assert_eq!(both.hand(path(2), &answer), Ok(Received::Own));
    assert_eq!(both.session.path(), Some(path(2)));
}

#[test]
fn a_peer_that_falls_silent_ends_and_reports_keep_it() {
    let mut both = Both::ready();
    let (mut sealer, _) = both.srtp();
    both.now = START + CONSENT / 2;
    let mut packet = rtcp();
    sealer.seal_control(&mut packet).expect("RTCP");
    both.hand(path(1), &packet).expect("a report");
    let Output::Wait(at, Wake::Consent) = both.session.poll() else { panic!("it waits") };
    assert_eq!(at, both.now + CONSENT);
    both.now = at - Duration::from_millis(1);
    both.session.handle_timeout(both.now, &mut both.scratch);
    both.drain();
    assert!(!both.told.iter().any(|output| matches!(output, Output::Ended(_))));
    both.now = at;
    both.session.handle_timeout(both.now, &mut both.scratch);
    both.drain();
    assert_eq!(both.told.last(), Some(&Output::Ended(End::Silent)));
    both.peer.sends();
    assert!(both.peer.is_closed(), "it is told, in case it is there");
}

#[test]
fn either_end_may_close() {
    let mut both = Both::ready();
    both.peer.close();
    both.shake_hands(path(1));
    assert_eq!(both.told.last(), Some(&Output::Ended(End::Dtls(outflow_dtls::End::Closed))));
    let mut both = Both::ready();
    both.session.close(both.now, &mut both.scratch);
    both.drain();
    both.peer.sends();
    assert!(both.peer.is_closed());
    assert_eq!((both.session.path(), both.session.poll()), (None, Output::Nothing));
}

#[test]
fn another_session_goes_on_with_the_peer() {
    let mut both = Both::ready();
    let halves = both.session.save().expect("there are keys").halves;
    let (profile, mut opener) = (both.session.profile().expect("there are keys"), None);
    let report = |word: u8| vec![0x80, 201, 0, 1, 0, 0, 0, word];
    for word in 0..3 {
        if word == 1 {
            let saved = both.session.save().expect("there are keys");
            assert!(!format!("{saved:?}").contains("password"), "keys are not shown");
            both.session = Session::resume([9; 32], saved);
            both.told.clear();
            both.drain();
            assert_eq!(both.told, [Output::Valid(path(1))]);
        }
        let mut packet = report(word);
        both.session.seal_control(&mut packet).expect("RTCP");
        let opener = opener.get_or_insert_with(|| Opener::new(profile, &halves.server));
        assert_eq!(opener.open_control(&mut packet), Ok(8), "no number comes twice");
    }
    assert_eq!(both.session.path(), Some(path(1)));
    both.check(path(1), true);
    let mut packet = report(7);
    Sealer::new(profile, &halves.client).seal_control(&mut packet).expect("RTCP");
    assert_eq!(both.hand(path(1), &packet), Ok(Received::Control(8)));
    assert_eq!(both.hand(path(2), &packet), Err(Ignored::Elsewhere));
    let dtls = both.hand(path(1), &[22; 40]);
    assert_eq!(dtls, Err(Ignored::Dtls(outflow_dtls::Ignored::Ended)), "that stays where it was agreed");
    both.now = both.now + CONSENT;
    both.session.handle_timeout(both.now, &mut both.scratch);
    both.drain();
    assert!(both.told.contains(&Output::Ended(End::Silent)), "{:?}", both.told);
}

#[test]
fn a_peer_without_keys_cannot_be_gone_on_with() {
    let mut both = Both::new();
    both.check(path(1), true);
    assert!(both.session.save().is_none());
    let mut both = Both::ready();
    both.session.close(both.now, &mut both.scratch);
    assert!(both.session.save().is_none());
}
