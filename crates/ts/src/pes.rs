//! PES packet headers (ISO/IEC 13818-1 section 2.4.3.6).

use bytes::{BufMut, BytesMut};
use outflow_media::Malformed;

use super::clock::PTS_MODULUS;

/// The longest PES packet behind its first six bytes.
pub const PES_BYTES_MAX: usize = 0xffff;

/// Stream id of audio, the first of 32.
pub const AUDIO_ID: u8 = 0xc0;

/// Stream id of video, the first of 16.
pub const VIDEO_ID: u8 = 0xe0;

/// Stream id of what has no other (`private_stream_1`).
pub const PRIVATE_ID: u8 = 0xbd;

/// Bytes up to and including `PES_packet_length`.
const SHORT_HEADER: usize = 6;

/// Bytes up to and including `PES_header_data_length`.
const LONG_HEADER: usize = 9;

const PTS_AT: usize = LONG_HEADER;
const DTS_AT: usize = PTS_AT + 5;

const fn malformed(offset: usize, reason: &'static str) -> Malformed {
    Malformed { format: "PES", offset, reason }
}

/// What a PES header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PesHeader {
    /// `stream_id` (table 2-22).
    pub stream_id: u8,
    /// When it is presented, in ticks of 90 kHz, 33 bits.
    pub pts: Option<u64>,
    /// When it is decoded, if that is not when it is presented.
    pub dts: Option<u64>,
    /// Bytes of the whole header. They may reach beyond what was parsed.
    pub header_bytes: usize,
    /// Bytes of the whole PES packet; `None` if it ends where the next one begins.
    pub packet_bytes: Option<usize>,
}

impl PesHeader {
    /// Reads the start of a PES packet. Behind the time stamps it may be cut off.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let &[0, 0, 1, stream_id, high, low, ref rest @ ..] = data else {
            return Err(malformed(0, "no PES start code, or cut off behind it"));
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let packet_bytes = (length > 0).then_some(SHORT_HEADER + length);
        let mut header =
            PesHeader { stream_id, pts: None, dts: None, header_bytes: SHORT_HEADER, packet_bytes };
        if !has_long_header(stream_id) {
            return Ok(header);
        }
        let &[marks, flags, header_length, ..] = rest else {
            return Err(malformed(data.len(), "cut off within its header"));
        };
        if marks & 0xc0 != 0x80 {
            return Err(malformed(SHORT_HEADER, "an MPEG-1 system header, or none"));
        }
        header.header_bytes = LONG_HEADER + usize::from(header_length);
        let fields = |from: usize| {
            if header.header_bytes < from + 5 {
                return Err(malformed(LONG_HEADER - 1, "its header has no room for its time stamps"));
            }
            let bytes = data.get(from..from + 5).ok_or(malformed(data.len(), "cut off in a time stamp"))?;
            Ok(time_stamp(bytes))
        };
        if flags & 0x80 != 0 {
            header.pts = Some(fields(PTS_AT)?);
        }
        if flags & 0xc0 == 0xc0 {
            header.dts = Some(fields(DTS_AT)?);
        }
        Ok(header)
    }

    /// When the packet is decoded, as far as it says.
    pub fn decoded_at(&self) -> Option<u64> {
        self.dts.or(self.pts)
    }

    /// Appends the header of a PES packet that begins with an access unit. `payload` is the number
    /// of bytes behind it; `None`, which only video may have, lets it end where the next begins.
    ///
    /// # Errors
    /// The packet would be longer than a PES packet can say.
    pub fn emit(
        stream_id: u8,
        pts: u64,
        dts: u64,
        payload: Option<usize>,
        out: &mut BytesMut,
    ) -> Result<(), Malformed> {
        let both = pts % PTS_MODULUS != dts % PTS_MODULUS;
        let fields: u8 = if both { 10 } else { 5 };
        let behind =
            payload.map_or(0, |p| p.saturating_add(LONG_HEADER - SHORT_HEADER + usize::from(fields)));
        let length = u16::try_from(behind)
            .map_err(|_| malformed(4, "the access unit is larger than a PES packet can be"))?;
        out.put_slice(&[0, 0, 1, stream_id]);
        out.put_u16(length);
        // Original marks, the payload begins with an access unit.
        out.put_slice(&[0x84, if both { 0xc0 } else { 0x80 }, fields]);
        out.put_slice(&time_stamp_bytes(if both { 3 } else { 2 }, pts));
        if both {
            out.put_slice(&time_stamp_bytes(1, dts));
        }
        Ok(())
    }
}

/// Changes the time stamps of the PES packet whose whole header stands at the start of `data`.
pub fn rewrite_time_stamps(data: &mut [u8], change: impl Fn(u64) -> u64) -> Result<(), Malformed> {
    let header = PesHeader::parse(data)?;
    for (at, stamp) in [(PTS_AT, header.pts), (DTS_AT, header.dts)] {
        if let Some(stamp) = stamp
            && let Some(bytes) = data.get_mut(at..at + 5)
        {
            let prefix = bytes[0] >> 4;
            bytes.copy_from_slice(&time_stamp_bytes(prefix, change(stamp)));
        }
    }
    Ok(())
}

/// Whether the header goes on behind its first six bytes (table 2-21).
const fn has_long_header(stream_id: u8) -> bool {
    !matches!(stream_id, 0xbc | 0xbe | 0xbf | 0xf0..=0xf2 | 0xf8 | 0xff)
}

/// 33 bits in five bytes, with three marker bits among them.
fn time_stamp(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|i| u64::from(bytes[i]));
    (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1
}

fn time_stamp_bytes(prefix: u8, stamp: u64) -> [u8; 5] {
    // Every part is masked to its bits, so the casts lose nothing.
    [
        prefix << 4 | (stamp >> 29 & 0x0e) as u8 | 1,
        (stamp >> 22 & 0xff) as u8,
        (stamp >> 14 & 0xfe) as u8 | 1,
        (stamp >> 7 & 0xff) as u8,
        (stamp << 1 & 0xfe) as u8 | 1,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = PTS_MODULUS - 1;

    fn emitted(pts: u64, dts: u64, payload: Option<usize>) -> BytesMut {
        let mut out = BytesMut::new();
        PesHeader::emit(VIDEO_ID, pts, dts, payload, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_emitted_is_read_again() {
        for (pts, dts) in [(0, 0), (END, END), (5, END), (0x1_5555_5555, 0xaaaa_aaaa)] {
            let header = PesHeader::parse(&emitted(pts, dts, Some(10))).unwrap();
            assert_eq!((header.pts, header.decoded_at()), (Some(pts), Some(dts)));
            assert_eq!(header.dts.is_some(), pts != dts);
            assert_eq!(header.header_bytes, if pts == dts { 14 } else { 19 });
            assert_eq!(header.packet_bytes, Some(header.header_bytes + 10));
        }
        assert_eq!(PesHeader::parse(&emitted(1, 1, None)).unwrap().packet_bytes, None);
    }

    #[test]
    fn a_header_of_ffmpeg_is_read() {
        // pts 129600, dts 126000.
        let bytes = [0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10, 0x31, 0, 7, 0xf4, 0x81, 0x11, 0, 7, 0xd8, 0x61];
        let header = PesHeader::parse(&bytes).unwrap();
        assert_eq!((header.pts, header.dts), (Some(129_600), Some(126_000)));
    }

    #[test]
    fn time_stamps_are_changed_in_place() {
        let mut bytes = emitted(END, END - 2, None);
        rewrite_time_stamps(&mut bytes, |t| (t + 3) % PTS_MODULUS).unwrap();
        assert_eq!(bytes, emitted(2, 0, None));
        let mut bytes = emitted(7, 7, Some(1));
        rewrite_time_stamps(&mut bytes, |t| t + 1).unwrap();
        assert_eq!(bytes, emitted(8, 8, Some(1)));
    }

    #[test]
    fn cut_off_and_foreign_headers_are_refused() {
        let whole = emitted(9, 8, None);
        for end in 0..whole.len() {
            assert!(PesHeader::parse(&whole[..end]).is_err(), "cut at {end}");
        }
        let mut small = whole.clone();
        small[8] = 9;
        assert!(PesHeader::parse(&small).is_err());
        assert!(PesHeader::parse(&[0, 0, 1, 0xe0, 0, 0, 0x0f, 0xff, 0xff]).is_err());
        assert!(rewrite_time_stamps(&mut [0, 0, 1, 0xe0], |t| t).is_err());
    }

    #[test]
    fn streams_without_time_have_a_short_header() {
        let header = PesHeader::parse(&[0, 0, 1, 0xbe, 0, 4]).unwrap();
        assert_eq!((header.header_bytes, header.packet_bytes, header.pts), (6, Some(10), None));
    }

    #[test]
    fn an_access_unit_that_does_not_fit_is_refused() {
        let mut out = BytesMut::new();
        assert!(PesHeader::emit(AUDIO_ID, 0, 0, Some(PES_BYTES_MAX - 8), &mut out).is_ok());
        out.clear();
        assert!(PesHeader::emit(AUDIO_ID, 0, 0, Some(PES_BYTES_MAX - 7), &mut out).is_err());
        assert!(PesHeader::emit(AUDIO_ID, 0, 0, Some(usize::MAX), &mut out).is_err());
        assert!(out.is_empty());
    }
}
