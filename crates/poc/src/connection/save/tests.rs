use bytes::Bytes;
use fastrand::Rng;
use outflow_petri::service::Class;
use outflow_petri::service::presets::{Order, datagrams};

use super::super::testing::{Pair, Weather, chain, data, flow, handed_over};
use super::*;

/// What both ends send in a second of a live source, one of which may be handed over at some time of it.
fn sent(seed: u64, handover: Option<(usize, bool)>) -> Vec<(Time, bool, Vec<u8>)> {
    let flow = flow(chain(6, Some(Duration::from_millis(300))), Class::Reliable, None);
    let mut pair = Pair::new(&flow, Weather::FAIR, seed);
    pair.record = Some(Vec::new());
    let mut random = Rng::with_seed(seed);
    for step in 0..60 {
        let unit = pair.client.next_unit() + u64::from(random.u8(..10) == 0);
        let bytes: Bytes = vec![step as u8; random.usize(..1000)].into();
        pair.send(unit, bytes).expect("there is room");
        pair.run(Duration::from_micros(random.u64(10_000..30_000)));
        match handover.filter(|(at, _)| *at == step) {
            Some((_, true)) => pair.client = handed_over(&pair.client).expect("a small flow"),
            Some((_, false)) => pair.server = handed_over(&pair.server).expect("a small flow"),
            None => (),
        }
    }
    pair.finish(Duration::from_secs(2));
    assert_eq!(pair.at_server.closed.as_ref().map(|closed| closed.code), Some(Code::DONE));
    pair.record.unwrap_or_default()
}

#[test]
fn without_losses_the_same_datagrams_are_sent_as_by_an_end_that_stayed() {
    for seed in 0..60 {
        let mut random = Rng::with_seed(1000 + seed);
        let stayed = sent(seed, None);
        let handover = (random.usize(..60), random.bool());
        let other = sent(seed, Some(handover));
        let first = stayed.iter().zip(&other).position(|(a, b)| a != b);
        assert_eq!(first.map(|at| (&stayed[at], &other[at])), None, "seed {seed}: {handover:?}");
        assert_eq!(stayed.len(), other.len(), "seed {seed}: {handover:?}");
    }
}

#[test]
fn what_is_in_flight_is_neither_lost_nor_sent_again_for_that() {
    let flow = flow(chain(4, None), Class::Reliable, None);
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    pair.run(Duration::from_millis(200));
    for unit in 0..4 {
        pair.send(unit, vec![unit as u8; 900]).expect("there is room");
    }
    pair.run(Duration::from_millis(10));
    pair.client = handed_over(&pair.client).expect("a small flow");
    assert!(pair.client.sent.in_flight() > 0, "they are under way");
    pair.run(Duration::from_secs(1));
    assert!(pair.at_server.delivered.iter().map(|(unit, ..)| *unit).eq(0..4));
    assert_eq!(pair.client.outgoing_counts().repairs.again, 0);
    assert_eq!(pair.server.incoming_counts().duplicate, 0);
}

#[test]
fn what_is_saved_does_not_grow_with_what_was_sent() {
    let flow = datagrams(Order::Total, Some(Duration::from_millis(200)), Class::Reliable).expect("a preset");
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    let mut send = |units: u64| {
        for _ in 0..units {
            let unit = pair.client.next_unit();
            pair.send(unit, vec![1; 100]).expect("there is room");
            pair.run(Duration::from_millis(5));
        }
        pair.run(Duration::from_secs(1));
        let outgoing = pair.client.save().expect("a small flow").outgoing.expect("it sends");
        outgoing.engine.transitions.len()
    };
    let (few, many) = (send(10), send(3000));
    assert!(many <= few + 20, "{few}, {many} bytes");
}

#[test]
fn what_was_not_read_is_read_afterwards() {
    let flow = flow(chain(4, None), Class::Reliable, None);
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    pair.reads = false;
    (0..8).for_each(|unit| pair.send(unit, data(unit)).expect("there is room"));
    pair.run(Duration::from_secs(1));
    pair.server = handed_over(&pair.server).expect("a small flow");
    pair.reads = true;
    pair.run(Duration::from_secs(1));
    assert!(pair.at_server.delivered.iter().map(|(unit, ..)| *unit).eq(0..8));
    assert!(pair.at_server.delivered.iter().all(|(unit, bytes, _)| *bytes == data(*unit)));
}

#[test]
fn one_that_is_over_says_so_as_before() {
    let flow = flow(chain(4, None), Class::Reliable, None);
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    pair.run(Duration::from_millis(100));
    pair.client.close(pair.now, Code::BUSY, "enough");
    pair.client = handed_over(&pair.client).expect("a small flow");
    pair.run(Duration::from_millis(100));
    let closed = |by| Some(Closed { by, code: Code::BUSY, text: "enough".to_owned() });
    assert_eq!((&pair.at_client.closed, &pair.at_server.closed), (&closed(By::Us), &closed(By::Peer)));
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let flow = flow(chain(4, None), Class::Reliable, None);
    let mut pair = Pair::new(&flow, Weather::FAIR, 1);
    (0..4).for_each(|unit| pair.send(unit, data(unit)).expect("there is room"));
    let saved = pair.client.save().expect("a small flow");
    let refused = |change: fn(&mut SavedConnection)| {
        let mut saved = saved.clone();
        change(&mut saved);
        let (settings, mut services) = (Settings::default(), Services::new());
        let restored =
            Connection::restore(&saved, Box::new(crate::protection::Plain), settings, &mut services);
        restored.err().map(|unfit| unfit.why)
    };
    assert_eq!(refused(|_| ()), None);
    assert_eq!(refused(|saved| saved.outgoing = None), Some("other flows than it has"));
    assert_eq!(refused(|saved| saved.service = SavedBytes::default()), Some("ends early"));
    assert_eq!(refused(|saved| saved.sent.next = 1 << 20), Some("too many"));
    assert_eq!(refused(|saved| saved.sent.next = 0), Some("numbers in another order"));
    assert_eq!(refused(|saved| saved.sent.packets[0].sent = u64::MAX), Some("times in another order"));
    assert_eq!(refused(|saved| saved.local.bytes[0] ^= 1), None);
    let with_outgoing = |change: fn(&mut crate::save::SavedOutgoing)| {
        let mut saved = saved.clone();
        saved.outgoing.as_mut().map(change);
        let (settings, mut services) = (Settings::default(), Services::new());
        let restored =
            Connection::restore(&saved, Box::new(crate::protection::Plain), settings, &mut services);
        restored.err().map(|unfit| unfit.why)
    };
    assert_eq!(with_outgoing(|saved| saved.units[1].bytes += 1), Some("another length than it has"));
    assert_eq!(with_outgoing(|saved| saved.units[1].class = 3), Some("a class that is not known"));
    assert_eq!(with_outgoing(|saved| saved.told = 5), Some("too high a number"));
    assert_eq!(with_outgoing(|saved| saved.base = 1), Some("more or fewer than there are numbers"));
    let more = with_outgoing(|saved| saved.engine.transitions.push(0));
    assert_eq!(more, Some("it has other transitions"));
    let none = with_outgoing(|saved| saved.engine.transitions.clear());
    assert_eq!(none, Some("its numbers cannot be read"));
}

#[test]
fn the_fuzzer_begins_with_what_can_be_restored() {
    let seeds: [(&str, &[u8]); 2] = [
        ("sender", include_bytes!("../../../../../fuzz/seeds/poc_restore/sender")),
        ("receiver", include_bytes!("../../../../../fuzz/seeds/poc_restore/receiver")),
    ];
    for (name, seed) in seeds {
        let saved: SavedConnection = minicbor::decode(seed).expect(name);
        let (settings, mut services) = (Settings::default(), Services::new());
        let restored =
            Connection::restore(&saved, Box::new(crate::protection::Plain), settings, &mut services);
        assert_eq!(restored.err(), None, "{name}: write it again as `Connection::save` has it now");
    }
}
