use outflow_poc::protection::Protection;
use proptest::prelude::*;

use super::*;
use crate::limits::KEY_PACKETS;

fn shared(byte: u8) -> Option<SharedKey> {
    Some(SharedKey([byte; KEY_BYTES]))
}

/// The keys of a client and of a server, for each handshake.
fn keys() -> [(Keys, Keys); 3] {
    let private = PrivateKey([7; KEY_BYTES]);
    let public = Some(private.public());
    let own = Some(private);
    let none = Keys::default;
    [
        (Keys { shared: shared(1), ..none() }, Keys { shared: shared(1), ..none() }),
        (Keys { public, ..none() }, Keys { private: own.clone(), ..none() }),
        (Keys { shared: shared(1), public, ..none() }, Keys { shared: shared(1), private: own, ..none() }),
    ]
}

fn ends(client: &Keys, server: &Keys) -> (Client, Server) {
    (client.client().expect("it has a key"), server.server().expect("it has a key"))
}

fn works(from: &mut dyn Protection, to: &mut dyn Protection) -> bool {
    let mut datagram = b"head and frames".to_vec();
    from.seal(0, &mut datagram, 4).expect("it is the first");
    to.open(0, &mut datagram, 4) == Some(15) && datagram.starts_with(b"head and frames")
}

#[test]
fn both_ends_have_the_same_keys_after_one_round_trip() {
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let hello = client.hello(b"request").expect("short");
        assert_eq!(hello.len(), 7 + MESSAGE_OVERHEAD);
        assert_eq!(server.hello(&hello).as_deref(), Some(&b"request"[..]));
        let (reply, mut there) = Box::new(server).accept(b"service").expect("short");
        assert_eq!(reply.len(), 7 + MESSAGE_OVERHEAD);
        let (service, mut here) = client.accept(&reply).expect("it is the server's");
        assert_eq!(service, b"service");
        assert!(works(&mut *here, &mut *there) && works(&mut *there, &mut *here));
        assert!(client.accept(&reply).is_none(), "once");
    }
}

#[test]
fn services_and_requests_cannot_be_read() {
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let hello = client.hello(b"request").expect("short");
        server.hello(&hello).expect("it is the client's");
        let (reply, _) = Box::new(server).accept(b"service").expect("short");
        assert!(!hello.windows(7).any(|bytes| bytes == b"request"));
        assert!(!reply.windows(7).any(|bytes| bytes == b"service"));
    }
}

#[test]
fn other_keys_are_not_understood() {
    let stranger = Keys { shared: shared(2), ..Keys::default() };
    let impostor = Keys { private: Some(PrivateKey([8; KEY_BYTES])), ..Keys::default() };
    let all = keys();
    let clients = all.iter().map(|(client, _)| client.clone()).chain([stranger.clone()]);
    for (at, client) in clients.enumerate() {
        let servers = all.iter().map(|(_, server)| server).chain([&stranger, &impostor]);
        for (other, server) in servers.enumerate() {
            let (mut client, mut server) = ends(&client, server);
            let hello = client.hello(b"request").expect("short");
            assert_eq!(server.hello(&hello).is_some(), at == other, "client {at}, server {other}");
        }
    }
}

#[test]
fn what_was_changed_is_not_taken_and_the_right_one_still_is() {
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let hello = client.hello(b"request").expect("short");
        for at in 0..hello.len() {
            let mut bad = hello.clone();
            bad[at] ^= 1;
            assert_eq!(server.hello(&bad), None, "byte {at}");
            assert_eq!(server.hello(&hello[..at]), None, "cut at {at}");
        }
        server.hello(&hello).expect("as it was sent");
        assert_eq!(server.hello(b"garbage"), None);
        let (reply, mut there) = Box::new(server).accept(b"service").expect("short");
        for at in 0..reply.len() {
            let mut bad = reply.clone();
            bad[at] ^= 1;
            assert!(client.accept(&bad).is_none(), "byte {at}");
            assert!(client.accept(&reply[..at]).is_none(), "cut at {at}");
        }
        let (_, mut here) = client.accept(&reply).expect("as it was sent");
        assert!(works(&mut *here, &mut *there));
    }
}

#[test]
fn a_hello_heard_by_another_gives_it_other_keys() {
    for (client, server_keys) in keys() {
        let (mut client, mut server) = ends(&client, &server_keys);
        let hello = client.hello(b"request").expect("short");
        server.hello(&hello).expect("it is the client's");
        let (reply, mut there) = Box::new(server).accept(b"service").expect("short");
        let mut again = server_keys.server().expect("it has a key");
        assert!(again.hello(&hello).is_some(), "it cannot be told apart");
        let (_, mut elsewhere) = Box::new(again).accept(b"service").expect("short");
        let (_, mut here) = client.accept(&reply).expect("it is the server's");
        assert!(!works(&mut *here, &mut *elsewhere) && !works(&mut *elsewhere, &mut *here));
        assert!(!works(&mut *there, &mut *elsewhere));
    }
}

#[test]
fn a_second_hello_begins_again() {
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let first = client.hello(b"request").expect("short");
        let second = client.hello(b"request").expect("short");
        assert_ne!(first, second);
        server.hello(&first).expect("it is the client's");
        let (reply, _) = Box::new(server).accept(b"service").expect("short");
        assert!(client.accept(&reply).is_none(), "it answers the first");
    }
}

#[test]
fn a_service_has_to_fit_and_to_answer_something() {
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let long = [0; SERVICE_BYTES + 1];
        let error = |what| TooLong { what, bytes: SERVICE_BYTES + 1, most: SERVICE_BYTES };
        assert_eq!(client.hello(&long), Err(error("request").into()));
        let hello = client.hello(&long[1..]).expect("it fits");
        assert_eq!(hello.len(), SERVICE_BYTES_MAX);
        assert_eq!(server.hello(&hello).as_deref(), Some(&long[1..]));
        assert_eq!(server.hello(&[&hello[..], &[0]].concat()), None);
        assert_eq!(Box::new(server).accept(&long).err(), Some(error("service").into()));
        let unasked = keys()[0].1.server().expect("it has a key");
        assert_eq!(Box::new(unasked).accept(b"").err(), Some(HandshakeError::NoHello));
    }
}

#[test]
fn an_end_without_a_key_of_use_says_so() {
    let private = PrivateKey([7; KEY_BYTES]);
    let public = Some(private.public());
    let server_only = Keys { private: Some(private), ..Keys::default() };
    assert!(matches!(server_only.client(), Err(KeyError::Missing(_))));
    assert!(matches!(Keys { public, ..Keys::default() }.server(), Err(KeyError::Missing(_))));
    assert!(matches!(Keys::default().client(), Err(KeyError::Missing(_))));
}

/// Packets without a head are transport messages of Noise, their numbers the nonces, and keys change by REKEY.
#[test]
fn packets_are_sealed_as_noise_says() {
    let seal = |protection: &mut dyn Protection, number| {
        let mut datagram = b"frames".to_vec();
        protection.seal(number, &mut datagram, 0).expect("it is the next");
        datagram
    };
    for (client, server) in keys() {
        let (mut client, mut server) = ends(&client, &server);
        let hello = client.hello(b"request").expect("short");
        server.hello(&hello).expect("it is the client's");
        let (reply, state) = written(server.attempt.expect("a hello was taken"), b"").expect("short");
        let (_, mut here) = client.accept(&reply).expect("it is the server's");
        let mut noise = state.into_stateless_transport_mode().expect("it is at its end");
        let mut opened = [0; 6];
        assert_eq!(noise.read_message(5, &seal(&mut *here, 5), &mut opened).ok(), Some(6));
        assert_eq!(&opened, b"frames");
        let number = KEY_PACKETS + 5;
        let next = seal(&mut *here, number);
        assert!(noise.read_message(number, &next, &mut opened).is_err());
        noise.rekey_incoming();
        assert_eq!(noise.read_message(number, &next, &mut opened).ok(), Some(6));
    }
}

#[test]
fn secrets_are_not_shown() {
    let key = SharedKey([0xa5; KEY_BYTES]);
    let mut client = Keys { shared: Some(key), ..Keys::default() }.client().expect("it has a key");
    client.hello(b"request").expect("short");
    let shown = format!("{client:?}");
    assert!(
        shown.contains("SharedKey(secret)") && !shown.contains("165") && !shown.contains("a5"),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn garbage_is_not_taken(bytes in prop::collection::vec(any::<u8>(), 0..1200), which in 0_usize..3) {
        let (client, server) = &keys()[which];
        let (mut client, mut server) = ends(client, server);
        prop_assert_eq!(server.hello(&bytes), None);
        prop_assert!(client.accept(&bytes).is_none(), "before it asked");
        prop_assert!(client.hello(b"request").is_ok());
        prop_assert!(client.accept(&bytes).is_none());
    }

    #[test]
    fn texts_are_keys_or_not(text in "(shared:|private:|public:|passphrase:)?[0-9a-f+/=é ]{0,70}") {
        // A long enough passphrase is always a key, and takes its time.
        prop_assume!(!text.starts_with("passphrase:") || text.len() < 20);
        let _ = text.parse::<Keys>();
        let _ = PrivateKey::from_text(&text);
        let _ = PublicKey::from_text(&text);
    }
}
