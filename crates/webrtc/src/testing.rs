//! The other end, for tests: a peer as browsers are.

use outflow_dtls::testing::{Peer, Version, clock};
use outflow_dtls::{Clock, Identity, Server, Settings};
use outflow_ice::testing::request;
use outflow_ice::{Agent, Credentials};
use outflow_media::Time;
use outflow_srtp::{Halves, Opener, Profile, Sealer};

use crate::Session;

/// A browser that knows the names and the password of the relay.
#[derive(Debug)]
pub struct Browser {
    user: String,
    relay: Credentials,
    dtls: Peer,
}

impl Browser {
    /// One with this certificate, that is called `own` in checks.
    ///
    /// # Panics
    /// Cryptography does not work.
    pub fn new(now: Time, clock: Clock, identity: &Identity, own: &str, relay: Credentials) -> Self {
        Browser::of_version(Version::V13, (now, clock), identity, own, relay)
    }

    /// The same, which has this version of DTLS alone.
    ///
    /// # Panics
    /// Cryptography does not work.
    pub fn of_version(
        version: Version,
        (now, clock): (Time, Clock),
        identity: &Identity,
        own: &str,
        relay: Credentials,
    ) -> Self {
        let user = format!("{}:{own}", relay.ufrag);
        Browser { user, relay, dtls: Peer::new(now, clock, version, identity) }
    }

    /// One that a session of the relay's is for, both with certificates of their own.
    ///
    /// # Panics
    /// Cryptography does not work.
    pub fn with_session(now: Time) -> (Self, Session) {
        let names =
            |name: &str| Credentials { ufrag: name.to_owned(), password: format!("the password of {name}") };
        let clock = clock();
        let [ours, theirs] = [(); 2].map(|()| Identity::generate().expect("a certificate"));
        let settings = Settings::new().expect("it works");
        let dtls = Server::new(now, clock, &settings, &ours, vec![theirs.fingerprint()]);
        let session = Session::new(Agent::new(now, [7; 32], names("relay"), names("peer")), dtls);
        (Browser::new(now, clock, &theirs, "peer", names("relay")), session)
    }

    /// It is called `own` from now on, and goes on by these names of the relay.
    pub fn restart(&mut self, own: &str, relay: Credentials) {
        self.user = format!("{}:{own}", relay.ufrag);
        self.relay = relay;
    }

    /// A check, which says that this path is to be used.
    ///
    /// # Panics
    /// The name is too long.
    pub fn check(&self) -> Vec<u8> {
        request(&self.user, &self.relay, true)
    }

    /// What it sends by DTLS now.
    pub fn sends(&mut self) -> Vec<Vec<u8>> {
        self.dtls.sends()
    }

    /// A datagram came: one of DTLS is read.
    pub fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        if Server::is_dtls(datagram) {
            self.dtls.handle_datagram(now, datagram);
        }
    }

    /// Time has passed: what got no answer is sent again.
    pub fn handle_timeout(&mut self, now: Time) {
        self.dtls.handle_timeout(now);
    }

    /// It goes, and says so.
    pub fn close(&mut self) {
        self.dtls.close();
    }

    /// The relay has said that it is gone.
    pub fn is_closed(&self) -> bool {
        self.dtls.is_closed()
    }

    /// What packets are sealed with, once there are keys.
    pub fn profile(&self) -> Option<Profile> {
        self.keys().map(|(profile, _)| profile)
    }

    /// Keys of both ends: their length says what they are for.
    fn keys(&self) -> Option<(Profile, Halves)> {
        let material = self.dtls.material()?;
        let halves = |profile| Some((profile, Halves::new(profile, material)?));
        Profile::ALL.into_iter().find_map(halves)
    }

    /// Its ends of SRTP, once there are keys.
    pub fn srtp(&self) -> Option<(Sealer, Opener)> {
        let (profile, halves) = self.keys()?;
        Some((Sealer::new(profile, &halves.client), Opener::new(profile, &halves.server)))
    }
}
