//! The other end, for tests: a peer as browsers are.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dimpl::{Config, Dtls, Output};
use outflow_media::Time;

use crate::limits::SENT_AGAIN;
use crate::provider::provider;
use crate::{Clock, Identity};

/// A clock that begins now.
#[expect(clippy::disallowed_methods, reason = "there is no other way to make an instant")]
pub fn clock() -> Clock {
    Clock(Instant::now())
}

/// Which version a peer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// DTLS 1.2.
    V12,
    /// DTLS 1.3.
    V13,
}

/// A peer, which begins, and has patience.
#[derive(Debug)]
pub struct Peer {
    clock: Clock,
    dtls: Dtls,
    buffer: Vec<u8>,
    material: Option<Vec<u8>>,
    is_closed: bool,
    has_failed: bool,
}

impl Peer {
    /// One with this certificate.
    ///
    /// # Panics
    /// Cryptography does not work.
    pub fn new(now: Time, clock: Clock, version: Version, identity: &Identity) -> Self {
        static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
        let config = CONFIG.get_or_init(|| {
            let builder = Config::builder().with_crypto_provider(provider()).dangerously_set_rng_seed(7);
            let patient = builder.flight_start_rto(SENT_AGAIN).flight_retries(20);
            Arc::new(patient.build().expect("a configuration"))
        });
        let certificate = identity.to_dimpl();
        let at = clock.instant(now);
        let mut dtls = match version {
            Version::V12 => Dtls::new_12(Arc::clone(config), certificate, at),
            Version::V13 => Dtls::new_13(Arc::clone(config), certificate, at),
        };
        dtls.set_active(true);
        let has_failed = dtls.handle_timeout(at).is_err();
        Peer { clock, dtls, buffer: vec![0; 65_536], material: None, is_closed: false, has_failed }
    }

    /// What it sends now.
    pub fn sends(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(bytes) => sent.push(bytes.to_vec()),
                Output::KeyingMaterial(material, _) => self.material = Some(material.to_vec()),
                Output::CloseNotify => self.is_closed = true,
                Output::Timeout(_) => return sent,
                _ => {}
            }
        }
    }

    /// A datagram came.
    pub fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        self.handle_timeout(now);
        self.has_failed = self.has_failed || self.dtls.handle_packet(datagram).is_err();
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.has_failed = self.has_failed || self.dtls.handle_timeout(self.clock.instant(now)).is_err();
    }

    /// It goes, and says so.
    pub fn close(&mut self) {
        self.has_failed = self.has_failed || self.dtls.close().is_err();
    }

    /// What it has for SRTP, once the other end has shown what it is.
    pub fn material(&self) -> Option<&[u8]> {
        self.material.as_deref()
    }

    /// The other end has said that it is gone.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Something that it cannot go on from.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }
}
