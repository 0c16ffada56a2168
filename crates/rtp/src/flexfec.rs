//! FlexFEC: repair packets, each the exclusive or of some packets of one source, of which any one that is lost comes back.
//!
//! They are those that browsers understand: draft-ietf-payload-flexible-fec-scheme-03 (`flexfec-03`) with a mask that
//! says which packets, not the form of RFC 8627. What is written on a packet after it was covered, as the number of the
//! transport, is covered as zeros: receivers take the same for granted (as libwebrtc does, in `ZeroMutableExtensions`).

use core::ops::Range;

use outflow_media::Malformed;

use super::{HEADER, RtpHeader};

/// What `a=rtpmap` calls them.
pub const ENCODING: &str = "flexfec-03";

/// Ticks a second of their clock: that of pictures.
pub const CLOCK_RATE: u32 = 90_000;

/// How far apart the packets may be that one repair packet covers: what a mask has bits for.
pub const SPAN: u16 = 109;

/// Bytes in front of the mask: what is recovered of headers, the source, the first number.
const FIXED: usize = 18;

/// The parts of a mask: their bytes, of which the first bit says whether it is the last one, and how far their bits stand
/// from the end.
const PARTS: [(usize, u32); 3] = [(2, 113), (4, 82), (8, 19)];

/// The bit of the first packet in a mask; those behind it follow downwards.
const FIRST: u128 = 1 << 127;

/// The packets of one source that a repair packet covers, until it is written.
#[derive(Debug, Clone, Default)]
pub struct Parity {
    source: u32,
    /// The number of the first one.
    first: u16,
    /// From [`FIRST`] downwards.
    mask: u128,
    /// The bytes of headers that are recovered: two, the length behind the header, the timestamp.
    head: [u8; 8],
    /// Of what is behind the headers.
    body: Vec<u8>,
}

impl Parity {
    /// Covers a packet as it is before it is sealed, but for elements of its header extension with the identifier
    /// `changes`, of which zeros are. Answers whether it does: not if it is no packet, or of another source than those that
    /// are covered, or stands before the first of them or further than [`SPAN`] behind it, or is covered already.
    pub fn cover(&mut self, packet: &[u8], changes: Option<u8>) -> bool {
        let Ok(header) = RtpHeader::new_checked(packet) else { return false };
        let Ok(length) = u16::try_from(packet.len() - HEADER) else { return false };
        if self.mask == 0 {
            (self.source, self.first) = (header.ssrc(), header.sequence());
        }
        let bit = bit(header.sequence().wrapping_sub(self.first)).filter(|bit| self.mask & bit == 0);
        let Some(bit) = bit.filter(|_| header.ssrc() == self.source) else { return false };
        self.mask |= bit;
        add(&mut self.head, &mut self.body, (packet, length), changes.and_then(|id| element(&header, id)));
        true
    }

    /// How many packets are covered.
    pub fn packets(&self) -> u32 {
        self.mask.count_ones()
    }

    /// Bytes of the repair packet, without its header of RTP.
    pub fn bytes(&self) -> usize {
        FIXED + mask_bytes(self.mask) + self.body.len()
    }

    /// Writes the payload of the repair packet behind what is in `out` (section 4.2 of the draft); it says nothing if no
    /// packet is covered.
    pub fn write(&self, out: &mut Vec<u8>) {
        let [flags, marker, ..] = self.head;
        // The first two bits say that there is a mask.
        out.extend_from_slice(&[flags & 0x3f, marker]);
        out.extend_from_slice(&self.head[2..]);
        // One source.
        out.extend_from_slice(&[1, 0, 0, 0]);
        out.extend_from_slice(&self.source.to_be_bytes());
        out.extend_from_slice(&self.first.to_be_bytes());
        let length = mask_bytes(self.mask);
        let mut written = 0;
        for (bytes, shift) in PARTS {
            if written == length {
                break;
            }
            written += bytes;
            let last = 1 << (8 * bytes - 1);
            let part = self.mask >> shift & (last - 1) | if written == length { last } else { 0 };
            out.extend_from_slice(&part.to_be_bytes()[size_of::<u128>() - bytes..]);
        }
        out.extend_from_slice(&self.body);
    }

    /// Covers nothing any more. Its room stays.
    pub fn clear(&mut self) {
        (self.mask, self.head) = (0, [0; 8]);
        self.body.clear();
    }
}

/// A packet's bit in a mask; none if it is too far from the first one.
fn bit(distance: u16) -> Option<u128> {
    (distance < SPAN).then(|| FIRST >> distance)
}

/// Bytes that a mask takes.
fn mask_bytes(mask: u128) -> usize {
    match mask.trailing_zeros() {
        113.. => 2,
        82.. => 6,
        _ => 14,
    }
}

/// A mask, and its bytes.
fn mask(data: &[u8]) -> Result<(u128, usize), &'static str> {
    let (mut mask, mut read) = (0, 0);
    for (bytes, shift) in PARTS {
        let part = data.get(read..read + bytes).ok_or("shorter than its header")?;
        let part = part.iter().fold(0_u128, |part, byte| part << 8 | u128::from(*byte));
        let last = 1 << (8 * bytes - 1);
        mask |= (part & (last - 1)) << shift;
        read += bytes;
        if part & last != 0 {
            return if mask == 0 { Err("of no packet") } else { Ok((mask, read)) };
        }
    }
    Err("the mask does not end")
}

/// Where the element of this identifier stands in a packet.
fn element(header: &RtpHeader<'_>, id: u8) -> Option<Range<usize>> {
    let mut elements = header.extensions();
    let data = elements.find(|element| element.id == id)?.data;
    // They end where the payload begins.
    let end = header.payload_offset() - elements.left();
    Some(end - data.len()..end)
}

/// Adds a packet, with the length behind its header, to what was added, but for `left_out`, of which zeros are.
fn add(
    head: &mut [u8; 8],
    body: &mut Vec<u8>,
    (packet, length): (&[u8], u16),
    left_out: Option<Range<usize>>,
) {
    let [one, two] = length.to_be_bytes();
    let own = [packet[0], packet[1], one, two, packet[4], packet[5], packet[6], packet[7]];
    xor(head, &own);
    let behind = &packet[HEADER..];
    if body.len() < behind.len() {
        body.resize(behind.len(), 0);
    }
    xor(body, behind);
    if let Some(range) = left_out {
        xor(&mut body[range.start - HEADER..], &packet[range]);
    }
}

fn xor(all: &mut [u8], bytes: &[u8]) {
    all.iter_mut().zip(bytes).for_each(|(all, byte)| *all ^= byte);
}

/// The payload of a repair packet.
#[derive(Debug, Clone, Copy)]
pub struct Repair<'a> {
    data: &'a [u8],
    mask: u128,
    /// Where what is behind the headers begins.
    body: usize,
}

impl<'a> Repair<'a> {
    /// Checks that there is a header, of one source, with a mask that is not empty.
    ///
    /// # Errors
    /// It is no repair packet, or of another form.
    pub fn new_checked(data: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = |offset, reason| Malformed { format: "FlexFEC", offset, reason };
        let behind = data.get(FIXED..).ok_or(malformed(data.len(), "shorter than its header"))?;
        if data[0] >> 6 != 0 {
            return Err(malformed(0, "not of the form with a mask"));
        }
        if data[8] != 1 {
            return Err(malformed(8, "not of one source"));
        }
        let (mask, bytes) = mask(behind).map_err(|reason| malformed(FIXED, reason))?;
        Ok(Repair { data, mask, body: FIXED + bytes })
    }

    /// The source of the packets that it covers.
    pub fn source(&self) -> u32 {
        u32::from_be_bytes([self.data[12], self.data[13], self.data[14], self.data[15]])
    }

    /// The numbers of the packets that it covers.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + use<> {
        let (first, mask) = (u16::from_be_bytes([self.data[16], self.data[17]]), self.mask);
        let covered = (0..SPAN).filter(move |distance| bit(*distance).is_some_and(|bit| mask & bit != 0));
        covered.map(move |distance| first.wrapping_add(distance))
    }

    /// The packet that has not come, if that is one alone. `packet` answers those that have, as they were before they were
    /// sealed; `changes` is as with [`Parity::cover`]. None, too, if what they come to is no packet.
    pub fn recover<'p>(
        &self,
        changes: Option<u8>,
        packet: impl Fn(u16) -> Option<&'p [u8]>,
    ) -> Option<Vec<u8>> {
        let mut lacking = self.numbers().filter(|number| packet(*number).is_none());
        let (number, others) = (lacking.next()?, lacking.next());
        if others.is_some() {
            return None;
        }
        let (mut head, mut body) = ([0; 8], self.data[self.body..].to_vec());
        head.copy_from_slice(&self.data[..8]);
        for came in self.numbers().filter_map(&packet) {
            let header = RtpHeader::new_checked(came).ok().filter(|header| header.ssrc() == self.source())?;
            let length = u16::try_from(came.len() - HEADER).ok()?;
            add(&mut head, &mut body, (came, length), changes.and_then(|id| element(&header, id)));
        }
        let [flags, marker, high, low, timestamp @ ..] = head;
        let body = body.get(..usize::from(u16::from_be_bytes([high, low])))?;
        let mut recovered = vec![0x80 | flags & 0x3f, marker];
        recovered.extend_from_slice(&number.to_be_bytes());
        recovered.extend_from_slice(&timestamp);
        recovered.extend_from_slice(&self.source().to_be_bytes());
        recovered.extend_from_slice(body);
        RtpHeader::new_checked(&recovered).is_ok().then_some(recovered)
    }
}

#[cfg(test)]
mod tests;
