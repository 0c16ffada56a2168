//! What a router does with packets that say what they are.

use std::collections::BTreeSet;

use outflow_media::{Codec, ExtensionKind, ExtensionMap, Track};
use outflow_packet::Level;
use outflow_packet::gmc::{Described, Mark, Ways};
use outflow_rtp::HEADER;

use crate::packets::packets;

const PORT: u16 = 5004;
/// The identifier of header extensions.
const EXTENSION: u8 = 5;

/// Packets go down ways; what is too short for one says other ways and levels. Each goes down a way once at most, and
/// what one says of itself can be written, read again, and taken out.
pub(crate) fn gmc(data: &[u8]) {
    let mut ways = Ways::default();
    ways.describe(described().into());
    for (index, packet) in packets(data).enumerate() {
        if packet.len() < HEADER {
            let level = |number: &u8| Level::new(number & 0x7f).unwrap_or_default();
            let wanted = packet.iter().enumerate().map(|(to, number)| (to as u32, level(number)));
            ways.set(wanted, |to| packet[to as usize] & 0x80 != 0);
            continue;
        }
        let mut down = BTreeSet::new();
        let port = if index % 2 == 0 { PORT } else { PORT + 2 };
        ways.judge(port, packet, |to, sent| {
            assert!(down.insert(to), "twice");
            std::hint::black_box(sent.map(|sent| sent.changes(packet)));
        });
        assert!(down.len() <= ways.len());
        let Some(mark) = Mark::read(packet) else { continue };
        let (header, behind) = packet.split_first_chunk::<HEADER>().expect("a mark is behind it");
        let Some(mut again) = mark.write(header, behind) else { continue };
        assert_eq!(Mark::read(&again), Some(mark));
        let out = Mark::take_out(&mut again);
        assert!(out > 0 && again.len() - out < packet.len());
    }
}

/// Tracks of all that says its layer by its format.
fn described() -> Described {
    let nothing = || ExtensionKind::Other(String::new());
    let tracks = [
        (Track::h264().codec, nothing()),
        (Codec::Jpeg2000, nothing()),
        (Codec::Av1, ExtensionKind::DependencyDescriptor),
        (Codec::Vp9, nothing()),
        (Codec::Vp8, nothing()),
        (Codec::Other { video: true }, ExtensionKind::FrameMarking),
    ];
    let mut described = Described::default();
    for (payload_type, (codec, kind)) in (96..).zip(tracks) {
        let map = ExtensionMap { id: EXTENSION, kind, direction: String::new(), attributes: String::new() };
        let track = Track { payload_type, codec, extensions: vec![map], ..Track::h264() };
        described.add(PORT + 2, track);
    }
    described
}
