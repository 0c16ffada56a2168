//! The raw socket alone.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use outflow_multicast::sys::{Routing, Upcall, UpcallKind, Vifs};
use outflow_multicast::{Error, Interface};

use outflow_routing::membership::Family;

use crate::net::{Namespace, is_skipped, link};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// Reads until an upcall comes.
fn next_upcall(routing: &Routing) -> Upcall {
    let (end, mut buffer) = (Instant::now() + Duration::from_secs(10), [0; 2048]);
    while Instant::now() < end {
        match routing.receive(&mut buffer) {
            Ok(received) => {
                if let Some(Some(upcall)) = Upcall::parse(Family::V4, &buffer[..received.length]) {
                    return upcall;
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    panic!("no upcall came");
}

#[test]
fn a_table_is_one_program_s_and_free_again_after_it() {
    if is_skipped("a_table_is_one_program_s_and_free_again_after_it") {
        return;
    }
    let router = Namespace::new("router");
    router.run(|| {
        let first = Routing::open(Family::V4, None).expect("the table is free");
        assert!(matches!(Routing::open(Family::V4, None), Err(Error::Taken(Family::V4))));
        drop(Routing::open(Family::V4, Some(7)).expect("another table"));
        assert!(matches!(
            Routing::open(Family::V4, Some(2_000_000_000)),
            Err(Error::TableNumber(2_000_000_000))
        ));
        drop(first);
        drop(Routing::open(Family::V4, None).expect("the table is free again"));
    });
}

#[test]
fn interfaces_without_addresses_and_others_are_told_apart() {
    if is_skipped("interfaces_without_addresses_and_others_are_told_apart") {
        return;
    }
    let router = Namespace::new("router");
    router.ip(&["link", "add", "bare", "type", "veth", "peer", "name", "two"]);
    router.ip(&["address", "add", "10.3.0.1/24", "dev", "two"]);
    router.ip(&["address", "add", "10.4.0.1/16", "dev", "two"]);
    router.ip(&["link", "set", "two", "up"]);
    router.sysctl("net.ipv4.conf.two.rp_filter", "1");
    router.run(|| {
        assert!(matches!(Interface::find(Family::V4, "none"), Err(Error::NoInterface(_))));
        assert!(matches!(Interface::find(Family::V4, "bare"), Err(Error::NoAddress { .. })));
        let two = Interface::find(Family::V4, "two").expect("it has addresses");
        let address = |bytes: [u8; 4]| IpAddr::from(bytes);
        assert_eq!(two.address, address([10, 3, 0, 1]));
        assert!(two.is_of_link(address([10, 4, 9, 9])) && !two.is_of_link(address([10, 3, 1, 1])));
        assert!(two.warnings()[0].to_string().contains("net.ipv4.conf.two.rp_filter"));
    });
}

#[test]
fn data_without_an_entry_is_asked_about_and_forwarded_with_one() {
    if is_skipped("data_without_an_entry_is_asked_about_and_forwarded_with_one") {
        return;
    }
    let (source, router) = (Namespace::new("source"), Namespace::new("router"));
    let receiver = Namespace::new("receiver");
    link(&source, ("eth0", "10.1.0.2"), &router, ("in0", "10.1.0.1"));
    link(&receiver, ("eth0", "10.2.0.2"), &router, ("out0", "10.2.0.1"));
    let routing = router.run(|| {
        let routing = Routing::open(Family::V4, None).expect("the table is free");
        for (vif, name) in [(0, "in0"), (3, "out0")] {
            routing
                .add_vif(vif, Interface::find(Family::V4, name).expect("it is there").index)
                .expect("room for it");
        }
        routing
    });
    let sender = source.run(|| UdpSocket::bind((SOURCE, 0)).expect("a socket"));
    sender.set_multicast_ttl_v4(8).expect("an option");
    let socket = receiver.run(|| {
        let socket = UdpSocket::bind((GROUP, 5004)).expect("a socket");
        socket.join_multicast_v4(&GROUP, &Ipv4Addr::new(10, 2, 0, 2)).expect("a membership");
        socket
    });
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("an option");
    source.ip(&["route", "add", "224.0.0.0/4", "dev", "eth0"]);
    sender.send_to(b"one", (GROUP, 5004)).expect("a way out");
    let upcall = next_upcall(&routing);
    let (from, to) = (IpAddr::V4(SOURCE), IpAddr::V4(GROUP));
    assert_eq!(upcall, Upcall { kind: UpcallKind::NoCache, vif: 0, source: from, group: to });
    let mut outputs = Vifs::default();
    outputs.insert(3);
    assert_eq!(
        routing.set_flow(from, to, 32, outputs).map_err(|error| error.raw_os_error()),
        Err(Some(23)),
        "no such parent: ENFILE"
    );
    routing.set_flow(from, to, 0, outputs).expect("an entry");
    let mut buffer = [0; 100];
    assert_eq!(socket.recv(&mut buffer).expect("the packet that waited"), 3);
    sender.send_to(b"three", (GROUP, 5004)).expect("a way out");
    assert_eq!(socket.recv(&mut buffer).expect("another one"), 5);
    let counts = routing.flow_counts(from, to).expect("an entry");
    assert_eq!((counts.packets, counts.wrong_interface), (2, 0));
    routing.remove_flow(from, to, 0).expect("an entry");
    assert!(routing.flow_counts(from, to).is_err());
    routing.remove_vif(3).expect("an interface");
    assert!(routing.remove_vif(3).is_err());
}
