//! Parameter sets that a description tells, as a packet: for receivers that were told others.

use outflow_media::Codec;

use super::{h264, h265};

/// NAL unit type of a STAP-A, with the highest importance (RFC 6184, section 5.7.1).
const STAP_A: u8 = 0x60 | h264::STAP_A;
/// The two bytes of an aggregation packet's header: type 48, layer 0, temporal id 0 (RFC 7798, section 4.4.2).
const AGGREGATION: [u8; 2] = [h265::AGGREGATION << 1, 1];

/// The RTP payload that has all parameter sets of a description: a STAP-A, or an aggregation packet. `None`
/// where the description has not all of them, as then they come with the video.
pub fn parameter_sets(codec: &Codec) -> Option<Vec<u8>> {
    match codec {
        Codec::H264 { sps: Some(sps), pps: Some(pps) } => aggregate(&[STAP_A], &[sps, pps]),
        Codec::H265 { vps: Some(vps), sps: Some(sps), pps: Some(pps) } => {
            aggregate(&AGGREGATION, &[vps, sps, pps])
        }
        _ => None,
    }
}

/// Each unit behind its size in 16 bits; `None` if one is larger than that.
fn aggregate(header: &[u8], units: &[&[u8]]) -> Option<Vec<u8>> {
    let mut payload = header.to_vec();
    for unit in units {
        payload.extend_from_slice(&u16::try_from(unit.len()).ok()?.to_be_bytes());
        payload.extend_from_slice(unit);
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_media::{Kind, Tag, Track};

    use super::*;
    use crate::PlainHeader;
    use crate::payload::RtpReader;

    fn read(codec: Codec, payload: &[u8]) -> Tag {
        let track = Track { codec, payload_type: 96, ..Track::mp2t() };
        let header = PlainHeader { marker: false, payload_type: 96, sequence: 1, timestamp: 2, ssrc: 3 };
        let packet = [&header.emit()[..], payload].concat();
        RtpReader::new(0, &track).read(&packet).expect("it is well-formed")
    }

    #[test]
    fn readers_take_it_for_parameter_sets() {
        let (sps, pps) = (Some(Bytes::from_static(&[0x67, 1, 2])), Some(Bytes::from_static(&[0x68, 3])));
        let codec = Codec::H264 { sps, pps };
        let payload = parameter_sets(&codec).expect("all are there");
        assert_eq!(payload, [0x78, 0, 3, 0x67, 1, 2, 0, 2, 0x68, 3]);
        assert_eq!(read(codec, &payload).kind, Kind::Header);
        let unit = |kind: u8| Some(Bytes::from(vec![kind << 1, 1, 9]));
        let codec = Codec::H265 { vps: unit(32), sps: unit(33), pps: unit(34) };
        let payload = parameter_sets(&codec).expect("all are there");
        assert_eq!(payload[..5], [0x60, 1, 0, 3, 0x40]);
        assert_eq!(read(codec, &payload).kind, Kind::Header);
    }

    #[test]
    fn without_all_of_them_there_is_none() {
        let sps = Some(Bytes::from_static(&[0x67]));
        assert_eq!(parameter_sets(&Codec::H264 { sps, pps: None }), None);
        assert_eq!(parameter_sets(&Codec::Vp8), None);
    }
}
