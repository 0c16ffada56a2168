//! The relay's end of one peer's handshake.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use dimpl::{Config, Dtls, SrtpProfile};
use outflow_media::Time;
use outflow_srtp::{Halves, Profile};

use crate::limits::{
    DATAGRAM_MAX, DATAGRAMS_MAX, HANDSHAKE, KEPT_MAX, SENT_AGAIN, SENT_AGAIN_TIMES, SENT_MAX,
};
use crate::provider::provider;
use crate::{Fingerprint, Identity};

#[cfg(test)]
mod tests;

/// What all handshakes have in common. It is made once: cryptography is tried then.
#[derive(Debug, Clone)]
pub struct Settings(Arc<Config>);

impl Settings {
    /// # Errors
    /// What does not work, in words.
    pub fn new() -> Result<Self, String> {
        let config = Config::builder()
            .with_crypto_provider(provider())
            .mtu(SENT_MAX)
            .max_queue_rx(KEPT_MAX)
            .handshake_timeout(HANDSHAKE)
            .flight_start_rto(SENT_AGAIN)
            .flight_retries(SENT_AGAIN_TIMES)
            // The peer has answered from its address before, by ICE: a cookie would ask for that once more.
            .use_server_cookie(false)
            .require_client_certificate(true);
        Ok(Settings(Arc::new(config.build().map_err(|error| error.to_string())?)))
    }
}

/// The instant that is [`Time::ZERO`].
#[derive(Debug, Clone, Copy)]
pub struct Clock(pub Instant);

impl Clock {
    pub(crate) fn instant(self, now: Time) -> Instant {
        self.0 + now.since(Time::ZERO)
    }

    fn time(self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.0)
    }
}

/// Memory that handshakes need while they are worked at, one after the other. It is there once it is used.
#[derive(Debug, Default)]
pub struct Scratch(Vec<u8>);

impl Scratch {
    fn memory(&mut self) -> &mut [u8] {
        // A certificate of a peer is no longer than what is kept of its datagrams.
        self.0.resize(KEPT_MAX * DATAGRAM_MAX, 0);
        &mut self.0
    }
}

/// The relay's end. Peers begin.
///
/// After each call that is given `now` it is to be polled, until it says to wait.
#[derive(Debug)]
pub struct Server {
    clock: Clock,
    /// None once it has ended.
    dtls: Option<Box<Dtls>>,
    /// What the peer has said that its certificates are.
    theirs: Vec<Fingerprint>,
    /// It has shown one of them.
    is_known: bool,
    has_agreed: bool,
    datagrams: u32,
    due: Option<Time>,
    // bounded: a call adds what dimpl has queued (ten datagrams), and all is taken out before the next.
    outputs: VecDeque<Output>,
}

/// What a [`Server`] wants done, or tells.
#[derive(Debug)]
pub enum Output {
    /// A datagram is to be sent to the peer.
    Send(Vec<u8>),
    /// The peer is the one that it said, and has the same keys.
    Agreed(Agreed),
    /// The last output but for waits.
    Ended(End),
    /// Nothing more, until [`Server::handle_timeout`] is called at this time, if it is one: something is sent again then,
    /// or the handshake takes too long.
    Wait(Option<Time>),
}

/// Keys that both ends have.
#[derive(Debug, Clone)]
pub struct Agreed {
    /// What they are for.
    pub profile: Profile,
    /// The peer seals by the client's, the relay by the server's.
    pub halves: Halves,
}

/// Why a handshake has ended, or a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The peer says that it is gone.
    #[error("closed by the peer")]
    Closed,
    /// It has another certificate than its description says: it is another peer.
    #[error("the peer's certificate is not the one of its description (a=fingerprint)")]
    OtherCertificate,
    /// It does not do SRTP, or by no profile that the relay has.
    #[error(
        "no profile of SRTP in common: AEAD_AES_128_GCM, AEAD_AES_256_GCM or AES128_CM_HMAC_SHA1_80 is needed"
    )]
    NoProfile,
    /// It sends more than any handshake needs.
    #[error("more than {DATAGRAMS_MAX} datagrams in a handshake")]
    TooMany,
    /// What else fails.
    #[error("DTLS: {0}")]
    Failed(String),
}

/// Why a datagram was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It is not DTLS, or longer than that is in WebRTC.
    Malformed,
    /// The end has come.
    Ended,
}

impl Server {
    /// For a peer that has said that its certificate has one of these fingerprints.
    pub fn new(
        now: Time,
        clock: Clock,
        settings: &Settings,
        identity: &Identity,
        theirs: Vec<Fingerprint>,
    ) -> Self {
        let now = clock.instant(now);
        let mut dtls = Box::new(Dtls::new_auto(Arc::clone(&settings.0), identity.to_dimpl(), now));
        // It has no time before this.
        let dtls = dtls.handle_timeout(now).is_ok().then_some(dtls);
        let outputs = VecDeque::new();
        Server { clock, dtls, theirs, is_known: false, has_agreed: false, datagrams: 0, due: None, outputs }
    }

    /// Whether a datagram is DTLS, if it is one of those that come to one port beside STUN and SRTP (RFC 7983, section
    /// 7).
    pub fn is_dtls(datagram: &[u8]) -> bool {
        matches!(datagram.first(), Some(20..=63))
    }

    /// A datagram came, by a path that is known to be the peer's.
    ///
    /// # Errors
    /// Why it was passed over.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        datagram: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(), Ignored> {
        let Some(dtls) = &mut self.dtls else { return Err(Ignored::Ended) };
        if !Self::is_dtls(datagram) || datagram.len() > DATAGRAM_MAX {
            return Err(Ignored::Malformed);
        }
        if !self.has_agreed {
            self.datagrams += 1;
            if self.datagrams > DATAGRAMS_MAX {
                self.end(End::TooMany);
                return Ok(());
            }
        }
        let handled =
            dtls.handle_timeout(self.clock.instant(now)).and_then(|()| dtls.handle_packet(datagram));
        self.drain(now, handled, scratch);
        Ok(())
    }

    /// The time that [`Output::Wait`] said has come; before, nothing happens.
    pub fn handle_timeout(&mut self, now: Time, scratch: &mut Scratch) {
        let Some(dtls) = self.dtls.as_mut().filter(|_| self.due.is_some_and(|due| due <= now)) else {
            return;
        };
        let handled = dtls.handle_timeout(self.clock.instant(now));
        self.drain(now, handled, scratch);
    }

    /// The relay ends it, and says so.
    pub fn close(&mut self, now: Time, scratch: &mut Scratch) {
        let Some(dtls) = &mut self.dtls else { return };
        let handled = dtls.close();
        self.drain(now, handled, scratch);
        (self.dtls, self.due) = (None, None);
    }

    /// What is next.
    pub fn poll(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or(Output::Wait(self.due))
    }

    fn end(&mut self, why: End) {
        (self.dtls, self.due) = (None, None);
        self.outputs.push_back(Output::Ended(why));
    }

    /// Takes out what follows from a call.
    fn drain(&mut self, now: Time, handled: Result<(), dimpl::Error>, scratch: &mut Scratch) {
        /// A time as far off as that is none.
        const NEVER: Duration = Duration::from_secs(24 * 3600);
        let (mut is_connected, mut is_closed) = (false, false);
        loop {
            let Some(dtls) = &mut self.dtls else { return };
            match dtls.poll_output(scratch.memory()) {
                dimpl::Output::Packet(bytes) => self.outputs.push_back(Output::Send(bytes.to_vec())),
                dimpl::Output::PeerCert(certificate) => {
                    let fingerprint = Fingerprint::of(certificate);
                    self.is_known = self.theirs.contains(&fingerprint);
                    if !self.is_known {
                        return self.end(End::OtherCertificate);
                    }
                }
                dimpl::Output::Connected => is_connected = true,
                dimpl::Output::KeyingMaterial(..) if !self.is_known => {
                    return self.end(End::OtherCertificate);
                }
                dimpl::Output::KeyingMaterial(material, profile) => self.agree(&material, profile),
                dimpl::Output::CloseNotify => is_closed = true,
                dimpl::Output::Timeout(at) => {
                    self.due = Some(self.clock.time(at)).filter(|at| at.since(now) < NEVER);
                    break;
                }
                dimpl::Output::BufferTooSmall { needed } => {
                    return self.end(End::Failed(format!("a packet of {needed} bytes")));
                }
                _ => {}
            }
        }
        match handled {
            Err(error) => self.end(End::Failed(error.to_string())),
            Ok(()) if is_closed => self.end(End::Closed),
            Ok(()) if is_connected && !self.has_agreed => self.end(End::NoProfile),
            Ok(()) => {}
        }
    }

    fn agree(&mut self, material: &[u8], profile: SrtpProfile) {
        let profile = match profile {
            SrtpProfile::AEAD_AES_128_GCM => Profile::AeadAes128Gcm,
            SrtpProfile::AEAD_AES_256_GCM => Profile::AeadAes256Gcm,
            SrtpProfile::AES128_CM_SHA1_80 => Profile::Aes128CmSha1,
            _ => return,
        };
        if let Some(halves) = Halves::new(profile, material) {
            self.has_agreed = true;
            self.outputs.push_back(Output::Agreed(Agreed { profile, halves }));
        }
    }
}
