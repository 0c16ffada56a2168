//! Captures as traffic: what was recorded of a network, or a transport stream in a file, as packets that the
//! simulator sends again, each with the tag that the relay would have given it.
//!
//! Read are pcap, pcapng and MPEG-TS. What does not go through UDP is skipped, and counted. What goes from one
//! address and port to another is a flow, and a flow is one of three kinds, by what is in it, because a capture
//! says nothing of that itself:
//!
//! - A transport stream, if at least half of its datagrams are whole transport packets, bare or in RTP. Its
//!   datagrams mix frames, and all is track 0; each is told the frame that the live relay tells it.
//! - RTP, if packets of a source come with numbers in sequence (as in RFC 3550, appendix A.1). Each pair of source
//!   and payload type is a track, in the order in which they come, those that are described first. What their payload is says the session
//!   description, if one is given; else the payload type, if it is a static one; else it is H.264 or H.265 if all
//!   of it can be that, and it shows where decoding begins (see `guess.rs`).
//! - Data, in all other cases.
//!
//! Packets that are not understood (RTCP, RTP of unknown codecs, anything else) stand alone. Datagrams that their
//! sender's kernel was to cut up (UDP GSO) are one large packet in a capture made at the sender: capture at a
//! receiver.

mod classify;
mod datagram;
mod guess;
mod records;
mod tagging;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ts_file;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use outflow_media::{Format, Tag, Time};
use outflow_rtp::sdp;
use outflow_rtp::sdp::{MediaDescription, SdpError};

use crate::limits::{CAPTURE_BYTES_MAX, CAPTURE_FLOWS_MAX};
use datagram::Datagram;

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// What went from one address to another, in the order of their first packets. There is at least one.
    pub flows: Vec<CapturedFlow>,
    /// How many packets are in no flow, by the reason.
    pub skipped: Skipped,
}

/// Packets that are in no flow, by the reason.
pub type Skipped = BTreeMap<&'static str, u64>;

/// What went from one address to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFlow {
    /// `10.0.0.1:5004 > 10.0.0.2:6000`, or the name of the file.
    pub name: String,
    /// What it is.
    pub kind: FlowKind,
    /// What its packets are, for the relay; `None` of data. Packets that stand alone, because they are none of
    /// that, are of the track behind its tracks.
    pub format: Option<Format>,
    /// What it carries, in words.
    pub carries: String,
    /// Its packets, by their time. There is at least one.
    pub packets: Vec<CapturedPacket>,
    /// Packets of its tracks that could not be read as what they should be, and so stand alone.
    pub not_understood: u64,
    /// Packets of which the capture has only the beginning. Their size is that on the wire.
    pub cut_off: u64,
}

/// What a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKind {
    /// RTP, but not with a transport stream.
    Rtp,
    /// A transport stream, bare or in RTP.
    Ts,
    /// Anything else.
    Data,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When it came, since the first packet of all flows.
    pub at: Time,
    /// Bytes of the IP packet, headers included, on the wire.
    pub bytes: usize,
    /// What it means.
    pub tag: Tag,
}

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

/// A flow while it is gathered.
#[derive(Debug)]
struct Gathered<'a> {
    source: SocketAddr,
    destination: SocketAddr,
    packets: Vec<Recorded<'a>>,
}

/// A datagram as it was recorded.
#[derive(Debug, Clone, Copy)]
struct Recorded<'a> {
    /// Nanoseconds, from whenever the capture counts.
    nanos: i128,
    bytes: usize,
    payload: &'a [u8],
    is_cut_off: bool,
}

impl Capture {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or there is no traffic in it.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::open_with(path, None)
    }

    /// The same, with the text of the session description (SDP) that says what the RTP in it is.
    ///
    /// # Errors
    /// As [`Self::open`]; the description cannot be read, or nothing in the capture is what it says.
    pub fn open_with(path: &Path, sdp: Option<&str>) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let file = File::open(path);
        let read = file.and_then(|file| file.take(CAPTURE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) => Self::parse_with(&bytes.into(), &name, sdp),
            Err(error) => Err(CaptureError::Unreadable { name, error }),
        }
    }

    /// Reads a capture; its name is for messages, and that of its flow if it is a transport stream.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn parse(bytes: &Bytes, name: &str) -> Result<Self, CaptureError> {
        Self::parse_with(bytes, name, None)
    }

    /// The same, with the text of a session description.
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub fn parse_with(bytes: &Bytes, name: &str, sdp: Option<&str>) -> Result<Self, CaptureError> {
        let name = name.to_owned();
        if bytes.len() > CAPTURE_BYTES_MAX {
            return Err(CaptureError::TooLong { name });
        }
        let media = match sdp.map(|sdp| sdp::parse(sdp.as_bytes())) {
            None => Vec::new(),
            Some(Ok(description)) => description.media,
            Some(Err(error)) => return Err(CaptureError::Sdp { name, error }),
        };
        let mut skipped = Skipped::new();
        if let Some(records) = records::Records::of(bytes) {
            let gathered = gather(records, &mut skipped);
            return Self::of(name, gathered, skipped, &media);
        }
        let flow = ts_file::flow(bytes, name)?;
        Ok(Capture { flows: vec![flow], skipped })
    }

    fn of(
        name: String,
        gathered: Vec<Gathered<'_>>,
        skipped: Skipped,
        media: &[MediaDescription],
    ) -> Result<Self, CaptureError> {
        let first = gathered.iter().flat_map(|flow| &flow.packets).map(|packet| packet.nanos).min();
        let Some(first) = first else { return Err(CaptureError::NoTraffic { name, skipped }) };
        let mut is_described = media.is_empty();
        let mut flows = Vec::with_capacity(gathered.len());
        for mut flow in gathered {
            // Several queues, or files put together, may not be in order. What has the same time keeps its place.
            flow.packets.sort_by_key(|packet| packet.nanos);
            let media = media.iter().filter(|media| classify::is_to(media, flow.source, flow.destination));
            let class = classify::Class::of(&flow.packets, &media.collect::<Vec<_>>());
            is_described |= class.is_described();
            flows.push(tagging::flow(&flow, class, first));
        }
        if !is_described {
            return Err(CaptureError::OtherSdp {
                name,
                ports: media.iter().map(|media| media.port).collect(),
            });
        }
        Ok(Capture { flows, skipped })
    }
}

/// The datagrams of a capture, by flow.
fn gather<'a>(mut records: records::Records<'a>, skipped: &mut Skipped) -> Vec<Gathered<'a>> {
    let mut known: BTreeMap<(SocketAddr, SocketAddr), usize> = BTreeMap::new();
    let mut flows: Vec<Gathered<'a>> = Vec::new();
    while let Some(record) = records.next(skipped) {
        let Datagram { source, destination, bytes, payload } = match datagram::read(record.link, record.data)
        {
            Ok(datagram) => datagram,
            Err(reason) => {
                *skipped.entry(reason).or_default() += 1;
                continue;
            }
        };
        let packet =
            Recorded { nanos: record.nanos, bytes, payload, is_cut_off: record.data.len() < record.bytes };
        let at = *known.entry((source, destination)).or_insert(flows.len());
        if at == flows.len() && at < CAPTURE_FLOWS_MAX {
            flows.push(Gathered { source, destination, packets: Vec::new() });
        }
        match flows.get_mut(at) {
            Some(flow) => flow.packets.push(packet),
            None => *skipped.entry("of a flow too many").or_default() += 1,
        }
    }
    flows
}
