//! Keys that both ends agree on.

use core::fmt;

use dimpl::crypto::{ActiveKeyExchange, Buf, NamedGroup, SupportedKxGroup};
use dimpl::{CryptoError, CryptoOperation};
use ring::agreement::{
    Algorithm, ECDH_P256, ECDH_P384, EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral,
};
use ring::rand::SystemRandom;

/// The first one that the peer has, too, is taken.
pub(super) static GROUPS: &[&dyn SupportedKxGroup] = &[
    &Group(NamedGroup::X25519, &X25519),
    &Group(NamedGroup::Secp256r1, &ECDH_P256),
    &Group(NamedGroup::Secp384r1, &ECDH_P384),
];

#[derive(Debug)]
struct Group(NamedGroup, &'static Algorithm);

struct Exchange {
    group: NamedGroup,
    private: EphemeralPrivateKey,
    public: Buf,
}

impl SupportedKxGroup for Group {
    fn name(&self) -> NamedGroup {
        self.0
    }

    fn start_exchange(&self, mut public: Buf) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        let failed = |_| CryptoError::OperationFailed(CryptoOperation::GenerateEphemeralKey);
        let private = EphemeralPrivateKey::generate(self.1, &SystemRandom::new()).map_err(failed)?;
        public.clear();
        public.extend_from_slice(private.compute_public_key().map_err(failed)?.as_ref());
        Ok(Box::new(Exchange { group: self.0, private, public }))
    }
}

impl ActiveKeyExchange for Exchange {
    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn complete(self: Box<Self>, theirs: &[u8], out: &mut Buf) -> Result<(), CryptoError> {
        let theirs = UnparsedPublicKey::new(self.private.algorithm(), theirs);
        let agreed = agree_ephemeral(self.private, &theirs, |secret| {
            out.clear();
            out.extend_from_slice(secret);
        });
        agreed.map_err(|_| CryptoError::InvalidPublicKey(self.group))
    }

    fn group(&self) -> NamedGroup {
        self.group
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("group", &self.group).finish_non_exhaustive()
    }
}
