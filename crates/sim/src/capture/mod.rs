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
mod error;
mod flow;
mod gather;
mod guess;
mod live;
mod records;
mod tagging;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ts_file;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use outflow_rtp::sdp;
use outflow_rtp::sdp::MediaDescription;

pub use error::{CaptureError, Skipped};
pub use flow::{CapturedFlow, CapturedPacket, FlowKind};
pub use live::LiveFlow;

use crate::limits::CAPTURE_BYTES_MAX;
use gather::{Gathered, gather};

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// What went from one address to another, in the order of their first packets. There is at least one.
    pub flows: Vec<CapturedFlow>,
    /// How many packets are in no flow, by the reason.
    pub skipped: Skipped,
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
