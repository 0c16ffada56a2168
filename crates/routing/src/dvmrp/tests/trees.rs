//! A thousand routers in a tree, in which each has to say no more than in a small one.

use core::net::Ipv4Addr;
use core::time::Duration;

use super::network::Network;
use super::oracle::Paths;

const GROUP: Ipv4Addr = Ipv4Addr::new(225, 1, 2, 3);

/// Packets that any router sent in ten minutes at the most, in a tree of `count` in which each has three
/// others below; what they send in this time, with members that come, change and go.
fn most_sent(count: usize) -> u64 {
    let mut net = Network::new(count as u64);
    for node in 0..count {
        net.add_node(true);
        if node > 0 {
            net.add_wire(&[(node - 1) / 3, node], false, 1);
        }
    }
    let source = net.add_wire(&[0], true, 1);
    let leaves: Vec<_> = (1..8).map(|leaf| net.add_wire(&[count - leaf], true, 1)).collect();
    net.run(Duration::from_secs(120));
    let before: Vec<_> = net.nodes.iter().map(|node| node.sent).collect();
    for round in 0..60 {
        let wire = leaves[net.random.usize(0..leaves.len())];
        let level = (round % 3 > 0).then(|| net.random.u8(1..34));
        net.set_member(wire, GROUP, level);
        net.data(source, GROUP);
        net.run(Duration::from_secs(10));
    }
    let sent = net.nodes.iter().zip(before).map(|(node, before)| node.sent - before);
    let most = sent.max().expect("there are some");
    // The hold of the last change, once a router on the way.
    net.run(Duration::from_secs(60));
    let copies = net.data(source, GROUP);
    let paths = Paths::new(&net, source);
    paths.check(&[GROUP]);
    assert_eq!(copies, paths.copies(GROUP));
    most
}

#[test]
fn with_a_thousand_routers_each_sends_no_more_than_with_forty() {
    let (few, many) = (most_sent(40), most_sent(1000));
    assert!(many <= few + few / 2, "{few} of 40, {many} of 1000");
    // Four links, each with 60 probes, 10 reports, and 60 changes at the most, acknowledged.
    assert!(many <= 4 * (60 + 10 + 2 * 60), "{many}");
}
