//! Groups that the relay sends itself, and those that it does not.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use outflow_multicast::{Error, Event, Interface, Relayed};
use outflow_routing::membership::{Family, Level};

use crate::hosts::{GROUP, PORT, SOURCE, is_wanted, member, say_level, sender, sent_until_received};
use crate::net::{Namespace, is_skipped, link};
use crate::relay::Relay;

fn level(number: u8) -> Level {
    Level::new(number).expect("not zero")
}

/// A router between two hosts, each at an interface of its own.
fn two_hosts() -> (Namespace, [Namespace; 2]) {
    let (router, hosts) = (Namespace::new("router"), ["a", "b"].map(Namespace::new));
    for (number, host) in hosts.iter().enumerate() {
        let (net, device) = (number + 2, format!("out{number}"));
        link(&router, (&device, &format!("10.{net}.0.1")), host, ("eth0", &format!("10.{net}.0.2")));
    }
    (router, hosts)
}

fn came(at: &UdpSocket) -> usize {
    let mut buffer = [0; 100];
    std::iter::from_fn(|| at.recv(&mut buffer).ok()).count()
}

/// As the relay sends by one interface what it sends by the other one, too; but looped back, which the relay's
/// own sockets do not do.
#[test]
fn what_the_relay_itself_sends_is_not_forwarded_to_other_interfaces() {
    let name = "what_the_relay_itself_sends_is_not_forwarded_to_other_interfaces";
    if is_skipped(name) {
        return;
    }
    for (relayed, is_forwarded) in [(None, true), (Some(Relayed::Lower), false), (Some(Relayed::All), false)]
    {
        let (router, [a, b]) = two_hosts();
        let relay = Relay::start(&router, &["out0", "out1"], None);
        relayed.into_iter().for_each(|relayed| relay.send(GROUP, relayed));
        let (at_a, at_b) = (member(&a, Ipv4Addr::new(10, 2, 0, 2)), member(&b, Ipv4Addr::new(10, 3, 0, 2)));
        for _ in 0..2 {
            relay.wait("joined", is_wanted);
        }
        router.ip(&["route", "add", "224.0.0.0/4", "dev", "out0"]);
        let from = router.run(|| UdpSocket::bind(("10.2.0.1", 0)).expect("a socket"));
        from.set_multicast_ttl_v4(8).expect("an option");
        for _ in 0..20 {
            from.send_to(b"data", (GROUP, PORT)).expect("a way out");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(came(&at_a), 20, "{relayed:?}");
        assert_eq!(came(&at_b) > 0, is_forwarded, "{relayed:?}");
    }
}

#[test]
fn a_group_that_the_relay_does_not_send_is_forwarded_as_far_as_it_says_what_it_is() {
    let name = "a_group_that_the_relay_does_not_send_is_forwarded_as_far_as_it_says_what_it_is";
    if is_skipped(name) {
        return;
    }
    let (router, [a, b]) = two_hosts();
    let relay = Relay::start(&router, &["out0", "out1"], None);
    say_level(&b, level(3));
    let is_lower = |event: &Event| matches!(event, Event::Wanted { wanted, .. } if wanted.level == level(3));
    relay.wait("a lower level", is_lower);
    let from = sender(&a, Ipv4Addr::new(10, 2, 0, 2));
    from.send_to(b"data", (GROUP, PORT)).expect("a way out");
    let is_flow = |event: &Event| matches!(event, Event::Flow(_));
    let Event::Flow(flow) = relay.wait("forwarded", is_flow) else { return };
    assert_eq!((flow.by_kernel, flow.by_relay), (vec![], vec![]));
    assert_eq!(flow.thinned, [("out1".into(), level(3))]);
    relay.send(GROUP, Relayed::Lower);
    let Event::Flow(flow) = relay.wait("the relay's", is_flow) else { return };
    assert_eq!((flow.by_kernel, flow.by_relay), (vec![], vec![("out1".into(), level(3))]));
    relay.send(GROUP, Relayed::All);
    let Event::Flow(flow) = relay.wait("none of the kernel's", is_flow) else { return };
    assert_eq!((flow.by_kernel, flow.by_relay), (vec![], vec![]));
}

#[test]
fn what_the_relay_sends_all_of_is_not_joined_upstream() {
    if is_skipped("what_the_relay_sends_all_of_is_not_joined_upstream") {
        return;
    }
    let (source, router, host) = (Namespace::new("source"), Namespace::new("router"), Namespace::new("host"));
    link(&source, ("mid", "10.1.0.2"), &router, ("wan", "10.1.0.1"));
    link(&router, ("lan", "10.2.0.1"), &host, ("eth0", "10.2.0.2"));
    let above = Relay::start(&source, &["mid"], None);
    let relay = Relay::start(&router, &["lan"], Some("wan"));
    let at = member(&host, Ipv4Addr::new(10, 2, 0, 2));
    above.wait("joined", is_wanted);
    source.ip(&["route", "replace", "224.0.0.0/4", "dev", "mid"]);
    let from = source.run(|| UdpSocket::bind((SOURCE, 0)).expect("a socket"));
    from.set_multicast_ttl_v4(8).expect("an option");
    sent_until_received(&from, &at);
    relay.send(GROUP, Relayed::All);
    above.wait("left", |event| matches!(event, Event::Gone { .. }));
}

#[test]
fn an_interface_that_is_down_is_none_to_use() {
    if is_skipped("an_interface_that_is_down_is_none_to_use") {
        return;
    }
    let (router, _hosts) = two_hosts();
    let find = || router.run(|| Interface::find(Family::V4, "out0"));
    assert!(find().is_ok_and(|found| found.is_own(IpAddr::from([10, 2, 0, 1]))));
    router.ip(&["link", "set", "out0", "down"]);
    assert!(matches!(find(), Err(Error::Down(name)) if name == "out0"));
    router.ip(&["link", "delete", "out0"]);
    assert!(matches!(find(), Err(Error::NoInterface(name)) if name == "out0"));
}
