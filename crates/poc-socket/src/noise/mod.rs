//! Encryption by the [Noise protocol framework](https://noiseprotocol.org/noise.html), revision 34.
//!
//! # Authentication
//!
//! What the two ends know of each other beforehand ([`Keys`]) decides which handshake it is, and both have to
//! know the same:
//!
//! | keys | protocol | which end is sure of which |
//! |---|---|---|
//! | shared | `Noise_NNpsk0_25519_AESGCM_SHA256` | each of the other: an end that has the key |
//! | of the server | `Noise_NK_25519_AESGCM_SHA256` | the client of the server; any host can be a client |
//! | both | `Noise_NKpsk0_25519_AESGCM_SHA256` | the client of the server; the server that it may be a client |
//!
//! There is no negotiation, so no attacker can downgrade them. The prologue is `outflow POC` and the
//! byte [`VERSION`]: ends that speak different versions do not understand each other.
//!
//! # The handshake
//!
//! One round trip: the service of a hello is the first message, with the request in it, and the service of the
//! accept the second one, with the service that is offered. Each is [`MESSAGE_OVERHEAD`] bytes longer than what
//! is in it (a public key for this connection only, and a tag), so that [`SERVICE_BYTES`] are left.
//!
//! Packet keys depend on a new key of each end. An attacker that records a connection and learns the
//! lasting keys later cannot read its packets, nor the service offered. It can read the request: the first
//! message is encrypted by what the client knows before. So a resource's name should not be a secret.
//!
//! A host that heard a hello can replay it, from its own address, too. It cannot read the answer, nor go on,
//! because it lacks the secret half of the client's new key, and the server's is new each time. What it
//! gets is a connection that is opened, in vain, until nothing is heard of it: as much work for the server as a
//! connection by a host with the keys. A server of what should not begin twice has to wait for the
//! first packet that opens.
//!
//! # The packets
//!
//! Noise's transport messages have no room for a header that is authenticated and not encrypted, nor does `snow`
//! work in place. So the two keys that the handshake splits into are taken out, and packets are sealed by the
//! same cipher in `ring`: AES-256-GCM, the nonce as Noise makes it of the packet number, what is in clear (first
//! byte, id, number) as associated data. It seals and opens in place and allocates nothing. Packet numbers have
//! to ascend; one that does not is not sealed.
//!
//! A key is used for [`KEY_PACKETS`] numbers: RFC 9001 section 6.6 allows AES-GCM 2^23 packets, a quarter of an
//! hour at 100 Mbit/s. Then comes the next one, `REKEY` of the last (sections 4.2 and 11.3 of Noise), which is
//! forgotten. The number says which key it is, so nothing has to be told. A receiver has the next one at hand and
//! steps on when a packet opens by it; it keeps the last one for those that come late. Packets that do not open
//! cost the attempt and change nothing but a counter. A connection ends ([`is_spent`]) before number
//! [`PACKETS_MAX`], or after [`FORGERIES_MAX`] packets that did not open.
//!
//! AES-GCM was chosen before ChaCha20-Poly1305 because with the AES instructions of today's processors it takes
//! a third of the time. `ring` runs in constant time on processors without them, too, but slower.
//!
//! # What it does not do
//!
//! Packet numbers and sizes can be seen. Keys are not wiped from memory. A peer is known by its key only; which
//! resources it may ask for is for others to decide.
//!
//! [`is_spent`]: outflow_poc::protection::Protection::is_spent
//! [`KEY_PACKETS`]: crate::limits::KEY_PACKETS
//! [`PACKETS_MAX`]: crate::limits::PACKETS_MAX
//! [`FORGERIES_MAX`]: crate::limits::FORGERIES_MAX

mod key;
mod packets;

use outflow_petri::leb128::TooLong;
use outflow_poc::limits::SERVICE_BYTES_MAX;
use outflow_poc::packet::VERSION;
use outflow_poc::protection::{ClientHandshake, HandshakeError, Sealed, ServerHandshake};
use snow::{Builder, HandshakeState};

pub use key::{KEY_BYTES, KeyError, Keys, PrivateKey, PublicKey, SharedKey};

pub use packets::restore;
use packets::{Packets, TAG_BYTES};

/// Bytes that a message of the handshake is longer than what is in it.
pub const MESSAGE_OVERHEAD: usize = KEY_BYTES + TAG_BYTES;

/// Bytes that a request or a service may have.
pub const SERVICE_BYTES: usize = SERVICE_BYTES_MAX - MESSAGE_OVERHEAD;

const PROLOGUE: [u8; 12] = {
    let mut prologue = *b"outflow POC\0";
    prologue[11] = VERSION;
    prologue
};

impl Keys {
    /// The handshake of a client that has these keys: a shared one, the server's public one, or both.
    pub fn client(&self) -> Result<Client, KeyError> {
        match (&self.shared, self.public) {
            (None, None) => Err(KeyError::Missing("a client needs a shared key or the server's public key")),
            (shared, server) => Ok(Client { shared: shared.clone(), server, attempt: None }),
        }
    }

    /// The handshake of a server that has these keys, for one attempt: a shared one, its private one, or both.
    pub fn server(&self) -> Result<Server, KeyError> {
        match (&self.shared, &self.private) {
            (None, None) => Err(KeyError::Missing("a server needs a shared key or its private key")),
            (shared, own) => Ok(Server { shared: shared.clone(), own: own.clone(), attempt: None }),
        }
    }
}

/// The handshake at the end that asks ([`Keys::client`]).
#[derive(Debug)]
pub struct Client {
    shared: Option<SharedKey>,
    server: Option<PublicKey>,
    attempt: Option<HandshakeState>,
}

impl ClientHandshake for Client {
    fn hello(&mut self, request: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        check("request", request)?;
        let mut builder = builder(self.shared.as_ref(), self.server.is_some());
        if let Some(server) = &self.server {
            builder = builder.remote_public_key(&server.0).expect("it is given once");
        }
        let state = builder.build_initiator().expect("it has the keys that its pattern wants");
        let (message, state) = written(state, request)?;
        self.attempt = Some(state);
        Ok(message)
    }

    fn accept(&mut self, reply: &[u8]) -> Option<Sealed> {
        let service = read(self.attempt.as_mut()?, reply)?;
        let (sending, receiving) = self.attempt.take()?.dangerously_get_raw_split();
        Some((service, Box::new(Packets::new(&sending, &receiving))))
    }
}

/// The handshake at the end that offers, for one attempt ([`Keys::server`]).
#[derive(Debug)]
pub struct Server {
    shared: Option<SharedKey>,
    own: Option<PrivateKey>,
    attempt: Option<HandshakeState>,
}

impl ServerHandshake for Server {
    fn hello(&mut self, hello: &[u8]) -> Option<Vec<u8>> {
        let mut builder = builder(self.shared.as_ref(), self.own.is_some());
        if let Some(own) = &self.own {
            builder = builder.local_private_key(&own.0).expect("it is given once");
        }
        let mut state = builder.build_responder().expect("it has the keys that its pattern wants");
        let request = read(&mut state, hello)?;
        self.attempt = Some(state);
        Some(request)
    }

    fn accept(self: Box<Self>, service: &[u8]) -> Result<Sealed, HandshakeError> {
        check("service", service)?;
        let (message, mut state) = written(self.attempt.ok_or(HandshakeError::NoHello)?, service)?;
        let (receiving, sending) = state.dangerously_get_raw_split();
        Ok((message, Box::new(Packets::new(&sending, &receiving))))
    }
}

fn check(what: &'static str, service: &[u8]) -> Result<(), HandshakeError> {
    let (bytes, most) = (service.len(), SERVICE_BYTES);
    if bytes <= most { Ok(()) } else { Err(TooLong { what, bytes, most }.into()) }
}

fn builder(shared: Option<&SharedKey>, knows_server: bool) -> Builder<'_> {
    let name = match (shared.is_some(), knows_server) {
        (true, false) => "Noise_NNpsk0_25519_AESGCM_SHA256",
        (false, true) => "Noise_NK_25519_AESGCM_SHA256",
        (true, true) => "Noise_NKpsk0_25519_AESGCM_SHA256",
        (false, false) => unreachable!("an end without a key is not made"),
    };
    let builder = Builder::new(name.parse().expect("the name of a protocol"));
    let builder = builder.prologue(&PROLOGUE).expect("it is given once");
    match shared {
        Some(shared) => builder.psk(0, &shared.0).expect("it is given once"),
        None => builder,
    }
}

fn written(mut state: HandshakeState, service: &[u8]) -> Result<(Vec<u8>, HandshakeState), HandshakeError> {
    let mut message = vec![0; service.len() + MESSAGE_OVERHEAD];
    // All else that can go wrong has been ruled out.
    let bytes = state.write_message(service, &mut message).map_err(|_| HandshakeError::NoRandomness)?;
    message.truncate(bytes);
    Ok((message, state))
}

/// What is in a message; if it is not from the right one, `None`, and the state is as it was.
fn read(state: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    if message.len() > SERVICE_BYTES_MAX {
        return None;
    }
    let mut service = vec![0; message.len().checked_sub(MESSAGE_OVERHEAD)?];
    let bytes = state.read_message(message, &mut service).ok()?;
    service.truncate(bytes);
    Some(service)
}

#[cfg(test)]
mod tests;
