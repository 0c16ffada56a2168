//! The same for receivers by IPv6: neighbours by NDP, gateways of a link, what routers tell.

use super::*;

impl Net {
    /// The first wire has fd00:7::1/64 here, fd00:7::2/64 there, and each end an address of the link.
    pub(super) fn new_v6(test: &str) -> Option<Net> {
        let net = Net::new(test)?;
        if let Err(why) = try_run("ip", &["addr", "add", "fd00:7::1/64", "dev", "out", "nodad"]) {
            skipped(test, &why);
            return None;
        }
        net.neighbour(&["addr", "add", "fd00:7::2/64", "dev", "out", "nodad"]);
        net.relay(&["addr", "add", "fe80::7:1/64", "dev", "out", "nodad"]);
        net.neighbour(&["addr", "add", "fe80::7:2/64", "dev", "out", "nodad"]);
        Some(net)
    }
}

#[test]
fn a_neighbour_by_ipv6_is_known_after_a_send_and_its_new_address_after_an_event() {
    let Some(net) = Net::new_v6("resolving a neighbour by IPv6") else { return };
    let mut relay = Relay::open();
    let to = addr("fd00:7::2");
    let first = relay.resolve(to);
    assert!(matches!(first, Err(NoHop::Unresolved(ip)) if ip == to), "{first:?}");
    send(to);
    let hop = relay.hop(to);
    let expected = Hop {
        ifindex: relay.index("out"),
        source_mac: net.relay.mac("out"),
        target_mac: net.neighbour.mac("out"),
        source: addr("fd00:7::1"),
        mtu: 1500,
        xdp_transmit: false,
    };
    assert_eq!(hop, expected);
    net.relay(&["neigh", "replace", "fd00:7::2", "lladdr", "02:00:00:00:00:42", "dev", "out"]);
    let moved =
        relay.until(to, "moved", |hop| hop.as_ref().is_ok_and(|hop| hop.target_mac == [2, 0, 0, 0, 0, 0x42]));
    assert_eq!(moved.expect("as waited for"), Hop { target_mac: [2, 0, 0, 0, 0, 0x42], ..expected });
    net.relay(&["link", "set", "out", "mtu", "1400"]);
    relay.until(to, "smaller", |hop| hop.as_ref().is_ok_and(|hop| hop.mtu == 1400)).expect("as waited for");
    net.relay(&["link", "set", "out", "mtu", "1450"]);
    relay.until(to, "larger", |hop| hop.as_ref().is_ok_and(|hop| hop.mtu == 1450)).expect("as waited for");
}

#[test]
fn receivers_behind_a_gateway_of_the_link_are_reached_by_it_and_follow_their_route() {
    let Some(net) = Net::new_v6("a route by a gateway of the link") else { return };
    let by = ["via", "fe80::7:2", "dev", "out"];
    net.relay(&[&["-6", "route", "add", "fd00:9::/32"], &by[..], &["mtu", "1300"]].concat());
    let mut relay = Relay::open();
    let to = addr("fd00:9::2");
    send(to);
    let hop = relay.hop(to);
    assert_eq!(hop.target_mac, net.neighbour.mac("out"));
    assert_eq!((hop.source, hop.mtu), (addr("fd00:7::1"), 1300));

    net.relay(&["-6", "route", "add", "fd00:9::/64", "via", "fd00:7::3"]);
    let unknown = relay.until(to, "moved", |hop| matches!(hop, Err(NoHop::Unresolved(_))));
    assert!(matches!(unknown, Err(NoHop::Unresolved(ip)) if ip == addr("fd00:7::3")), "{unknown:?}");
    net.relay(&["-6", "route", "del", "fd00:9::/64"]);
    assert_eq!(relay.until(to, "back", Result::is_ok).expect("as waited for"), hop);

    net.relay(&["link", "set", "out", "down"]);
    relay.until(to, "without a route", |hop| matches!(hop, Err(NoHop::NoRoute(_)))).expect_err("waited for");
}

#[test]
fn an_address_of_the_link_is_reached_by_the_device_that_it_names() {
    let Some(net) = Net::new_v6("an address of the link") else { return };
    net.wire("other", 8);
    net.relay(&["addr", "add", "fe80::8:1/64", "dev", "other", "nodad"]);
    let mut relay = Relay::open();
    let to = addr("fe80::7:2");
    for (device, own) in [("out", "fe80::7:1"), ("other", "fe80::8:1")] {
        let index = relay.index(device);
        let mac = [2, 0, 0, 0, 0, index as u8];
        let text = format!("02:00:00:00:00:{:02x}", index as u8);
        net.relay(&["neigh", "replace", "fe80::7:2", "lladdr", &text, "dev", device]);
        let _heard = relay.routes.events();
        let hop = relay.routes.resolve(to, None, Some(index)).expect("it is known");
        // The kernel has made an address of the link by itself, too.
        let first = matches!(hop.source, IpAddr::V6(ip) if ip.is_unicast_link_local());
        assert_eq!((hop.ifindex, hop.target_mac, first), (index, mac, true), "{device}, {own}");
    }
}

#[test]
fn an_mtu_that_is_set_for_ipv6_counts_for_it_alone() {
    let Some(_net) = Net::new_v6("an MTU of IPv6") else { return };
    if let Err(why) = std::fs::write("/proc/sys/net/ipv6/conf/out/mtu", "1420") {
        return skipped("an MTU of IPv6", why);
    }
    let mut relay = Relay::open();
    for (to, mtu) in [("fd00:7::2", 1420), ("10.7.0.2", 1500)] {
        send(addr(to));
        assert_eq!(relay.hop(addr(to)).mtu, mtu, "{to}");
    }
}

#[test]
fn an_address_of_ipv6_that_goes_takes_its_receivers_to_another_one() {
    let Some(net) = Net::new_v6("an address of IPv6 removed") else { return };
    net.relay(&["addr", "add", "fd00:7::9/64", "dev", "out", "nodad"]);
    let mut relay = Relay::open();
    let to = addr("fd00:7::2");
    send(to);
    let hop = relay.hop(to);
    let other = if hop.source == addr("fd00:7::9") { "fd00:7::1" } else { "fd00:7::9" };
    let text = format!("{}/64", hop.source);
    net.relay(&["addr", "del", &text, "dev", "out"]);
    let moved = relay.until(to, "moved", |hop| hop.as_ref().is_ok_and(|hop| hop.source == addr(other)));
    assert_eq!(moved.expect("as waited for"), Hop { source: addr(other), ..hop });
}

#[test]
fn what_is_not_reached_by_ethernet_says_so() {
    let Some(net) = Net::new_v6("receivers by IPv6 without a hop") else { return };
    net.relay(&["-6", "route", "add", "blackhole", "fd00:20::/32"]);
    net.relay(&["-6", "route", "add", "unreachable", "fd00:21::/32"]);
    net.relay(&["-6", "route", "add", "prohibit", "fd00:22::/32"]);
    let mut relay = Relay::open();
    let mut text = |to: &str| {
        let error = relay.resolve(addr(to)).expect_err(to);
        format!("{error}")
    };
    assert_eq!(text("fd00:20::1"), "there is no route to it: Invalid argument (os error 22)");
    assert_eq!(text("fd00:21::1"), "there is no route to it: No route to host (os error 113)");
    assert_eq!(text("fd00:22::1"), "there is no route to it: Permission denied (os error 13)");
    assert_eq!(text("fd00:24::1"), "there is no route to it: Network is unreachable (os error 101)");
    for own in ["::1", "fd00:7::1"] {
        assert_eq!(text(own), "its address is one of this machine");
    }
    assert_eq!(text("::ffff:10.7.0.2"), "its address is one of IPv4, written as one of IPv6");
}
