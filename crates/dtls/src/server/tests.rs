//! Peers of both versions, and others.

use outflow_srtp::{Opener, Sealer};

use super::*;
use crate::testing::{Peer, Version, clock};

/// Both, and a wire between them.
struct Pair {
    now: Time,
    scratch: Scratch,
    server: Server,
    peer: Peer,
    told: Vec<Output>,
}

impl Pair {
    fn new(version: Version) -> Self {
        let identity = Identity::generate().expect("a certificate");
        Self::with(version, &identity, vec![identity.fingerprint()])
    }

    /// A peer with this identity, which has said that it has these fingerprints.
    fn with(version: Version, peer: &Identity, said: Vec<Fingerprint>) -> Self {
        Self::of(&Settings::new().expect("it works"), version, peer, said)
    }

    fn of(settings: &Settings, version: Version, peer: &Identity, said: Vec<Fingerprint>) -> Self {
        let (clock, now) = (clock(), Time::from_millis(5000));
        let ours = Identity::generate().expect("a certificate");
        let server = Server::new(now, clock, settings, &ours, said);
        let peer = Peer::new(now, clock, version, peer);
        Pair { now, scratch: Scratch::default(), server, peer, told: Vec::new() }
    }

    /// What the relay sends now; all else that it tells is kept.
    fn of_server(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            match self.server.poll() {
                Output::Send(bytes) => sent.push(bytes),
                Output::Wait(_) => return sent,
                other => self.told.push(other),
            }
        }
    }

    fn serve(&mut self, datagrams: Vec<Vec<u8>>) {
        for datagram in datagrams {
            let _ignored = self.server.handle_datagram(self.now, &datagram, &mut self.scratch);
        }
    }

    fn reach_peer(&mut self, datagrams: Vec<Vec<u8>>) {
        datagrams.iter().for_each(|datagram| self.peer.handle_datagram(self.now, datagram));
    }

    /// Carries datagrams to and fro until there are none, of which `lost` is asked.
    fn run(&mut self, mut lost: impl FnMut() -> bool) {
        let mut arrive = |datagrams: Vec<Vec<u8>>| {
            let kept = datagrams.into_iter().filter(|_| !lost());
            kept.collect::<Vec<_>>()
        };
        loop {
            let (there, back) = (self.peer.sends(), self.of_server());
            if there.is_empty() && back.is_empty() {
                return;
            }
            let (there, back) = (arrive(there), arrive(back));
            self.serve(there);
            self.reach_peer(back);
        }
    }

    fn agreed(&self) -> Option<&Agreed> {
        self.told.iter().find_map(|output| match output {
            Output::Agreed(agreed) => Some(agreed),
            _ => None,
        })
    }

    fn ended(&self) -> Option<&End> {
        self.told.iter().find_map(|output| match output {
            Output::Ended(why) => Some(why),
            _ => None,
        })
    }
}

#[test]
fn a_peer_of_either_version_and_the_relay_have_the_same_keys() {
    for version in [Version::V12, Version::V13] {
        let mut pair = Pair::new(version);
        pair.run(|| false);
        let agreed = pair.agreed().cloned().unwrap_or_else(|| panic!("{version:?}: {:?}", pair.told));
        let material = pair.peer.material().expect("the peer has keys, too");
        let theirs = Halves::new(agreed.profile, material).expect("of the same profile");
        for (sealing, opening) in
            [(&theirs.client, &agreed.halves.client), (&agreed.halves.server, &theirs.server)]
        {
            let (sealer, mut opener) =
                (Sealer::new(agreed.profile, sealing), Opener::new(agreed.profile, opening));
            let mut packet = vec![0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, b'a', b'b'];
            sealer.seal(&mut packet, 0, 0).expect("RTP");
            assert_eq!(opener.open(&mut packet), Ok(14), "{version:?}");
        }
        assert_eq!(pair.told.len(), 1);
        assert!(matches!(pair.server.poll(), Output::Wait(None)), "nothing is waited for once it is done");
    }
}

#[test]
fn a_peer_with_another_certificate_than_it_said_gets_no_keys() {
    for version in [Version::V12, Version::V13] {
        let [peer, other] = [(); 2].map(|()| Identity::generate().expect("a certificate"));
        let mut pair = Pair::with(version, &peer, vec![other.fingerprint()]);
        pair.run(|| false);
        assert_eq!(pair.ended(), Some(&End::OtherCertificate), "{version:?}");
        // By 1.3 the peer has keys when it shows its certificate; nothing is sealed by them.
        assert!(pair.agreed().is_none(), "{version:?}: {:?}", pair.told);
        assert!(version == Version::V13 || pair.peer.material().is_none());
        let datagram = [22; 40];
        let after = pair.server.handle_datagram(pair.now, &datagram, &mut pair.scratch);
        assert_eq!(after, Err(Ignored::Ended));
    }
}

/// Up to four of the first ten datagrams get lost, in each way that there is. A loss that goes on is another matter: as
/// each end waits twice as long each time, there may be no time left.
#[test]
fn what_gets_lost_is_sent_again() {
    let settings = Settings::new().expect("it works");
    let identity = Identity::generate().expect("a certificate");
    for version in [Version::V12, Version::V13] {
        for lost in (0..1024_u32).filter(|lost| lost.count_ones() <= 4) {
            let mut pair = Pair::of(&settings, version, &identity, vec![identity.fingerprint()]);
            let begun = pair.now;
            let mut number = 0;
            while pair.agreed().is_none() || pair.peer.material().is_none() {
                let since = pair.now.since(begun);
                assert!(since < HANDSHAKE && pair.ended().is_none(), "{version:?} {lost:b}: {:?}", pair.told);
                pair.run(|| {
                    number += 1;
                    number <= 10 && lost >> (number - 1) & 1 == 1
                });
                pair.now = pair.now + Duration::from_millis(100);
                pair.server.handle_timeout(pair.now, &mut pair.scratch);
                pair.peer.handle_timeout(pair.now);
            }
        }
    }
}

#[test]
fn a_peer_that_goes_is_told_and_tells() {
    for version in [Version::V12, Version::V13] {
        let mut pair = Pair::new(version);
        pair.run(|| false);
        pair.peer.close();
        pair.run(|| false);
        assert_eq!(pair.ended(), Some(&End::Closed), "{version:?}");
        let mut pair = Pair::new(version);
        pair.run(|| false);
        pair.server.close(pair.now, &mut pair.scratch);
        pair.run(|| false);
        assert!(pair.peer.is_closed(), "{version:?}");
    }
}

#[test]
fn a_handshake_that_takes_too_long_ends() {
    let mut pair = Pair::new(Version::V12);
    let hello = pair.peer.sends();
    pair.serve(hello);
    let mut sent = pair.of_server().len();
    for _ in 0..100 {
        let Output::Wait(Some(at)) = pair.server.poll() else { break };
        pair.now = at;
        pair.server.handle_timeout(at, &mut pair.scratch);
        sent += pair.of_server().len();
    }
    assert!(matches!(pair.ended(), Some(End::Failed(_))), "{:?}", pair.told);
    assert!(pair.now.since(Time::from_millis(5000)) <= HANDSHAKE + Duration::from_secs(1), "{:?}", pair.now);
    assert!(sent <= 3 * (SENT_AGAIN_TIMES + 1), "{sent} datagrams for one");
}

#[test]
fn what_is_not_dtls_or_too_long_changes_nothing() {
    let mut pair = Pair::new(Version::V13);
    for datagram in [vec![], vec![0; 40], vec![128; 40], vec![22; DATAGRAM_MAX + 1]] {
        let handled = pair.server.handle_datagram(pair.now, &datagram, &mut pair.scratch);
        assert_eq!(handled, Err(Ignored::Malformed));
    }
    pair.serve(vec![vec![22; 40], vec![63; 2000], vec![20, 254, 253, 0, 0]]);
    pair.run(|| false);
    assert!(pair.agreed().is_some(), "{:?}", pair.told);
}

#[test]
fn a_peer_that_sends_no_end_of_datagrams_is_left() {
    let mut pair = Pair::new(Version::V12);
    let hello = pair.peer.sends();
    pair.serve(hello);
    for _ in 0..DATAGRAMS_MAX {
        pair.serve(vec![vec![63; 40]]);
    }
    pair.of_server();
    assert_eq!(pair.ended(), Some(&End::TooMany));
}

#[test]
fn keys_are_not_shown() {
    let mut pair = Pair::new(Version::V12);
    pair.run(|| false);
    let shown = format!("{:?} {:?}", pair.server, pair.told);
    let hidden = |bytes: &[u8]| format!("{bytes:?}").trim_matches(['[', ']']).to_owned();
    let material = pair.peer.material().expect("it has keys");
    for secret in [hidden(&material[..4]), hidden(&material[16..20])] {
        assert!(!shown.contains(&secret), "{shown}");
    }
    assert!(shown.len() < 5000, "{} bytes", shown.len());
}
