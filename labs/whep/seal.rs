//! What the seal alone takes: the library that the relay uses, in this process.

use std::hint::black_box;
use std::time::Instant;

use outflow_labs::figures::quantile;
use outflow_srtp::{Halves, Profile, Sealer};

/// Bytes of a packet of RTP before it is sealed.
const PACKET: usize = 1200;
const ROUNDS: usize = 15;
const PACKETS: u16 = 20_000;

/// Nanoseconds a packet.
pub(crate) struct Seal {
    /// By AES-128-GCM.
    pub(crate) short_ns: f64,
    /// By AES-256-GCM.
    pub(crate) long_ns: f64,
}

/// Measures both; medians of rounds in turns.
pub(crate) fn measure() -> Seal {
    let rounds: Vec<_> =
        (0..ROUNDS).map(|_| [Profile::AeadAes128Gcm, Profile::AeadAes256Gcm].map(round)).collect();
    let median = |at: usize| quantile(&rounds.iter().map(|round| round[at]).collect::<Vec<_>>(), 0.5);
    Seal { short_ns: median(0), long_ns: median(1) }
}

fn round(profile: Profile) -> f64 {
    let material = vec![7; Halves::bytes(profile)];
    let halves = Halves::new(profile, &material).expect("that length is wanted");
    let sealer = Sealer::new(profile, &halves.server);
    let mut packet = vec![0x80; PACKET + profile.overhead()];
    packet[1] = 96;
    let began = Instant::now();
    for number in 0..PACKETS {
        packet.truncate(PACKET);
        packet[2..4].copy_from_slice(&number.to_be_bytes());
        sealer.seal(black_box(&mut packet), 0, 0).expect("it is a packet of RTP");
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
}
