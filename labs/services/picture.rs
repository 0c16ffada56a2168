//! The paper's images, and how they are sent: whole, in one datagram that IP cuts into fragments, or
//! as raw video in RTP packets (RFC 4175).

use outflow_rtp::{HEADER, PlainHeader};

/// Bytes of an RTP packet with which it fills an Ethernet frame.
const PACKET_MAX: usize = 1500 - 28;
/// The extended sequence number, and the header of a part of a line (RFC 4175, section 4.2).
const EXTENDED: usize = 2;
const PART: usize = 6;
const PAYLOAD_TYPE: u8 = 96;

/// An image of the paper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picture {
    /// Bytes of the PPM file.
    pub(crate) bytes: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// "An Approach Towards Enabling Intelligent Networking Services", tables 1 and 2; the sizes are those
/// of images of four to three.
pub(crate) const PICTURES: [Picture; 4] = [
    Picture { bytes: 57_616, width: 160, height: 120 },
    Picture { bytes: 14_436, width: 80, height: 60 },
    Picture { bytes: 3_636, width: 40, height: 30 },
    Picture { bytes: 936, width: 20, height: 15 },
];

/// Datagrams of one image, one behind the other: all of `segment` bytes but the last.
#[derive(Debug, Clone)]
pub(crate) struct Datagrams {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segment: usize,
    rtp: bool,
    sequence: u16,
    timestamp: u32,
}

impl Picture {
    fn pixels(&self) -> Vec<u8> {
        (0..self.width * self.height * 3).map(|at| (at * 7919 % 251) as u8).collect()
    }

    /// The PPM file, with a comment that gives it the size that it has in the paper.
    pub(crate) fn whole(&self) -> Datagrams {
        let pixels = self.pixels();
        let numbers = format!("{} {}\n255\n", self.width, self.height);
        let room = self.bytes - pixels.len() - 3 - numbers.len();
        let comment = if room > 1 { format!("#{}\n", "-".repeat(room - 2)) } else { "\n".repeat(room) };
        let mut bytes = format!("P6\n{comment}{numbers}").into_bytes();
        bytes.extend(pixels);
        Datagrams { segment: bytes.len(), bytes, rtp: false, sequence: 0, timestamp: 0 }
    }

    /// The pixels in RTP: as many whole lines in a packet as fit a frame.
    pub(crate) fn packets(&self) -> Datagrams {
        let row = 3 * self.width;
        let lines = ((PACKET_MAX - HEADER - EXTENDED) / (PART + row)).min(self.height);
        let pixels = self.pixels();
        let rows: Vec<(u16, &[u8])> = (0..).zip(pixels.chunks_exact(row)).collect();
        let mut bytes = Vec::new();
        for part in rows.chunks(lines) {
            bytes.extend([0; HEADER + EXTENDED]);
            for (index, (line, row)) in part.iter().enumerate() {
                let more = if index + 1 < part.len() { 0x8000 } else { 0 };
                for value in [row.len() as u16, *line, more] {
                    bytes.extend(value.to_be_bytes());
                }
            }
            part.iter().for_each(|(_, row)| bytes.extend(*row));
        }
        let segment = HEADER + EXTENDED + lines * (PART + row);
        Datagrams { bytes, segment, rtp: true, sequence: 0, timestamp: 0 }
    }

    /// What describes the packets to a program that receives them at this port.
    pub(crate) fn description(&self, port: u16) -> String {
        format!(
            "v=0\no=- 0 0 IN IP4 0.0.0.0\ns=-\nc=IN IP4 0.0.0.0\nt=0 0\n\
             m=video {port} RTP/AVP {PAYLOAD_TYPE}\na=rtpmap:{PAYLOAD_TYPE} raw/90000\n\
             a=fmtp:{PAYLOAD_TYPE} sampling=RGB;width={};height={};depth=8;colorimetry=BT601-5\n",
            self.width, self.height
        )
    }
}

impl Datagrams {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.segment)
    }

    /// Whether they are RTP packets.
    pub(crate) fn is_rtp(&self) -> bool {
        self.rtp
    }

    /// How many came together, by their bytes. Whole images come one by one, and gray ones may be
    /// smaller than they were.
    pub(crate) fn datagrams(&self, bytes: usize) -> usize {
        if self.rtp { bytes.div_ceil(self.segment) } else { 1 }
    }

    /// The image as it is sent next.
    pub(crate) fn next(&mut self) -> &[u8] {
        if self.rtp {
            let count = self.count();
            for (index, packet) in self.bytes.chunks_mut(self.segment).enumerate() {
                let header = PlainHeader {
                    marker: index + 1 == count,
                    payload_type: PAYLOAD_TYPE,
                    sequence: self.sequence,
                    timestamp: self.timestamp,
                    ssrc: 0x0F10_0F10,
                };
                packet[..HEADER].copy_from_slice(&header.emit());
                self.sequence = self.sequence.wrapping_add(1);
            }
            self.timestamp = self.timestamp.wrapping_add(3000);
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::image::ppm;
    use outflow_rtp::payload::raw_video::RawVideo;

    use super::*;

    #[test]
    fn images_have_the_sizes_of_the_paper_and_the_packets_all_their_pixels() {
        for picture in &PICTURES {
            let whole = picture.whole();
            assert_eq!((whole.bytes.len(), whole.count()), (picture.bytes, 1));
            let header = ppm::Header::parse(&whole.bytes).expect("valid").expect("complete");
            assert_eq!((header.shape.width, header.shape.height), (picture.width, picture.height));
            assert_eq!(header.bytes + header.shape.bytes(), picture.bytes);

            let packets = picture.packets();
            let parts = packets.bytes.chunks(packets.segment).flat_map(|packet| {
                let raw = RawVideo::new_checked(&packet[HEADER..]).expect("valid");
                raw.parts().map(|part| part.bytes.len()).collect::<Vec<_>>()
            });
            assert_eq!(parts.sum::<usize>(), header.shape.bytes());
            assert!(packets.segment <= PACKET_MAX && packets.count() <= 41, "{}", packets.count());
        }
    }
}
