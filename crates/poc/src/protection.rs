//! How a connection is protected: what a handshake makes of the services that are asked for and offered, and
//! what becomes of each packet.
//!
//! The bytes that a [`Hello`](crate::packet::Hello) and an [`Accept`](crate::packet::Accept) carry as service
//! are a handshake's message with the service in it. It takes one round trip, and leaves both ends with a
//! [`Protection`], by which each data packet is sealed: its first byte, id and number stay in clear and are
//! authenticated, its frames are encrypted, and a tag is behind them. The packet number, which is never used
//! twice, is the nonce.
//!
//! [`Plain`] protects nothing. It is for carriers that encrypt, for networks of one's own, and for tests;
//! what does protect is in `outflow-poc-socket`, because keys need randomness, which is not to be had here.

use outflow_petri::leb128::TooLong;

use crate::limits::SERVICE_BYTES_MAX;
use crate::save::SavedBytes;

/// What is done to each data packet of a connection, by its sender and by its receiver. It knows which of the
/// two ends it is at, and has a key for each direction.
///
/// Neither way allocates, but for a datagram whose capacity is less than its length and [`overhead`].
///
/// [`overhead`]: Protection::overhead
pub trait Protection: Send {
    /// Bytes that sealing adds to a datagram. They do not change.
    fn overhead(&self) -> usize;

    /// Encrypts `datagram[head..]` in place and puts the tag behind it; `datagram[..head]` is authenticated
    /// only. Numbers have to ascend, so that none is ever used twice.
    ///
    /// Nothing is changed if that is an error: the datagram must not be sent.
    fn seal(&mut self, number: u64, datagram: &mut Vec<u8>, head: usize) -> Result<(), Spent>;

    /// Decrypts in place what the peer sealed by this number: `datagram[head..n]`, of the `n` that is returned,
    /// is in clear then. `None` if that is not what the peer sealed, whatever is wrong with it; then nothing
    /// is changed but what was behind the head, which is of no use.
    ///
    /// That a packet was opened before is not noticed here, but by its number
    /// ([`Received`](crate::recovery::Received)).
    fn open(&mut self, number: u64, datagram: &mut [u8], head: usize) -> Option<usize>;

    /// Whether the keys have seen as many packets as they may (RFC 9001 section 6.6): the connection is to
    /// end, and there are still some thousand numbers left that can be sealed, to say so.
    fn is_spent(&self) -> bool;

    /// What another one of its kind needs to go on. It is secret.
    fn save(&self) -> SavedBytes;
}

/// The keys have sealed as many packets as they may: the connection is over, and another one has other keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection has used up its keys; connect again")]
pub struct Spent;

/// What a handshake gives in the end: what is to be sent or what was asked for, and the protection.
pub type Sealed = (Vec<u8>, Box<dyn Protection>);

/// A handshake at the end that asks for a service.
pub trait ClientHandshake: Send {
    /// What the service of a hello is to be, for this request. Each call begins again, with new keys; what is
    /// sent again (a hello with a cookie) has to be the same bytes.
    fn hello(&mut self, request: &[u8]) -> Result<Vec<u8>, HandshakeError>;

    /// Takes the service of an accept: what the server offers, in clear. `None` if that is not from the
    /// server, or answers something else; the right one may still come.
    fn accept(&mut self, reply: &[u8]) -> Option<Sealed>;
}

/// A handshake at the end that offers services. It is for one attempt.
pub trait ServerHandshake: Send {
    /// Takes the service of a hello: what is asked for, in clear. `None` if its client may not ask.
    ///
    /// Another host that overheard the hello may have sent it, too: it learns nothing from the answer, and
    /// cannot send anything, but has caused work.
    fn hello(&mut self, hello: &[u8]) -> Option<Vec<u8>>;

    /// What the service of the accept is to be, for what is offered. It is the answer to the hello that was
    /// taken last, and is to be sent again, the same bytes, if that hello comes again.
    fn accept(self: Box<Self>, service: &[u8]) -> Result<Sealed, HandshakeError>;
}

/// Why a message of a handshake is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The service does not fit; its author is to blame.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// There is nothing to answer; the caller is to blame.
    #[error("an answer before a hello was taken")]
    NoHello,
    /// The system gave no random numbers for a key.
    #[error("the system has no random numbers; nothing can be encrypted without")]
    NoRandomness,
}

/// No protection: services and packets travel as they are.
///
/// A host that has heard the id of a connection, and sends well-formed frames with it, is taken for the peer:
/// it can deliver what it likes, give up units, move or end the connection. What is malformed, or has
/// another id, does no harm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plain;

impl Plain {
    fn message(service: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        TooLong::check("service", service, SERVICE_BYTES_MAX)?;
        Ok(service.to_vec())
    }
}

impl Protection for Plain {
    fn overhead(&self) -> usize {
        0
    }

    fn seal(&mut self, _number: u64, _datagram: &mut Vec<u8>, _head: usize) -> Result<(), Spent> {
        Ok(())
    }

    fn open(&mut self, _number: u64, datagram: &mut [u8], head: usize) -> Option<usize> {
        (head <= datagram.len()).then_some(datagram.len())
    }

    fn is_spent(&self) -> bool {
        false
    }

    fn save(&self) -> SavedBytes {
        SavedBytes::default()
    }
}

impl ClientHandshake for Plain {
    fn hello(&mut self, request: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        Plain::message(request)
    }

    fn accept(&mut self, reply: &[u8]) -> Option<Sealed> {
        Some((reply.to_vec(), Box::new(Plain)))
    }
}

impl ServerHandshake for Plain {
    fn hello(&mut self, hello: &[u8]) -> Option<Vec<u8>> {
        Some(hello.to_vec())
    }

    fn accept(self: Box<Self>, service: &[u8]) -> Result<Sealed, HandshakeError> {
        Ok((Plain::message(service)?, Box::new(Plain)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_services_travel_as_they_are() {
        let (mut client, mut server): (Box<dyn ClientHandshake>, Box<dyn ServerHandshake>) =
            (Box::new(Plain), Box::new(Plain));
        let hello = client.hello(b"request").expect("short");
        assert_eq!(server.hello(&hello).as_deref(), Some(&b"request"[..]));
        let (reply, _) = server.accept(b"service").expect("short");
        assert_eq!(client.accept(&reply).map(|(service, _)| service).as_deref(), Some(&b"service"[..]));
    }

    #[test]
    fn a_service_too_long_is_not_sent() {
        let service = [0; SERVICE_BYTES_MAX + 1];
        let most = SERVICE_BYTES_MAX;
        let error = HandshakeError::TooLong(TooLong { what: "service", bytes: most + 1, most });
        let mut client: Box<dyn ClientHandshake> = Box::new(Plain);
        assert_eq!(client.hello(&service), Err(error));
        assert_eq!(client.hello(&service[1..]).map(|message| message.len()), Ok(most));
        let server: Box<dyn ServerHandshake> = Box::new(Plain);
        assert_eq!(server.accept(&service).err(), Some(error));
    }

    #[test]
    fn plain_packets_are_not_changed_and_never_spent() {
        let mut datagram = b"headframes".to_vec();
        assert_eq!(Plain.seal(u64::MAX, &mut datagram, 4), Ok(()));
        assert_eq!(datagram, b"headframes");
        assert_eq!(Plain.open(u64::MAX, &mut datagram, 4), Some(10));
        assert_eq!((&datagram[..], Plain.overhead(), Plain.is_spent()), (&b"headframes"[..], 0, false));
    }

    #[test]
    fn a_packet_shorter_than_its_head_is_not_opened() {
        assert_eq!(Plain.open(0, &mut [0; 4], 4), Some(4));
        assert_eq!(Plain.open(0, &mut [0; 3], 4), None);
    }
}
