//! What packets are known by, whichever relay sends them.

use std::hash::Hasher;

use minicbor::{Decode, Encode};
use outflow_client::Packet;
use siphasher::sip::SipHasher13;

/// Bytes of a packet of a transport stream.
const TS_PACKET: usize = 188;
/// Bytes that are looked at, at the beginning of a payload and at its end: those in between differ rarely where
/// these are alike.
const ENDS: usize = 64;
/// The same of each packet of a transport stream.
const TS_ENDS: usize = 12;
/// Bytes of a header of RTP without extensions.
const RTP_HEADER: usize = 12;

/// A packet, by a part of what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(transparent)]
pub(super) struct Mark(#[n(0)] u64);

impl Mark {
    /// That of a packet of RTP, by its timestamp, too, or of a datagram of a transport stream.
    pub(super) fn of(packet: &Packet, is_rtp: bool) -> Self {
        let mut hasher = SipHasher13::new();
        write(&mut hasher, packet, is_rtp);
        Mark(hasher.finish())
    }
}

/// Marks packets that follow each other. Many datagrams of a transport stream are alike: they are known by those
/// before them, too.
#[derive(Debug, Clone, Copy, Default, Encode, Decode)]
#[cbor(transparent)]
pub(super) struct Chain(#[n(0)] [u64; 2]);

impl Chain {
    /// The mark of the next packet.
    pub(super) fn mark(&mut self, packet: &Packet, is_rtp: bool) -> Mark {
        if is_rtp {
            return Mark::of(packet, is_rtp);
        }
        let mut hasher = SipHasher13::new();
        write(&mut hasher, packet, is_rtp);
        let own = hasher.finish();
        self.0.iter().for_each(|before| hasher.write_u64(*before));
        self.0 = [self.0[1], own];
        Mark(hasher.finish())
    }
}

fn write(hasher: &mut SipHasher13, packet: &Packet, is_rtp: bool) {
    hasher.write_usize(packet.bytes.len());
    if is_rtp {
        let (header, payload) = packet.bytes.split_at(RTP_HEADER.min(packet.bytes.len()));
        // Marker and payload type; sequence numbers differ.
        hasher.write(header.get(1..2).unwrap_or_default());
        hasher.write(header.get(4..8).unwrap_or_default());
        return ends(hasher, payload, ENDS);
    }
    for part in packet.bytes.chunks(TS_PACKET) {
        // Without the continuity counter.
        hasher.write(part.get(..3).unwrap_or_default());
        hasher.write_u8(part.get(3).map_or(0, |flags| flags & 0xf0));
        ends(hasher, part.get(4..).unwrap_or_default(), TS_ENDS);
    }
}

fn ends(hasher: &mut SipHasher13, bytes: &[u8], most: usize) {
    hasher.write(&bytes[..bytes.len().min(most)]);
    hasher.write(&bytes[bytes.len().saturating_sub(most)..]);
}
