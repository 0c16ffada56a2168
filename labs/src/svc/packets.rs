//! From frames to RTP and back.

use anyhow::{Context, Result, ensure};
use outflow_rtp::{PlainHeader, RtpHeader};

use super::{Coding, Encoded, Plan, RATE, av1, vp9};

/// The timestamp of the first picture; the next ones are 0 soon.
pub const FIRST_TIMESTAMP: u32 = u32::MAX - 10 * TICKS_PER_PICTURE;
/// By how much the next one's is higher.
pub const TICKS_PER_PICTURE: u32 = 90_000 / RATE;
/// The first sequence number.
const FIRST_SEQUENCE: u16 = 65_000;
/// The identifier of the dependency descriptor.
pub(super) const EXTENSION: u8 = 4;
/// Where extensions stand, and what those of two bytes in front of each value begin with (RFC 8285, section 4.3).
pub(super) const EXTENSION_AT: usize = outflow_rtp::HEADER;
pub(super) const EXTENDED_LONG: u16 = 0x1000;
const PAYLOAD_TYPE: u8 = 98;
const SSRC: u32 = 0x5afe_1a7e;

/// What stands behind the plain header of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// The value of the dependency descriptor; empty if there is none.
    pub(super) extension: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// The stream as it comes to this port.
pub fn description(encoded: &Encoded, port: u16) -> String {
    let name = if encoded.coding.is_av1() { "AV1" } else { "VP9" };
    let extension = match encoded.coding {
        Coding::Av1 => format!("a=extmap:{EXTENSION} {}\na=extmap-allow-mixed\n", av1::DESCRIPTOR),
        _ => String::new(),
    };
    format!(
        "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 0.0.0.0\nt=0 0\nm=video {port} RTP/AVP {PAYLOAD_TYPE}\n\
         a=rtpmap:{PAYLOAD_TYPE} {name}/90000\n{extension}"
    )
}

/// The packets of each picture.
pub fn packets(encoded: &Encoded) -> Vec<Vec<Vec<u8>>> {
    let numbers: Vec<usize> = (0..encoded.frames.len()).collect();
    let pictures = numbers.chunk_by(|a, b| encoded.picture_of(*a) == encoded.picture_of(*b));
    let mut sequence = FIRST_SEQUENCE;
    let of_picture = |numbers: &[usize]| {
        let bodies: Vec<Body> = numbers.iter().flat_map(|number| bodies(encoded, *number)).collect();
        let last = bodies.len() - 1;
        let picture = encoded.picture_of(numbers[0]) as u32;
        let timestamp = FIRST_TIMESTAMP.wrapping_add(picture * TICKS_PER_PICTURE);
        let packets = bodies.iter().enumerate().map(|(at, body)| {
            sequence = sequence.wrapping_add(1);
            let marker = at == last;
            let header = PlainHeader { marker, payload_type: PAYLOAD_TYPE, sequence, timestamp, ssrc: SSRC };
            packet(&header, body)
        });
        packets.collect()
    };
    pictures.map(of_picture).collect()
}

fn bodies(encoded: &Encoded, number: usize) -> Vec<Body> {
    match encoded.coding {
        Coding::Av1 | Coding::Av1Bare => av1::bodies(encoded, number),
        Coding::Vp9Flexible | Coding::Vp9Group => vp9::bodies(encoded, number),
    }
}

/// With the extension in the shorter form where it fits (RFC 8285, section 4).
fn packet(header: &PlainHeader, body: &Body) -> Vec<u8> {
    let mut packet = header.emit().to_vec();
    if let Some(most) = body.extension.len().checked_sub(1) {
        let (profile, head) = match most {
            0..16 => (0xbede_u16, vec![EXTENSION << 4 | most as u8]),
            _ => (EXTENDED_LONG, vec![EXTENSION, body.extension.len() as u8]),
        };
        let mut elements = [&head, &body.extension[..]].concat();
        elements.resize(elements.len().next_multiple_of(4), 0);
        packet[0] |= 0x10;
        packet.extend(profile.to_be_bytes());
        packet.extend((elements.len() as u16 / 4).to_be_bytes());
        packet.extend(elements);
    }
    packet.extend(&body.payload);
    packet
}

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its number in the plan.
    pub number: usize,
    /// Its bytes, as they came from the encoder.
    pub bytes: Vec<u8>,
    /// The RTP marker stands at its end.
    pub is_marked: bool,
}

/// Puts frames together from the packets that a receiver got.
///
/// # Errors
/// There are gaps in the sequence numbers, frames are not whole, or a marker stands within one or not at the end of
/// a picture.
pub fn frames(coding: Coding, plan: &Plan, packets: &[Vec<u8>]) -> Result<Vec<Carried>> {
    let headers =
        packets.iter().map(|packet| RtpHeader::new_checked(packet)).collect::<Result<Vec<_>, _>>()?;
    for pair in headers.windows(2) {
        let (before, next) = (pair[0].sequence(), pair[1].sequence());
        ensure!(next == before.wrapping_add(1), "{before} is followed by {next}");
    }
    let mut all = Vec::new();
    for whole in headers.chunk_by(|a, b| a.timestamp() == b.timestamp()) {
        let since = whole[0].timestamp().wrapping_sub(FIRST_TIMESTAMP);
        let picture = (since / TICKS_PER_PICTURE) as usize;
        ensure!(whole.last().is_some_and(RtpHeader::marker), "picture {picture} ends without the marker");
        for packets in whole.split_inclusive(RtpHeader::marker) {
            let payloads: Vec<&[u8]> = packets.iter().map(RtpHeader::payload).collect();
            let found = if coding.is_av1() { av1::frames(&payloads) } else { vp9::frames(&payloads) };
            let found = found.with_context(|| format!("picture {picture}"))?;
            let count = found.len();
            for (at, (spatial, bytes)) in found.into_iter().enumerate() {
                let number = picture * usize::from(plan.spatial) + usize::from(spatial);
                ensure!(number < plan.frames.len(), "picture {picture}: there is none");
                all.push(Carried { number, bytes, is_marked: at + 1 == count });
            }
        }
    }
    Ok(all)
}

impl Encoded {
    fn picture_of(&self, number: usize) -> usize {
        self.plan.frames[number].picture
    }
}
