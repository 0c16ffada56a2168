//! The other end, for tests: what browsers send.

use stun_types::attribute::{
    AttributeStaticType as _, AttributeType, Fingerprint, MessageIntegrity, MessageIntegritySha256,
    RawAttribute, Username,
};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, Message, MessageWrite as _, MessageWriteExt as _, MessageWriteVec,
};

use crate::Credentials;

/// A request to one that is called so and knows this key: `user` are the names, the relay's first.
///
/// # Panics
/// The name is too long.
pub fn request(user: &str, key: &Credentials, nominates: bool) -> Vec<u8> {
    let usual: [(u16, &[u8]); 3] = [(0x802a, &[9; 8]), (0x0024, &[1, 2, 3, 4]), (0x0025, &[])];
    request_with(user, key, &usual[..if nominates { 3 } else { 2 }])
}

/// The same with these attributes, but for what stands in it anyway.
///
/// # Panics
/// The name is too long.
pub fn request_with(user: &str, key: &Credentials, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = Message::builder_request(BINDING, MessageWriteVec::new());
    out.add_attribute(&Username::new(user).expect("a name")).expect("room");
    let own = [MessageIntegrity::TYPE, MessageIntegritySha256::TYPE, Fingerprint::TYPE];
    for (kind, value) in attributes {
        let kind = AttributeType::new(*kind);
        if !own.contains(&kind) {
            // One that is there already is refused.
            let _ = out.add_attribute(&RawAttribute::new(kind, value));
        }
    }
    signed(out, key)
}

/// The answer to a question of the relay's, of one that knows this key.
///
/// # Panics
/// It is no message of STUN.
pub fn answer(question: &[u8], key: &Credentials) -> Vec<u8> {
    let question = Message::from_bytes(question).expect("a request");
    signed(Message::builder_success(&question, MessageWriteVec::new()), key)
}

fn signed(mut out: MessageWriteVec, key: &Credentials) -> Vec<u8> {
    out.add_message_integrity_with_key(&key.key(), IntegrityAlgorithm::Sha1).expect("room");
    out.add_fingerprint().expect("room");
    out.finish()
}
