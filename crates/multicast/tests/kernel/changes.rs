//! Interfaces that go, and come back.

use std::net::Ipv4Addr;

use outflow_multicast::Event;

use crate::dvmrp::has;
use crate::hosts::{is_gone, is_wanted, member};
use crate::net::{Namespace, is_skipped, link};
use crate::relay::Relay;

fn is_interface_gone(event: &Event) -> bool {
    matches!(event, Event::InterfaceGone { interface } if &**interface == "lan")
}

fn is_back(address: [u8; 4]) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::InterfaceBack { address: now, .. } if *now == Ipv4Addr::from(address))
}

#[test]
fn an_interface_that_was_down_or_gone_or_has_another_address_takes_part_again() {
    if is_skipped("an_interface_that_was_down_or_gone_or_has_another_address_takes_part_again") {
        return;
    }
    let (router, host) = (Namespace::new("router"), Namespace::new("host"));
    link(&router, ("lan", "10.2.0.1"), &host, ("eth0", "10.2.0.2"));
    let relay = Relay::start(&router, &["lan"], None);
    let before = member(&host, Ipv4Addr::new(10, 2, 0, 2));
    relay.wait("join", is_wanted);

    router.ip(&["link", "set", "lan", "down"]);
    relay.wait("its groups are gone", is_gone);
    relay.wait("down", is_interface_gone);
    router.ip(&["link", "set", "lan", "up"]);
    relay.wait("up", is_back([10, 2, 0, 1]));
    relay.wait("the member answers the query", is_wanted);

    router.ip(&["address", "delete", "10.2.0.1/24", "dev", "lan"]);
    relay.wait("no address", is_interface_gone);
    router.ip(&["address", "add", "10.2.0.9/24", "dev", "lan"]);
    relay.wait("another address", is_back([10, 2, 0, 9]));
    relay.wait("the member answers that one", is_wanted);

    router.ip(&["link", "delete", "lan"]);
    relay.wait("no device", is_interface_gone);
    assert_eq!(relay.snapshot().interfaces.len(), 0);
    drop(before);
    link(&router, ("lan", "10.2.0.1"), &host, ("eth0", "10.2.0.2"));
    relay.wait("another device", is_back([10, 2, 0, 1]));
    let _member = member(&host, Ipv4Addr::new(10, 2, 0, 2));
    relay.wait("join there", is_wanted);
    assert_eq!(relay.snapshot().counts.interfaces_refused, 0);
}

#[test]
fn neighbours_are_found_again_on_an_interface_that_was_down() {
    if is_skipped("neighbours_are_found_again_on_an_interface_that_was_down") {
        return;
    }
    let (a, b) = (Namespace::new("a"), Namespace::new("b"));
    link(&a, ("lan", "10.2.0.1"), &b, ("lan", "10.2.0.2"));
    let (at_a, at_b) = (Relay::route(&a, &[], &["lan"]), Relay::route(&b, &[], &["lan"]));
    at_a.wait_until("neighbours", has(1, 1));
    a.ip(&["link", "set", "lan", "down"]);
    at_a.wait("down", is_interface_gone);
    at_a.wait_until("none is there", has(0, 0));
    a.ip(&["link", "set", "lan", "up"]);
    at_a.wait("up", is_back([10, 2, 0, 1]));
    at_a.wait_until("neighbours again", has(1, 1));
    at_b.wait("it began again", |event| matches!(event, Event::NeighbourRestarted { .. }));
}
