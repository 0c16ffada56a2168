//! What user space makes of any packet, for a fuzzer. No I/O.

use outflow_packet::gmc::Ways;
use outflow_routing::forwarding::{Head, Output, Unfit, thin};

use super::packet::{finish, fragment};
use crate::sys::Offload;

/// What the kernel says beside a packet that it hands over, and how long a packet may be where it goes.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// Where a checksum begins that is to be completed, and where in that part it belongs, in bytes.
    pub checksum: Option<(usize, usize)>,
    /// Bytes of each part of a merged packet.
    pub merged: Option<usize>,
    /// The longest packet of the interface, in bytes.
    pub mtu: usize,
}

/// The packets that go on for one that came, down all ways; none if it is not fit.
pub fn forwarded(packet: &mut [u8], beside: Beside, ways: &mut Ways) -> Vec<Vec<u8>> {
    let Ok(head) = Head::parse(packet) else { return Vec::new() };
    Head::lower_ttl(packet);
    let offload = Offload { checksum: beside.checksum, merged: beside.merged };
    let mut made = Vec::new();
    let Ok(parts) = finish(&head, packet, offload, &mut made) else { return Vec::new() };
    let whole = match parts.is_empty() {
        true => vec![packet[..head.total_bytes()].to_vec()],
        false => parts.into_iter().map(|part| made[part].to_vec()).collect(),
    };
    whole.iter().flat_map(|one| thinned(one, ways)).flat_map(|copy| short(copy, beside.mtu)).collect()
}

fn thinned(packet: &[u8], ways: &mut Ways) -> Vec<Vec<u8>> {
    let (mut made, mut copies) = (Vec::new(), Vec::new());
    let left_out = thin(ways, packet, &mut made, |copy| copies.push(copy));
    assert_eq!(left_out + copies.len(), ways.len(), "each way is counted once");
    let bytes = copies.into_iter().map(|copy| match copy {
        Output::AsItIs(_) => packet.to_vec(),
        Output::Made(_, range) => made[range].to_vec(),
    });
    bytes.collect()
}

/// A packet, or its fragments if it is longer than an interface allows.
fn short(packet: Vec<u8>, mtu: usize) -> Vec<Vec<u8>> {
    if packet.len() <= mtu {
        return vec![packet];
    }
    let mut made = Vec::new();
    let parts = fragment(&packet, mtu, &mut made).unwrap_or_default();
    parts.into_iter().map(|part| made[part].to_vec()).collect()
}

/// Whether a router would take a packet, but for its hops.
pub fn is_whole(packet: &[u8]) -> bool {
    match Head::parse(packet) {
        Ok(head) => head.total_bytes() == packet.len(),
        Err(why) => why == Unfit::Ttl,
    }
}
