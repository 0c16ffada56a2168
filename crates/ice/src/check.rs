//! Connectivity checks: binding requests, and what answers them (RFC 8489; RFC 8445, section 7).

use std::net::SocketAddr;

use outflow_media::Malformed;
use stun_types::attribute::{
    Attribute as _, AttributeStaticType as _, AttributeType, ErrorCode, Fingerprint, MessageIntegrity,
    MessageIntegritySha256, Nonce, RawAttribute, Realm, UnknownAttributes, Username, XorMappedAddress,
};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, IntegrityKey, Message, MessageClass, MessageHeader, MessageType,
    MessageWrite, MessageWriteExt as _, MessageWriteVec, TransactionId,
};

use crate::limits::{MESSAGE_BYTES_MAX, UFRAG_MAX, UNKNOWN_MAX};

/// Attributes of ICE (RFC 8445, section 16.1).
const PRIORITY: AttributeType = AttributeType::new(0x0024);
const USE_CANDIDATE: AttributeType = AttributeType::new(0x0025);
const ICE_CONTROLLED: AttributeType = AttributeType::new(0x8029);

/// Attributes that have to be understood, and are.
const UNDERSTOOD: [AttributeType; 8] = [
    Username::TYPE,
    MessageIntegrity::TYPE,
    MessageIntegritySha256::TYPE,
    Realm::TYPE,
    Nonce::TYPE,
    XorMappedAddress::TYPE,
    PRIORITY,
    USE_CANDIDATE,
];

/// Bytes in which the answers and requests here fit.
const ROOM: usize = 128;

/// A message of STUN about a binding, with the fingerprint that ICE asks for. Whether it is signed by the one that it
/// says it comes from is another question.
#[derive(Debug)]
pub struct Check<'a> {
    message: Message<'a>,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Success,
    Error,
    Indication,
}

impl<'a> Check<'a> {
    /// Whether a datagram is STUN, if it is one of those that come to one port beside DTLS and SRTP (RFC 7983,
    /// section 7).
    pub fn is_stun(datagram: &[u8]) -> bool {
        datagram.len() >= MessageHeader::LENGTH && datagram[0] < 4
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// It is no such message, or not whole.
    pub fn new_checked(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let wrong = |offset, reason| Malformed { format: "STUN", offset, reason };
        if datagram.len() > MESSAGE_BYTES_MAX {
            return Err(wrong(MESSAGE_BYTES_MAX, "it is too long"));
        }
        let header = MessageHeader::from_bytes(datagram).map_err(|_| wrong(0, "there is no header"))?;
        if usize::from(header.data_length()) + MessageHeader::LENGTH != datagram.len() {
            return Err(wrong(2, "it has another length than it says"));
        }
        if header.get_type().method() != BINDING {
            return Err(wrong(0, "it is not about a binding"));
        }
        let message = Message::from_bytes(datagram).map_err(|_| {
            wrong(MessageHeader::LENGTH, "attributes are not whole, or the fingerprint is wrong")
        })?;
        if !message.has_attribute(Fingerprint::TYPE) {
            return Err(wrong(MessageHeader::LENGTH, "there is no fingerprint"));
        }
        Ok(Check { message })
    }

    /// The names of both ends in a request: the one that the relay has told the peer (`a=ice-ufrag` of the answer), and
    /// the one that the peer has for itself; none of a message without.
    pub fn names(&self) -> Option<(String, String)> {
        let name = self.message.attribute::<Username>().ok()?;
        let (ours, theirs) = name.username().split_once(':')?;
        (theirs.len() <= UFRAG_MAX).then(|| (ours.to_owned(), theirs.to_owned()))
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.message.class() {
            MessageClass::Request => Kind::Request,
            MessageClass::Success => Kind::Success,
            MessageClass::Error => Kind::Error,
            MessageClass::Indication => Kind::Indication,
        }
    }

    pub(crate) fn transaction(&self) -> TransactionId {
        self.message.transaction_id()
    }

    /// Whether one that knows the key has written it (RFC 8489, section 9.1.3).
    pub(crate) fn is_signed_by(&self, key: &IntegrityKey) -> bool {
        self.message.validate_integrity_with_key(key).is_ok()
    }

    /// The peer wants to use the pair on which this came (RFC 8445, section 7.3.1.5).
    pub(crate) fn nominates(&self) -> bool {
        self.message.has_attribute(USE_CANDIDATE)
    }

    /// The answer to a request (RFC 8445, section 7.3; RFC 8489, section 6.3): it came from there. It is no longer
    /// than the request, unless that is refused.
    pub(crate) fn answer(&self, from: SocketAddr, key: &IntegrityKey) -> Answer {
        let unknown: Vec<_> = self
            .message
            .iter_attributes()
            .map(|(_, attribute)| attribute.get_type())
            .filter(|kind| kind.comprehension_required() && !UNDERSTOOD.contains(kind))
            .take(UNKNOWN_MAX)
            .collect();
        if !unknown.is_empty() {
            return Answer::Refused(self.refusal(420, Some(&UnknownAttributes::new(&unknown)), key));
        }
        // An end that is lite is never the one that controls (section 6.1.1).
        if self.message.has_attribute(ICE_CONTROLLED) {
            return Answer::Refused(self.refusal(487, None, key));
        }
        let mut out = Message::builder_success(&self.message, MessageWriteVec::with_capacity(ROOM));
        // A socket of both families shows an address of IPv4 as one of IPv6.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let address = XorMappedAddress::new(from, self.transaction());
        out.add_attribute(&address).expect("there is no such attribute yet");
        Answer::Accepted(signed(out, key))
    }

    fn refusal(&self, code: u16, unknown: Option<&UnknownAttributes>, key: &IntegrityKey) -> Vec<u8> {
        let mut out = Message::builder_error(&self.message, MessageWriteVec::with_capacity(ROOM));
        let error = ErrorCode::builder(code).build().expect("a code of STUN");
        out.add_attribute(&error).expect("there is no such attribute yet");
        if let Some(unknown) = unknown {
            out.add_attribute(unknown).expect("there is no such attribute yet");
        }
        signed(out, key)
    }
}

/// What answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The path works.
    Accepted(Vec<u8>),
    /// The request is one that is not taken.
    Refused(Vec<u8>),
}

/// A request of the relay's own, whether the peer wants what is sent to it here (RFC 7675, section 5.1; RFC 8445,
/// section 7.1): `user` are the names, the peer's first.
pub(crate) fn request(transaction: TransactionId, user: &str, priority: u32, key: &IntegrityKey) -> Vec<u8> {
    let kind = MessageType::from_class_method(MessageClass::Request, BINDING);
    let mut out = Message::builder(kind, transaction, MessageWriteVec::with_capacity(ROOM));
    if let Ok(user) = Username::new(user) {
        out.add_attribute(&user).expect("there is no such attribute yet");
    }
    let (priority, tie_breaker) = (priority.to_be_bytes(), u128::from(transaction).to_be_bytes());
    out.add_attribute(&RawAttribute::new(PRIORITY, &priority)).expect("there is no such attribute yet");
    let role = RawAttribute::new(ICE_CONTROLLED, &tie_breaker[8..]);
    out.add_attribute(&role).expect("there is no such attribute yet");
    signed(out, key)
}

fn signed(mut out: MessageWriteVec, key: &IntegrityKey) -> Vec<u8> {
    out.add_message_integrity_with_key(key, IntegrityAlgorithm::Sha1).expect("it has none yet");
    out.add_fingerprint().expect("it has none yet");
    out.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Credentials;

    /// RFC 5769, section 2.1: a request of ICE, with a name, a priority, a role and a signature.
    const REQUEST: &[u8] =
        b"\x00\x01\x00\x58\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae\
        \x80\x22\x00\x10STUN test client\x00\x24\x00\x04\x6e\x00\x01\xff\
        \x80\x29\x00\x08\x93\x2f\xf9\xb1\x51\x26\x3b\x36\x00\x06\x00\x09evtj:h6vY   \
        \x00\x08\x00\x14\x9a\xea\xa7\x0c\xbf\xd8\xcb\x56\x78\x1e\xf2\xb5\xb2\xd3\xf2\x49\xc1\xb5\x71\xa2\
        \x80\x28\x00\x04\xe5\x7a\x3b\xcf";

    /// RFC 5769, section 2.2: the answer.
    const ANSWER: &[u8] = b"\x01\x01\x00\x3c\x21\x12\xa4\x42\xb7\xe7\xa7\x01\xbc\x34\xd6\x86\xfa\x87\xdf\xae\
        \x80\x22\x00\x0btest vector \x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43\
        \x00\x08\x00\x14\x2b\x91\xf5\x99\xfd\x9e\x90\xc3\x8c\x74\x89\xf9\x2a\xf9\xba\x53\xf0\x6b\xe7\xd7\
        \x80\x28\x00\x04\xc0\x7d\x4c\x96";

    fn key(password: &str) -> IntegrityKey {
        Credentials { ufrag: String::new(), password: password.to_owned() }.key()
    }

    fn accepted(answer: Answer) -> Vec<u8> {
        match answer {
            Answer::Accepted(bytes) => bytes,
            Answer::Refused(bytes) => panic!("refused: {bytes:?}"),
        }
    }

    #[test]
    fn the_samples_of_the_rfc_are_read() {
        assert!(Check::is_stun(REQUEST) && Check::is_stun(ANSWER));
        let check = Check::new_checked(REQUEST).expect("a request");
        assert_eq!(check.names(), Some(("evtj".into(), "h6vY".into())));
        assert_eq!((check.kind(), check.nominates()), (Kind::Request, false));
        assert!(check.is_signed_by(&key("VOkJxbRl1RmTxUk/WvJxBt")));
        assert!(!check.is_signed_by(&key("VOkJxbRl1RmTxUk/WvJxBT")));
        let check = Check::new_checked(ANSWER).expect("an answer");
        assert_eq!((check.kind(), check.names()), (Kind::Success, None));
        assert!(check.is_signed_by(&key("VOkJxbRl1RmTxUk/WvJxBt")));
    }

    #[test]
    fn a_request_is_answered_with_where_it_came_from() {
        let ours = key("ours");
        let bytes = request(7.into(), "ours:theirs", 1, &ours);
        let check = Check::new_checked(&bytes).expect("a request");
        // It says that it does not control, as ours do: a peer's has to.
        assert!(matches!(check.answer(([192, 0, 2, 1], 5).into(), &ours), Answer::Refused(_)));
        let mut bytes = Message::builder_request(BINDING, MessageWriteVec::new());
        bytes.add_attribute(&Username::new("ours:theirs").expect("a name")).expect("room");
        let bytes = signed(bytes, &ours);
        let check = Check::new_checked(&bytes).expect("a request");
        for (from, seen) in [
            ("192.0.2.1:5", "192.0.2.1:5"),
            ("[::ffff:192.0.2.1]:5", "192.0.2.1:5"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
        ] {
            let answer = accepted(check.answer(from.parse().expect("an address"), &ours));
            let answer = Check::new_checked(&answer).expect("an answer");
            assert_eq!((answer.kind(), answer.transaction()), (Kind::Success, check.transaction()));
            assert!(answer.is_signed_by(&ours));
            let address = answer.message.attribute::<XorMappedAddress>().expect("an address");
            assert_eq!(address.addr(answer.transaction()), seen.parse().expect("an address"));
        }
    }

    #[test]
    fn a_request_with_what_is_not_understood_is_refused_with_its_name() {
        let ours = key("ours");
        let mut bytes = Message::builder_request(BINDING, MessageWriteVec::new());
        let unknown = AttributeType::new(0x7001);
        bytes.add_attribute(&RawAttribute::new(unknown, &[1, 2])).expect("room");
        bytes.add_attribute(&RawAttribute::new(AttributeType::new(0xc001), &[1])).expect("room");
        let bytes = signed(bytes, &ours);
        let check = Check::new_checked(&bytes).expect("a request");
        let Answer::Refused(answer) = check.answer(([192, 0, 2, 1], 5).into(), &ours) else {
            panic!("taken")
        };
        let answer = Check::new_checked(&answer).expect("an answer");
        assert_eq!(answer.message.attribute::<ErrorCode>().expect("a code").code(), 420);
        assert!(answer.message.attribute::<UnknownAttributes>().expect("names").has_attribute(unknown));
    }

    #[test]
    fn what_is_changed_cut_or_has_something_behind_it_is_malformed() {
        for index in 0..REQUEST.len() {
            let mut bytes = REQUEST.to_vec();
            bytes[index] ^= 1;
            assert!(Check::new_checked(&bytes).is_err(), "byte {index} changed");
            assert!(Check::new_checked(&REQUEST[..index]).is_err(), "{index} bytes");
        }
        assert!(Check::new_checked(&[REQUEST, &[0; 4]].concat()).is_err());
        let unmarked = [&REQUEST[..2], &[0, 0x50], &REQUEST[4..REQUEST.len() - 8]].concat();
        let error = Check::new_checked(&unmarked).expect_err("no fingerprint");
        assert_eq!(error.reason, "there is no fingerprint");
    }

    #[test]
    fn other_protocols_at_the_port_are_told_from_it() {
        for first in [20, 22, 63, 128, 191, 64] {
            assert!(!Check::is_stun(&[first; 40]), "{first}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(check) = Check::new_checked(&bytes) {
                check.names();
            }
        }
    }
}
