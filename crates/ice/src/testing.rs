//! The other end, for tests: what browsers send.

use stun_types::attribute::{AttributeType, RawAttribute, Username};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, Message, MessageWrite as _, MessageWriteExt as _, MessageWriteVec,
};

use crate::Credentials;

/// A request to one that is called so and knows this key: `user` are the names, the relay's first.
///
/// # Panics
/// The name is too long.
pub fn request(user: &str, key: &Credentials, nominates: bool) -> Vec<u8> {
    let mut out = Message::builder_request(BINDING, MessageWriteVec::new());
    out.add_attribute(&Username::new(user).expect("a name")).expect("room");
    out.add_attribute(&RawAttribute::new(AttributeType::new(0x802a), &[9; 8])).expect("room");
    out.add_attribute(&RawAttribute::new(AttributeType::new(0x0024), &[1, 2, 3, 4])).expect("room");
    if nominates {
        out.add_attribute(&RawAttribute::new(AttributeType::new(0x0025), &[])).expect("room");
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
