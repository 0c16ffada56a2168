//! The same for groups, which nothing is asked about but the device.

use super::*;

#[test]
fn a_group_is_reached_by_its_device_without_asking_for_a_neighbour() {
    let Some(net) = Net::new("a group") else { return };
    let mut relay = Relay::open();
    let (to, index) = (addr("239.129.2.3"), relay.index("out"));
    let by_device = relay.routes.resolve(to, None, Some(index)).expect("by its device");
    let expected = Hop {
        ifindex: index,
        source_mac: net.relay.mac("out"),
        target_mac: [0x01, 0x00, 0x5e, 1, 2, 3],
        source: addr("10.7.0.1"),
        mtu: 1500,
        xdp_transmit: false,
    };
    assert_eq!(by_device, expected);
    net.relay(&["route", "add", "224.0.0.0/4", "dev", "out", "src", "10.7.0.1"]);
    assert_eq!(relay.until(to, "routed", Result::is_ok).expect("as waited for"), expected);
    net.relay(&["link", "set", "out", "down"]);
    relay.until(to, "without a route", |hop| hop.is_err()).expect_err("waited for");
}

#[test]
fn a_group_of_ipv6_is_reached_by_its_device_without_asking_for_a_neighbour() {
    let Some(net) = Net::new_v6("a group of IPv6") else { return };
    let mut relay = Relay::open();
    let index = relay.index("out");
    let hop = relay.routes.resolve(addr("ff1e::1:2:3"), None, Some(index)).expect("by its device");
    assert_eq!((hop.ifindex, hop.source_mac, hop.mtu), (index, net.relay.mac("out"), 1500));
    assert_eq!(hop.target_mac, [0x33, 0x33, 0, 2, 0, 3]);
    assert_eq!(hop.source, addr("fd00:7::1"));
}
