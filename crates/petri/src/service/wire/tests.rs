//! Sizes, round trips, and what is malformed.

use proptest::prelude::*;

use super::*;
use crate::net::{Frame, Shape, mpeg_shape, of_gop};
use crate::service::presets::{Mpeg, Order, audio, datagrams, gop, mpeg};

fn request(to_server: Option<Flow>, to_client: Option<Want>) -> Request {
    Request { resource: "/live/cam1".to_owned(), to_server, to_client }
}

fn emitted(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.emit(&mut bytes).expect("short enough");
    bytes
}

fn unnamed(flow: &Flow) -> Flow {
    Flow { net: Arc::new(flow.net.without_names()), ..flow.clone() }
}

#[test]
fn the_papers_service_fits_four_times() {
    let flow = mpeg(&Mpeg::default()).expect("a flow");
    let bytes = emitted(&request(Some(flow.clone()), None));
    assert_eq!(bytes.len(), 219);
    let read = Request::parse(&bytes).expect("a request");
    assert!(read == request(Some(unnamed(&flow)), None));
    let service = Service { to_server: Some(unnamed(&flow)), to_client: Some(unnamed(&flow)) };
    let mut bytes = Vec::new();
    service.emit(&mut bytes).expect("short enough");
    assert!(Service::parse(&bytes).expect("a service") == service);
}

#[test]
fn chains_of_thousands_take_few_bytes() {
    for order in [Order::Total, Order::Partial(100), Order::None] {
        let flow = datagrams(order, Some(Duration::from_millis(200)), Class::Partial).expect("a flow");
        let request = request(Some(unnamed(&flow)), None);
        assert!(emitted(&request).len() < 100, "{order:?}");
        assert!(Request::parse(&emitted(&request)).expect("a request") == request);
    }
}

#[test]
fn every_preset_fits_in_both_directions() {
    for preset in crate::service::Preset::ALL {
        let flow = preset.flow(&[]).expect("a flow");
        let service = Service { to_server: Some(unnamed(&flow)), to_client: Some(unnamed(&flow)) };
        let mut bytes = Vec::new();
        service.emit(&mut bytes).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert!(Service::parse(&bytes).expect("a service") == service, "{}", preset.name);
    }
}

#[test]
fn what_is_too_long_is_not_written() {
    let mut out = b"before".to_vec();
    // Each needs others of its own: no two places are alike.
    let frames = (0..200).map(|i| Frame {
        kind: outflow_media::Kind::Predicted,
        needs: outflow_media::Needs::back(1 + i % 7).and(outflow_media::Needs::back(9 + i % 5)),
    });
    let service = Mpeg { frames: frames.collect(), slices: 2, ..Mpeg::default() };
    let request = request(Some(mpeg(&service).expect("a flow")), None);
    let error = request.emit(&mut out).expect_err("too long");
    assert_eq!((error.what, error.most, &out[..]), ("request", 976, &b"before"[..]));
    let long = Request {
        resource: "x".repeat(crate::limits::RESOURCE_BYTES_MAX + 1),
        to_server: None,
        to_client: None,
    };
    assert_eq!(long.emit(&mut out).expect_err("too long").what, "resource");
}

#[test]
fn what_is_cut_off_or_goes_on_is_malformed() {
    let theirs = Bounds { rounds: 8, buffer_bytes: 1 << 20, validity: Some(Duration::from_secs(1)) };
    let flow = audio(Duration::from_millis(20), Duration::from_millis(60)).expect("a flow");
    let bytes = emitted(&request(Some(flow), Some(Want::Theirs(theirs))));
    assert!(Request::parse(&bytes).is_ok());
    for end in 0..bytes.len() {
        assert!(Request::parse(&bytes[..end]).is_err());
    }
    let error = Request::parse(&[&bytes[..], &[0]].concat()).expect_err("malformed");
    assert_eq!((error.offset, error.reason), (bytes.len(), "bytes behind the end"));
    assert_eq!(Request::parse(&[1; 977]).expect_err("malformed").reason, "too long");
}

/// A net of one object, as in [`net::emit`].
const NET: [u8; 13] = [2, 1, 19, 1, 0, 0, 0, 1, 4, 0, 0, 0, 1];

#[test]
fn what_is_wrong_is_told() {
    let reason = |behind_net: &[u8]| {
        let bytes = [&[VERSION, TO_CLIENT, 0, 13][..], &NET, behind_net].concat();
        Service::parse(&bytes).map_err(|error| error.reason)
    };
    assert!(reason(&[1, 0, 1, 16, 1, 1, 0]).is_ok());
    for (bytes, expected) in [
        (&[17][..], "no class, or too many"),
        (&[0, 1, 16, 1, 1, 0], "no class, or too many"),
        (&[1, 3], "a kind of class that is not known"),
        (&[1, 0, 1, 32], "a class of no objects, or of more than there are"),
        (&[1, 0, 1, 0xf0, 0xff, 0xff, 0xff, 0x7f], "a class of no objects, or of more than there are"),
        (&[1, 0, 0, 1, 1, 0], "classes of more or fewer objects than there are"),
        (&[1, 0, 1, 17, 1, 1, 0], "no class of this number"),
        (&[1, 0, 1, 16, 0, 1, 0], "no rounds, or too many"),
        (&[1, 0, 1, 16, 65, 1, 0], "no rounds, or too many"),
        (&[1, 0, 1, 16, 1, 0, 0], "no room for units"),
        (&[1, 0, 1, 16, 1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0], "more than the receiver can keep"),
        (&[1, 0, 1, 16, 1, 1, 1], "a time that is zero, too long, or not in microseconds"),
        (
            &[1, 0, 1, 16, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            FlowError::Time { what: "", problem: "" }.reason(),
        ),
    ] {
        assert_eq!(reason(bytes).map(|_| ()), Err(expected), "{bytes:?}");
    }
    let malformed = |bytes: &[u8]| Service::parse(bytes).expect_err("malformed");
    assert_eq!(malformed(&[1]).reason, "a version that is not known");
    assert_eq!(malformed(&[2, 4]).reason, "a direction that is not known");
    assert_eq!(malformed(&[2, 1, 2]).reason, "a flow of a kind that is not known");
    assert_eq!((malformed(&[2, 1, 0, 1, 1]).offset, malformed(&[2, 1, 0, 1, 1]).format), (4, "TSPN"));
    assert_eq!(Request::parse(&[2, 1, 0xff]).expect_err("malformed").reason, "a resource that is not UTF-8");
    assert_eq!(Request::parse(&[2, 0, 6]).expect_err("malformed").reason, "a direction that is not known");
}

fn times() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((1..86_400_000_000_u64).prop_map(Duration::from_micros))
}

/// A flow of any group, or of datagrams, with any classes.
fn flows() -> impl Strategy<Value = Flow> {
    let group = (1..12_u32, 1..4_u32, 1..6_u32).prop_map(|(anchors, distance, objects_per_frame)| {
        let shape = Shape { objects_per_frame, ..mpeg_shape() };
        of_gop(&gop(anchors * distance, distance), &shape).expect("a net")
    });
    let order = prop_oneof![Just(Order::Total), (0..5000_u32).prop_map(Order::Partial), Just(Order::None)];
    let chain = (order, times())
        .prop_map(|(order, wait)| Net::clone(&datagrams(order, wait, Class::Partial).expect("a flow").net));
    let class = (0..3_usize, times())
        .prop_map(|(repair, validity)| ServiceClass { repair: REPAIRS[repair], validity });
    let classes = prop::collection::vec(class, 1..=16);
    let net = prop_oneof![30 => group, 1 => chain];
    let room = (1..=64_u32, 1..u32::MAX);
    (net, classes, 1..40_usize, room, times()).prop_map(|(net, classes, run, room, period)| Flow {
        class_of: (0..net.objects()).map(|i| (i / run % classes.len()) as u8).collect(),
        net: Arc::new(net.without_names()),
        classes,
        rounds: room.0,
        buffer_bytes: room.1,
        is_dependent: room.0 % 2 == 0,
        period,
    })
}

fn wants() -> impl Strategy<Value = Want> {
    let bounds = (1..=64_u32, 1..u32::MAX, times()).prop_map(|(rounds, buffer_bytes, validity)| Bounds {
        rounds,
        buffer_bytes,
        validity,
    });
    prop_oneof![bounds.prop_map(Want::Theirs), flows().prop_map(Want::This)]
}

proptest! {
    #[test]
    fn requests_arrive_or_are_too_long(
        resource in "[ -~é]{0,64}",
        to_server in prop::option::of(flows()),
        to_client in prop::option::of(wants()),
    ) {
        let request = Request { resource, to_server, to_client };
        let mut bytes = Vec::new();
        match request.emit(&mut bytes) {
            Ok(()) => prop_assert!(Request::parse(&bytes).expect("a request") == request),
            Err(error) => prop_assert!(error.bytes > AGREED_BYTES_MAX && bytes.is_empty()),
        }
    }

    #[test]
    fn services_arrive_or_are_too_long(
        to_server in prop::option::of(flows()),
        to_client in prop::option::of(flows()),
    ) {
        let service = Service { to_server, to_client };
        let mut bytes = Vec::new();
        match service.emit(&mut bytes) {
            Ok(()) => prop_assert!(Service::parse(&bytes).expect("a service") == service),
            Err(error) => prop_assert!(error.bytes > AGREED_BYTES_MAX && bytes.is_empty()),
        }
    }

    #[test]
    fn any_net_of_a_flow_arrives(flow in flows()) {
        let mut bytes = Vec::new();
        net::emit(&flow.net, &mut bytes);
        prop_assert!(net::parse(&bytes).expect("a net") == *flow.net);
    }

    #[test]
    fn any_bytes_are_read_or_malformed(bytes in prop::collection::vec(0..40_u8, 0..60), kind in 0..2_u8) {
        let mut flow = vec![VERSION, TO_SERVER, kind, bytes.len() as u8];
        flow.extend(&bytes);
        flow.extend([1, 0, 1, 16, 4, 4, 0]);
        for bytes in [&bytes[..], &flow] {
            if let Ok(service) = Service::parse(bytes) {
                let mut again = Vec::new();
                service.emit(&mut again).expect("no longer than it was");
                prop_assert!(Service::parse(&again).expect("a service") == service);
            }
            _ = Request::parse(bytes);
        }
    }
}
