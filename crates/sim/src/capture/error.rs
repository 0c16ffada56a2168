//! Why a capture is refused, and why packets of it are in no flow.

use std::collections::BTreeMap;
use std::io;

use outflow_rtp::sdp::SdpError;

use crate::limits::CAPTURE_BYTES_MAX;

/// Packets that are in no flow, by the reason.
pub type Skipped = BTreeMap<&'static str, u64>;

/// Why a capture is refused.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("cannot read {name}: {error}")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is larger than what is kept in memory.
    #[error(
        "{name} has more than {} MiB: cut it, for example by `editcap -c 1000000`, and take a part",
        CAPTURE_BYTES_MAX >> 20
    )]
    TooLong {
        /// The file.
        name: String,
    },
    /// It is nothing that is read here.
    #[error(
        "{name} is no capture (pcap, pcapng) and no MPEG transport stream; a compressed one is to be unpacked \
         first, and what other programs recorded may be turned into pcapng by `editcap`"
    )]
    UnknownFormat {
        /// The file.
        name: String,
    },
    /// It has no UDP packets.
    #[error("{name} has no UDP packets{}: capture with `tcpdump -i any -w FILE udp`", counts(.skipped))]
    NoTraffic {
        /// The file.
        name: String,
        /// What it has instead.
        skipped: Skipped,
    },
    /// A transport stream without time.
    #[error(
        "{name} has less than two clock references (PCR), so nobody knows when its packets are due: write it \
         anew, for example by `ffmpeg -i FILE -c copy -f mpegts NEW`"
    )]
    NoClock {
        /// The file.
        name: String,
    },
    /// The session description cannot be read.
    #[error("the session description of {name} is refused: {error}")]
    Sdp {
        /// The capture.
        name: String,
        /// Why.
        error: SdpError,
    },
    /// The session description is that of something else.
    #[error(
        "nothing in {name} is RTP as its session description says (UDP ports {ports:?}): give the one of the \
         session that was captured, or none"
    )]
    OtherSdp {
        /// The capture.
        name: String,
        /// The ports of its media, 0 if they were agreed on elsewhere.
        ports: Vec<u16>,
    },
}

/// What was skipped, for the end of a sentence.
fn counts(skipped: &Skipped) -> String {
    let parts: Vec<_> = skipped.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}
