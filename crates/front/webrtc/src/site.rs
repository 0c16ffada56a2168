//! Where viewers come to: the port, and what they are told of it.

use std::sync::{Arc, OnceLock};

use outflow_control::Control;
use outflow_dtls::{Clock, Identity, Server, Settings};
use outflow_engine::message::ControlError;
use outflow_engine::system::random_bytes;
use outflow_ice::{Agent, Credentials};
use outflow_webrtc::Session;

use crate::addresses::candidates;
use crate::hosts::Hosts;
use crate::limits::{COMING_MAX, COMING_OF_HOST_MAX};
use crate::port::Port;
use crate::settings::WebRtc;

/// The port, with what each session needs.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) port: Port,
    pub(crate) identity: Identity,
    /// Places for viewers that have not come yet.
    pub(crate) coming: Arc<Hosts>,
    settings: Settings,
    clock: Clock,
}

/// It, once the relay listens; shared by [`Control::shared`].
#[derive(Debug, Default)]
pub(crate) struct Open(OnceLock<Arc<Site>>);

impl Open {
    /// The relay listens there from now on.
    pub(crate) fn set(&self, site: Site) -> Arc<Site> {
        // A relay listens once.
        Arc::clone(self.0.get_or_init(|| Arc::new(site)))
    }

    pub(crate) fn get(&self) -> Option<Arc<Site>> {
        self.0.get().cloned()
    }
}

/// What a session is told, and says, before it begins.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) ours: Credentials,
    pub(crate) theirs: Credentials,
}

impl Site {
    /// # Errors
    /// Cryptography does not work.
    pub(crate) fn new(control: &Control, port: Port, identity: Identity) -> Result<Self, ControlError> {
        let settings = Settings::new().map_err(|why| ControlError::Configuration(format!("DTLS: {why}")))?;
        let coming = Arc::new(Hosts::new(COMING_MAX, COMING_OF_HOST_MAX));
        let clock = Clock(control.epoch());
        Ok(Site { port, identity, coming, settings, clock })
    }

    /// Where peers are told that it is, as the configuration says now.
    pub(crate) fn candidates(&self, control: &Control) -> Vec<String> {
        let config = control.config();
        candidates(self.port.udp.local_addr(), config.section::<WebRtc>().addresses())
    }

    /// A session with a peer that has one of these certificates.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn session(
        &self,
        control: &Control,
        names: &Names,
        fingerprints: Vec<outflow_dtls::Fingerprint>,
    ) -> Result<Session, ControlError> {
        let now = control.now();
        let agent = Agent::new(now, secret()?, names.ours.clone(), names.theirs.clone());
        Ok(Session::new(agent, Server::new(now, self.clock, &self.settings, &self.identity, fingerprints)))
    }
}

/// Bytes that cannot be guessed.
///
/// # Errors
/// The system has none.
pub(crate) fn secret() -> Result<[u8; 32], ControlError> {
    let random = || random_bytes().map_err(|error| ControlError::system("asking for random bytes", &error));
    let mut bytes = [0; 32];
    let (one, other) = bytes.split_at_mut(16);
    one.copy_from_slice(&random()?);
    other.copy_from_slice(&random()?);
    Ok(bytes)
}
