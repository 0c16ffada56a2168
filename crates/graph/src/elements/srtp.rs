//! What `encrypt` and `decrypt` share: suites and keys, as descriptions have them (RFC 4568).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libsrtp::{MasterKey, ProtectionProfile, SrtpError, StreamConfig};
use outflow_packet::DropReason;
use outflow_rtp::HEADER;

use crate::{Form, Item, Opt, Settings, Tally, Unfit};

/// Suites (RFC 4568 section 6.2, RFC 6188, RFC 7714), the first if nothing is said.
const SUITES: &[&str] = &[
    "AES_CM_128_HMAC_SHA1_80",
    "AES_CM_128_HMAC_SHA1_32",
    "AES_256_CM_HMAC_SHA1_80",
    "AEAD_AES_128_GCM",
    "AEAD_AES_256_GCM",
];

/// Bytes that a packet of any suite is longer at most.
pub(super) const LONGER: usize = 16;

/// Packets of a source that are told from those that were recorded and sent again; older ones go no
/// further (RFC 3711 section 3.3.2: 64 at least).
pub(super) const WINDOW: u16 = 128;

/// The option of the suite.
pub(super) const SUITE: Opt =
    Opt::new("suite", Form::Word(SUITES), Some("AES_CM_128_HMAC_SHA1_80"), "What it is encrypted with.");

/// The option of the key.
pub(super) const KEY: Opt =
    Opt::needed("key", Form::Secret, "Master key and salt in base64, as `inline:` has it in a description.");

/// The option of the tracks.
pub(super) const TRACKS: Opt =
    Opt::new("tracks", Form::Numbers(0, 31), None, "These tracks, the first is 0; all if left out.");

/// A suite and its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret {
    suite: usize,
    key_and_salt: Vec<u8>,
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(SUITES[self.suite])
    }
}

impl Secret {
    /// As it is given.
    pub(super) fn new(settings: &Settings) -> Result<Self, Unfit> {
        let word = settings.text("suite").unwrap_or(SUITES[0]);
        let suite = SUITES.iter().position(|suite| *suite == word).unwrap_or(0);
        let text = settings.text("key").unwrap_or("").trim();
        let text = text.strip_prefix("inline:").unwrap_or(text);
        let mut parts = text.split('|');
        let key = parts.next().unwrap_or("");
        // A lifetime may follow, which is no concern here; a key identifier has a colon.
        if parts.any(|part| part.contains(':')) {
            let help = "use a key without one (`inline:KEY`, nothing with a colon behind it)";
            return Err(Unfit::new("`key` has an identifier (MKI)", help));
        }
        let (profile, salt) = parameters(suite);
        let bytes = profile.key_len() + salt;
        let help = || format!("write {bytes} bytes in base64, as from `openssl rand -base64 {bytes}`");
        let key_and_salt = STANDARD.decode(key).map_err(|_| Unfit::new("`key` is not in base64", help()))?;
        if key_and_salt.len() != bytes {
            let what = format!("`key` has {} bytes, but {} takes {bytes}", key_and_salt.len(), SUITES[suite]);
            return Err(Unfit::new(what, help()));
        }
        Ok(Secret { suite, key_and_salt })
    }

    /// What a session is made with.
    pub(super) fn config(&self) -> StreamConfig {
        let (profile, _) = parameters(self.suite);
        let (key, salt) = self.key_and_salt.split_at(profile.key_len());
        // Nothing here sends control packets, but the configuration must be whole.
        let control = match profile {
            ProtectionProfile::Aes128CmHmacSha132 => ProtectionProfile::Aes128CmHmacSha180,
            other => other,
        };
        let mut config = StreamConfig::new(vec![MasterKey::new(key, salt, &None)], &profile, &control);
        config.set_replay_window_size(WINDOW);
        config
    }
}

/// The library's name of a suite, and the bytes of its salt.
fn parameters(suite: usize) -> (ProtectionProfile, usize) {
    match suite {
        0 => (ProtectionProfile::Aes128CmHmacSha180, 14),
        1 => (ProtectionProfile::Aes128CmHmacSha132, 14),
        2 => (ProtectionProfile::Aes256CmHmacSha180, 14),
        3 => (ProtectionProfile::AeadAes128Gcm, 12),
        _ => (ProtectionProfile::AeadAes256Gcm, 12),
    }
}

/// A packet in one piece, with room behind it: the library works in place.
pub(super) fn owned(item: &Item, room: usize) -> Vec<u8> {
    let header = if item.rtp_header[0] == 0 { &[][..] } else { &item.rtp_header[..] };
    let mut whole = Vec::with_capacity(header.len() + item.packet.bytes.len() + room);
    whole.extend_from_slice(header);
    whole.extend_from_slice(&item.packet.bytes);
    whole
}

/// Puts other bytes, header included, into a packet.
pub(super) fn replace(item: &mut Item, whole: Vec<u8>) {
    item.packet.bytes = whole.into();
    item.rtp_header = [0; HEADER];
}

/// Counts a packet that the library refused.
pub(super) fn refused(tally: &mut Tally, error: &SrtpError) {
    let reason = match error {
        SrtpError::Authentication => DropReason::Unauthentic,
        SrtpError::InvalidPacketIndex => DropReason::Duplicate,
        SrtpError::InvalidPacket => DropReason::Malformed,
        SrtpError::KeyLimit { .. } => {
            tally.fail("the key is used up: give it another one");
            DropReason::ElementFault
        }
        error => {
            tally.fail(format!("SRTP: {error}"));
            DropReason::ElementFault
        }
    };
    tally.drop(reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setting;

    fn secret(suite: &str, key: &str) -> Result<Secret, String> {
        let settings = Settings::default()
            .with("suite", Setting::Text(suite.to_owned()))
            .with("key", Setting::Text(key.to_owned()));
        Secret::new(&settings).map_err(|unfit| unfit.to_string())
    }

    #[test]
    fn keys_are_taken_as_descriptions_have_them() {
        let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";
        let plain = secret(SUITES[0], key).unwrap();
        assert_eq!(secret(SUITES[0], &format!("inline:{key}|2^20")), Ok(plain.clone()));
        assert_eq!(format!("{plain:?}"), SUITES[0], "the key does not show");
        for (suite, key, says) in [
            (0, "%%", "not in base64"),
            (0, "AAAA", "write 30 bytes"),
            (3, key, "takes 28"),
            (0, "AAAA|2^20|1:4", "identifier"),
        ] {
            let error = secret(SUITES[suite], key).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
