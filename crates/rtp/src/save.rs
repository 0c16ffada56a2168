//! What goes on in another process: tracks and receptions as values of their own, in CBOR (RFC 8949) with numbered
//! fields. One that is not known is passed over.

use minicbor::{Decode, Encode};
use outflow_media::{Codec, ExtensionKind, ExtensionMap, Track};

use crate::sdp;

/// A track, as a session description tells it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedTrack {
    /// RTP payload type.
    #[n(0)]
    pub payload_type: u8,
    /// Ticks a second.
    #[n(1)]
    pub clock_rate: u32,
    /// Audio channels, or 0.
    #[n(2)]
    pub channels: u8,
    /// `a=rtpmap` encoding name.
    #[n(3)]
    pub encoding: String,
    /// `a=fmtp` parameters.
    #[n(4)]
    pub fmtp: String,
    /// A picture.
    #[n(5)]
    pub video: bool,
    /// Encrypted (RFC 3711).
    #[n(6)]
    pub encrypted: bool,
    /// Header extensions.
    #[n(7)]
    pub extensions: Vec<SavedExtension>,
}

/// Which header extension an identifier stands for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedExtension {
    /// The identifier.
    #[n(0)]
    pub id: u8,
    /// The URI that names it.
    #[n(1)]
    pub uri: String,
    /// The direction.
    #[n(2)]
    pub direction: String,
    /// What is said behind the URI.
    #[n(3)]
    pub attributes: String,
}

/// How the packets of a source came in (RFC 3550 appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedReception {
    /// The source.
    #[n(0)]
    pub ssrc: u32,
    /// The highest sequence number, with how often it wrapped in the upper half.
    #[n(1)]
    pub highest: u32,
    /// The first sequence number.
    #[n(2)]
    pub base: u32,
    /// Packets received.
    #[n(3)]
    pub received: u64,
    /// Relative transit time, in ticks, of the newest packet.
    #[n(4)]
    pub transit: Option<u32>,
    /// Interarrival jitter, in ticks, times 16.
    #[n(5)]
    pub jitter: u32,
    /// Packets expected, and received, up to the last report.
    #[n(6)]
    pub reported: (u64, u64),
    /// Middle 32 bits of the last sender report's NTP time, and when it came, in nanoseconds.
    #[n(7)]
    pub sender_report: Option<(u32, u64)>,
}

impl From<&Track> for SavedTrack {
    fn from(track: &Track) -> Self {
        let extension = |map: &ExtensionMap| SavedExtension {
            id: map.id,
            uri: map.kind.uri().to_owned(),
            direction: map.direction.clone(),
            attributes: map.attributes.clone(),
        };
        SavedTrack {
            payload_type: track.payload_type,
            clock_rate: track.clock_rate,
            channels: track.channels,
            encoding: track.encoding.clone(),
            fmtp: track.fmtp.clone(),
            video: track.codec.is_video(),
            encrypted: track.codec.is_srtp(),
            extensions: track.extensions.iter().map(extension).collect(),
        }
    }
}

impl From<SavedTrack> for Track {
    fn from(saved: SavedTrack) -> Self {
        let SavedTrack { video, encoding, fmtp, .. } = saved;
        let extension = |map: SavedExtension| ExtensionMap {
            id: map.id,
            kind: ExtensionKind::of(&map.uri),
            direction: map.direction,
            attributes: map.attributes,
        };
        Track {
            codec: match saved.encrypted {
                true => Codec::Srtp { video },
                false => sdp::codec(&encoding, &fmtp, video),
            },
            payload_type: saved.payload_type,
            clock_rate: saved.clock_rate,
            channels: saved.channels,
            fmtp,
            encoding,
            extensions: saved.extensions.into_iter().map(extension).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Format;

    use super::*;

    const DESCRIPTION: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
        m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
        a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtoCgPRA,aM4PyA==\r\n\
        a=extmap:4/sendonly urn:ietf:params:rtp-hdrext:framemarking\r\n\
        m=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/2\r\n\
        a=fmtp:97 mode=AAC-hbr;config=1190;sizelength=13;indexlength=3;indexdeltalength=3\r\n\
        m=audio 0 RTP/SAVP 98\r\na=rtpmap:98 opus/48000/2\r\n";

    #[test]
    fn a_track_is_the_same_afterwards() {
        let format = sdp::parse(DESCRIPTION.as_bytes()).expect("a description").format();
        let Format::Rtp(tracks) = format else { panic!("no RTP") };
        assert_eq!(tracks.len(), 3);
        for track in tracks {
            let bytes = minicbor::to_vec(SavedTrack::from(&track)).expect("memory does not fail");
            let saved: SavedTrack = minicbor::decode(&bytes).expect("what was written");
            assert_eq!(Track::from(saved), track);
        }
    }
}
