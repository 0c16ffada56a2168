//! A packet, and what goes along with it.

use bytes::Bytes;
use outflow_media::{Tag, Time};
use outflow_rtp::HEADER;
use outflow_ts::Findings;

/// One packet on its way: refcounted, immutable bytes and what they mean.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The bytes as the branch's receivers get them, see [`outflow_media::Format`].
    pub bytes: Bytes,
    /// What they mean.
    pub tag: Tag,
    /// When they came in.
    pub arrived: Time,
}

impl Packet {
    /// The fixed part of its RTP header: `apart`, if it stands there, or its first bytes; `None` if it has
    /// none.
    pub fn rtp_header<'p>(&'p self, apart: &'p [u8; HEADER]) -> Option<&'p [u8; HEADER]> {
        if apart[0] != 0 {
            return Some(apart);
        }
        self.bytes.first_chunk().filter(|header| header[0] >> 6 == 2)
    }

    /// The same to be changed, without touching bytes that others may hold: it stands in `apart` from then on.
    pub fn own_rtp_header<'a>(&mut self, apart: &'a mut [u8; HEADER]) -> Option<&'a mut [u8; HEADER]> {
        if apart[0] == 0 {
            *apart = *self.rtp_header(apart)?;
            self.bytes = self.bytes.slice(HEADER..);
        }
        Some(apart)
    }
}

/// A packet with all that a branch needs to know of it.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The packet.
    pub packet: Packet,
    /// The RTP header that goes before a transport stream's packet when it travels in RTP (RFC 2250, section 2).
    /// All zero for other streams.
    pub rtp_header: [u8; 12],
    /// What a receiver needs before anything else if it begins with the frame that this packet
    /// makes known to be a key frame.
    pub preamble: Option<Bytes>,
    /// What its reader found in the packets of a transport stream, where that goes along: nothing is missing
    /// between it and the datagram that was read before it. What gets it without that reads it by itself.
    pub found: Option<Findings>,
}

impl Parsed {
    /// Gives it another sequence number, without touching bytes that others may hold; one without an RTP header stays as
    /// it is.
    pub fn set_sequence(&mut self, number: u16) {
        if let Some(header) = self.packet.own_rtp_header(&mut self.rtp_header) {
            outflow_rtp::set_sequence(header, number);
        }
    }
}
