//! What is agreed to, reduced and refused, and what a client does not take.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::limits::REASON_BYTES_MAX;
use crate::service::Preset;
use crate::service::presets::{Mpeg, Order, audio, datagrams, gop, mpeg, parts};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn pages() -> Flow {
    parts(3).expect("a flow")
}

fn pictures() -> Flow {
    mpeg(&Mpeg::default()).expect("a flow")
}

fn request(to_server: Option<Flow>, to_client: Option<Want>) -> Request {
    Request { resource: "/live/cam1".to_owned(), to_server, to_client }
}

fn theirs(rounds: u32, buffer_bytes: u32, validity: Option<Duration>) -> Request {
    request(None, Some(Want::Theirs(Bounds { rounds, buffer_bytes, validity })))
}

/// As it arrives at the other end.
fn sent(service: &Service) -> Service {
    let mut bytes = Vec::new();
    service.emit(&mut bytes).expect("short enough");
    Service::parse(&bytes).expect("a service")
}

fn refused(terms: &Terms, request: &Request, source: Option<&Flow>) -> String {
    let refusal = terms.answer(request, source).expect_err("refused");
    assert!(refusal.text.len() <= REASON_BYTES_MAX, "{} bytes: {refusal}", refusal.text.len());
    refusal.text
}

#[test]
fn what_is_within_the_terms_is_accepted_as_asked() {
    let request = request(Some(pages()), Some(Want::This(pictures())));
    let service = Terms::default().answer(&request, None).expect("accepted");
    assert!(service.to_server == request.to_server && service.to_client == Some(pictures()));
    assert_eq!(sent(&service).is_within(&request), Ok(()));
    assert!(sent(&service).differences(&request).is_empty());
}

#[test]
fn what_is_more_is_reduced_and_said_to_people() {
    let terms = Terms {
        rounds_max: 2,
        buffer_bytes_max: 4 << 20,
        validity_max: Some(Duration::from_millis(400)),
        allows_reliable_without_end: false,
        ..Terms::default()
    };
    let request = request(Some(pages()), Some(Want::This(pictures())));
    let service = terms.answer(&request, None).expect("reduced");
    assert_eq!(sent(&service).is_within(&request), Ok(()));
    assert_eq!(
        service.differences(&request).to_string(),
        "to the server: rounds 4 → 2, buffer 32 MiB → 4 MiB, reliable for inf → 400 ms; \
         to the client: rounds 4 → 2, buffer 32 MiB → 4 MiB, reliable for 480 ms → 400 ms"
    );
}

#[test]
fn what_is_reliable_is_given_an_end_where_it_needs_one() {
    let request = request(Some(pages()), None);
    let validity = |terms: Terms| {
        let service = terms.answer(&request, None).expect("accepted");
        service.to_server.expect("as asked").class(0).validity
    };
    let none = Terms { validity_max: None, ..Terms::default() };
    assert_eq!(validity(Terms { validity_max: Some(secs(1)), ..Terms::default() }), None);
    let with_end = Terms { allows_reliable_without_end: false, ..none };
    assert_eq!(validity(with_end), Some(RELIABLE_VALIDITY));
    assert_eq!(validity(Terms { validity_max: Some(secs(1)), ..with_end }), Some(secs(1)));
}

#[test]
fn theirs_is_what_the_source_is_within_the_bounds() {
    let terms = Terms { buffer_bytes_max: 3 << 20, ..Terms::default() };
    let request = theirs(8, 2 << 20, Some(Duration::from_millis(100)));
    let service = terms.answer(&request, Some(&pictures())).expect("accepted");
    assert_eq!(sent(&service).is_within(&request), Ok(()));
    let flow = service.to_client.as_ref().expect("as asked");
    assert_eq!((flow.rounds, flow.buffer_bytes, flow.period), (4, 2 << 20, pictures().period));
    assert!(flow.classes.iter().all(|class| class.validity == Some(Duration::from_millis(100))));
    assert!(service.differences(&request).is_empty());
    let narrow = theirs(1, 1, Some(Duration::ZERO));
    assert_eq!(service.is_within(&narrow), Err(Beyond::Room(Direction::ToClient)));
    let brief = theirs(8, 2 << 20, Some(Duration::from_millis(99)));
    assert_eq!(service.is_within(&brief), Err(Beyond::Stronger(Direction::ToClient, 0)));
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let terms = Terms::default();
    let said = refused(&terms, &request(None, None), Some(&pictures()));
    assert!(said.contains("nothing is asked for"), "{said}");
    let said = refused(&terms, &theirs(1, 1, None), None);
    assert!(said.contains("nothing of its own to send"), "{said}");
    let large = request(Some(pictures()), None);
    let said = refused(&Terms { objects_max: 100, ..terms }, &large, None);
    assert!(said.contains("180 objects, 100 are taken: describe a shorter period"), "{said}");
    let said = refused(&Terms { transitions_max: 10, ..terms }, &large, None);
    assert!(said.contains("12 transitions, 10 are taken"), "{said}");
    let said = refused(&terms, &request(None, Some(Want::This(pages()))), Some(&pictures()));
    assert!(said.contains("4 objects and the source 180"), "{said}");
    let broken = Flow { rounds: 0, ..pages() };
    assert!(refused(&terms, &request(Some(broken), None), None).contains("no rounds"));
    assert!(refused(&terms, &theirs(0, 1, None), Some(&pages())).contains("no rounds"));
}

#[test]
fn a_receiver_that_would_fall_behind_a_live_source_is_refused() {
    let live = |flow: Flow, period| request(Some(Flow { period: Some(period), ..flow }), None);
    let terms = Terms::default();
    let said = refused(&terms, &live(pictures(), Duration::from_millis(300)), None);
    assert!(said.contains("takes 360 ms, the source 300 ms"), "{said}");
    assert!(terms.answer(&live(pictures(), Duration::from_millis(360)), None).is_ok());
    // The source knows its period, whatever the client says.
    let source = Flow { period: Some(Duration::from_millis(300)), ..pictures() };
    let this = request(None, Some(Want::This(Flow { period: None, ..pictures() })));
    refused(&terms, &this, Some(&source));
    refused(&terms, &theirs(8, 1 << 20, None), Some(&source));
    let service = terms.answer(&this, Some(&pictures())).expect("it keeps up");
    assert_eq!(service.to_client.as_ref().expect("as asked").period, pictures().period);
    assert_eq!(service.is_within(&this), Ok(()));
    // What is waited for without end is ended by its sender.
    assert!(terms.answer(&live(pages(), Duration::from_millis(1)), None).is_ok());
    let long = datagrams(Order::Total, Some(secs(1)), Class::Partial).expect("a flow");
    let said = refused(&terms, &live(long, secs(1)), None);
    assert!(said.contains("1024 transitions and 2048 places is too large"), "{said}");
}

/// What a server makes of a service that it should not.
type Spoil = fn(&mut Service);

#[test]
fn what_was_not_asked_for_is_not_taken() {
    let request = request(Some(pages()), Some(Want::This(pictures())));
    let service = Terms::default().answer(&request, None).expect("accepted");
    fn change(flow: &mut Option<Flow>, change: fn(&mut Flow)) {
        flow.as_mut().into_iter().for_each(change);
    }
    let (server, client) = (Direction::ToServer, Direction::ToClient);
    let cases: [(Spoil, Beyond); 10] = [
        (|service| service.to_server = None, Beyond::Direction(server)),
        (|service| service.to_client = None, Beyond::Direction(client)),
        (|service| service.to_client = Some(pages()), Beyond::OtherNet(client)),
        (
            |service| change(&mut service.to_server, |flow| flow.period = Some(secs(1))),
            Beyond::OtherNet(server),
        ),
        (|service| change(&mut service.to_client, |flow| flow.rounds += 1), Beyond::Room(client)),
        (|service| change(&mut service.to_server, |flow| flow.buffer_bytes += 1), Beyond::Room(server)),
        (
            |service| change(&mut service.to_client, |flow| flow.classes[2].repair = Class::Partial),
            Beyond::Stronger(client, 15),
        ),
        (
            |service| change(&mut service.to_client, |flow| flow.classes[0].validity = None),
            Beyond::Stronger(client, 0),
        ),
        (
            |service| change(&mut service.to_client, |flow| flow.class_of[20] = 0),
            Beyond::Stronger(client, 20),
        ),
        (
            |service| change(&mut service.to_client, |flow| flow.rounds = 0),
            Beyond::NoFlow(client, FlowError::Rounds(0)),
        ),
    ];
    for (spoil, beyond) in cases {
        let mut spoiled = service.clone();
        spoil(&mut spoiled);
        assert!(!beyond.to_string().is_empty() && !beyond.reason().is_empty());
        assert_eq!(spoiled.is_within(&request), Err(beyond));
    }
}

#[test]
fn nets_of_the_same_size_are_not_the_same() {
    let of = |slices, order| {
        let service = Mpeg { frames: gop(4, order), slices, ..Mpeg::default() };
        Arc::clone(&mpeg(&service).expect("a flow").net)
    };
    assert!(is_same(&of(4, 4), &of(4, 4).without_names()));
    assert!(!is_same(&of(4, 4), &of(4, 2)));
    let audio =
        |latency| audio(Duration::from_millis(20), Duration::from_millis(latency)).expect("a flow").net;
    assert!(is_same(&audio(60), &audio(60)) && !is_same(&audio(60), &audio(61)));
}

proptest! {
    #[test]
    fn what_a_server_agrees_to_is_what_a_client_takes(
        preset in 0..Preset::ALL.len(),
        (rounds_max, buffer_bytes_max) in (0..70_u32, any::<u32>()),
        validity_max in prop::option::of((0..5000_u64).prop_map(Duration::from_millis)),
        allows_reliable_without_end in any::<bool>(),
        (rounds, buffer_bytes, asks) in (1..=64_u32, 1..u32::MAX, 0..4_u32),
        validity in prop::option::of((0..5000_u64).prop_map(Duration::from_millis)),
    ) {
        let flow = Preset::ALL[preset].flow(&[]).expect("a flow");
        let terms = Terms {
            rounds_max, buffer_bytes_max, validity_max, allows_reliable_without_end, ..Terms::default()
        };
        let to_server = (asks != 0).then(|| flow.clone());
        let to_client = match asks {
            0 | 1 => Some(Want::Theirs(Bounds { rounds, buffer_bytes, validity })),
            2 => Some(Want::This(flow.clone())),
            _ => None,
        };
        let request = request(to_server, to_client);
        let service = terms.answer(&request, Some(&flow)).expect("accepted");
        prop_assert_eq!(sent(&service).is_within(&request), Ok(()));
        for flow in service.to_server.iter().chain(&service.to_client) {
            prop_assert_eq!(flow.check(), Ok(()));
            prop_assert!(flow.rounds <= rounds_max.max(1) && flow.buffer_bytes <= buffer_bytes_max.max(1));
        }
    }
}
