//! Packets of programs behind links: any bytes, at any link.

use core::time::Duration;

use bytes::Bytes;
use outflow_emulate::{between, link};
use outflow_media::Time;
use outflow_sim::network::{Network, World};

/// The longest that is waited between two packets, in milliseconds.
const APART_MS: u64 = 255;

/// An end among simulated nodes of all kinds.
const NODES: &str = r#"
    seed = 1
    duration = "1 s"
    [links]
    [ends.a]
    [ends.b]
    [segments.lan]
    joins = ["a", "b", "router", "host", "sender", "receiver", "relay", "directory"]
    [segments.wan]
    joins = ["router", "other"]
    [nodes.router]
    kind = "router"
    [nodes.other]
    kind = "router"
    above = "router"
    [nodes.host]
    kind = "host"
    wants = [{ group = "239.1.1.1" }, { group = "ff1e::1", level = 2 }]
    [nodes.sender]
    kind = "poc-sender"
    to = "receiver"
    [nodes.receiver]
    kind = "poc-receiver"
    [nodes.relay]
    kind = "tree-relay"
    directory = "directory"
    wants = [{}]
    [nodes.directory]
    kind = "tree-directory"
"#;

/// A line is a link, or the word `nodes`; behind it come packets, each with its end, the time before it, and its length
/// in front. What goes in comes out, or is counted; and the same comes out both times.
pub(crate) fn emulate(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (line, packets) = (String::from_utf8_lossy(&data[..end]), &data[end + 1..]);
    if line == "nodes" {
        let network = Network::parse(NODES).expect("valid");
        return assert_eq!(among_nodes(&network, packets), among_nodes(&network, packets));
    }
    match link(&line) {
        Ok(model) => {
            let network = between(["a", "b"], model.clone(), model, 1);
            assert_eq!(played(&network, packets), played(&network, packets));
        }
        Err(error) => assert!(error.to_string().contains(": "), "it says what to do"),
    }
}

/// What comes to ends in the second behind the last packet.
fn among_nodes(network: &Network, packets: &[u8]) -> Vec<(usize, Time, Bytes)> {
    let mut world = World::new(network, &[], 0).expect("it was checked");
    let (now, _) = sent(&mut world, packets);
    world.advance(now + Duration::from_secs(1));
    world.arrived().map(|one| (one.port, one.at, one.packet)).collect()
}

/// Sends packets: when the last one was, and how many there were.
fn sent(world: &mut World, mut rest: &[u8]) -> (Time, u64) {
    let (mut now, mut sent) = (Time::ZERO, 0_u64);
    while let [end, after, high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (packet, others) = behind.split_at(length);
        now = now + Duration::from_millis(u64::from(*after).min(APART_MS));
        world.handle(now, usize::from(end & 1), Bytes::copy_from_slice(packet));
        (rest, sent) = (others, sent + 1);
    }
    (now, sent)
}

fn played(network: &Network, packets: &[u8]) -> Vec<(usize, Time, Bytes)> {
    let mut emulation = World::new(network, &[], 0).expect("it was checked");
    let (_, sent) = sent(&mut emulation, packets);
    // Nothing is sent any more: all that travels arrives. Outages come and go for ever, but nothing waits for them.
    while let Some(at) = emulation.next_at() {
        emulation.advance(at);
    }
    let arrived: Vec<_> = emulation.arrived().map(|one| (one.port, one.at, one.packet)).collect();
    let report = emulation.report();
    let of_links = report.links.iter().map(|(_, link)| link);
    let (gone, more) = of_links
        .fold((0, 0), |(gone, more), link| (gone + link.drops.total() + link.lost, more + link.copied));
    let held: u64 = emulation.held() as u64;
    assert_eq!(sent + more, arrived.len() as u64 + gone + report.malformed + report.full + held);
    arrived
}
