//! The other end, for tests: a peer as browsers are.

use outflow_dtls::testing::{Peer, Version};
use outflow_dtls::{Clock, Identity, Server};
use outflow_ice::Credentials;
use outflow_ice::testing::request;
use outflow_media::Time;
use outflow_srtp::{Halves, Opener, Profile, Sealer};

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
        let user = format!("{}:{own}", relay.ufrag);
        Browser { user, relay, dtls: Peer::new(now, clock, Version::V13, identity) }
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

    /// It goes, and says so.
    pub fn close(&mut self) {
        self.dtls.close();
    }

    /// The relay has said that it is gone.
    pub fn is_closed(&self) -> bool {
        self.dtls.is_closed()
    }

    /// Its ends of SRTP, once there are keys.
    pub fn srtp(&self) -> Option<(Sealer, Opener)> {
        let material = self.dtls.material()?;
        let halves = |profile| Some((profile, Halves::new(profile, material)?));
        let (profile, halves) = Profile::ALL.into_iter().find_map(halves)?;
        Some((Sealer::new(profile, &halves.client), Opener::new(profile, &halves.server)))
    }
}
