use bytes::Bytes;

use super::super::tests::{Pair, SECOND, address, plain, to_send};
use super::*;
use crate::connection::Worth;
use crate::packet::Mark;
use crate::protection::Plain;

/// An endpoint that goes on with what another one has saved, as bytes and back.
fn handed_over(endpoint: &Endpoint, handshakes: Option<Handshakes>) -> (Endpoint, Vec<Handle>) {
    let saved = endpoint.save().expect("small flows");
    let bytes = minicbor::to_vec(&saved).expect("memory takes all that is written to it");
    let saved = minicbor::decode(&bytes).expect("it was just written");
    let mut protect = |_: &SavedBytes| Some(Box::new(Plain) as Box<dyn Protection>);
    let (settings, mut services) = (Settings::default(), Services::new());
    let restored = Endpoint::restore(settings, handshakes, &saved, &mut services, &mut protect);
    let (again, handles) = restored.expect("it was just saved");
    assert_eq!(again.save().as_ref(), Ok(&saved));
    (again, handles)
}

#[test]
fn clients_go_on_with_a_server_that_was_handed_over() {
    let mut pair = Pair::new(Settings::default());
    let mut clients = Vec::new();
    let mut servers = Vec::new();
    for _ in 0..3 {
        clients.push(pair.connect(to_send()));
        servers.push(pair.accept());
        pair.run(SECOND / 10);
    }
    let handles;
    (pair.server, handles) = handed_over(&pair.server, plain());
    assert_eq!(handles, servers);
    for client in &clients {
        for _ in 0..10 {
            let data = Bytes::from(vec![1; 500]);
            pair.client.send(pair.now, *client, None, data, Worth::default()).expect("there is room");
        }
    }
    pair.run(SECOND);
    assert_eq!(pair.delivered(), 30);
    pair.connect(to_send());
    assert!(!servers.contains(&pair.accept()), "no handle is used twice");
    pair.run(SECOND / 10);
    assert_eq!(pair.server.len(), 4);
    clients.iter().for_each(|client| pair.client.release(pair.now, *client));
    pair.run(SECOND);
    servers.iter().for_each(|server| pair.server.release(pair.now, *server));
    pair.run(2 * SECOND);
    assert_eq!((pair.client.len(), pair.server.len()), (1, 1));
}

#[test]
fn a_handshake_that_is_under_way_begins_again_with_the_cookie_that_it_has() {
    let mut pair = Pair::new(Settings::default());
    pair.connect(to_send());
    // The cookie is on its way back.
    pair.run(SECOND / 100);
    let retries = pair.server.counts().retries;
    (pair.server, _) = handed_over(&pair.server, plain());
    pair.accept();
    pair.run(SECOND / 10);
    assert_eq!((retries, pair.server.counts().retries), (1, 1), "its cookie is taken");
    assert_eq!(pair.client.len(), 1);
    // The client is heard, and the server has not answered yet: it asks again.
    pair.connect(to_send());
    pair.run(SECOND / 25);
    assert_eq!(pair.server.len(), 2);
    (pair.server, _) = handed_over(&pair.server, plain());
    assert_eq!(pair.server.len(), 1);
    pair.run(SECOND);
    pair.accept();
    pair.run(SECOND / 10);
    assert_eq!(pair.server.len(), 2);
}

#[test]
fn the_place_of_a_connection_that_is_elsewhere_stays() {
    let mut pair = Pair::new(Settings::default());
    pair.connect(to_send());
    let server = pair.accept();
    pair.run(SECOND / 10);
    let away = pair.server.detach(server).expect("it is there");
    (pair.server, _) = handed_over(&pair.server, plain());
    let mut datagram = vec![12];
    datagram.extend_from_slice(&away.local().0);
    datagram.push(9);
    assert_eq!(pair.server.handle_datagram(pair.now, address(1), Mark::None, &mut datagram), Some(server));
    pair.server.attach(server, away);
    assert!(pair.server.connection(server).is_some());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut pair = Pair::new(Settings::default());
    pair.connect(to_send());
    pair.accept();
    let saved = pair.server.save().expect("small flows");
    let refused = |change: fn(&mut SavedEndpoint)| {
        let mut saved = saved.clone();
        change(&mut saved);
        let mut protect = |_: &SavedBytes| Some(Box::new(Plain) as Box<dyn Protection>);
        let mut services = Services::new();
        let restored = Endpoint::restore(Settings::default(), None, &saved, &mut services, &mut protect);
        restored.err().map(|unfit| unfit.why)
    };
    assert_eq!(refused(|_| ()), None);
    assert_eq!(refused(|saved| saved.next = 0), Some("handles in another order"));
    assert_eq!(refused(|saved| saved.places.push(saved.places[0].clone())), Some("handles in another order"));
    assert_eq!(refused(|saved| saved.places[0].local.bytes[0] ^= 1), Some("a place of another one"));
}

#[test]
fn the_fuzzer_begins_with_what_can_be_restored() {
    let seeds: [(&str, &[u8]); 2] = [
        ("clients", include_bytes!("../../../../../fuzz/seeds/poc_restore/clients")),
        ("server", include_bytes!("../../../../../fuzz/seeds/poc_restore/server")),
    ];
    for (name, seed) in seeds {
        let saved = minicbor::decode(seed).expect(name);
        let mut protect = |_: &SavedBytes| Some(Box::new(Plain) as Box<dyn Protection>);
        let (settings, mut services) = (Settings::default(), Services::new());
        let restored = Endpoint::restore(settings, None, &saved, &mut services, &mut protect);
        let handles = restored.map(|(_, handles)| handles.len());
        assert_eq!(handles, Ok(2), "{name}: write it again as `Endpoint::save` has it now");
    }
}
