//! Session descriptions (RFC 8866): what RTSP DESCRIBE and ANNOUNCE say, what `.sdp` files hold, and what peers of WebRTC
//! offer and are answered.

mod answer;
mod codec;
mod emit;
mod offer;
mod parse;

pub use answer::{Accepted, AcceptedPayload, AcceptedSource, Answer};
pub use codec::codec;
pub use emit::{Session, emit};
pub use offer::{Direction, Offer, OfferError, OfferedMedia, OfferedPayload, OfferedSource, Setup};
pub use parse::parse;

use std::net::IpAddr;

use outflow_media::format::{Format, Track};

use crate::limits::{SDP_BYTES_MAX, SDP_TRACKS_MAX};

/// Outflow's own attribute of a media: how many quality levels it has, as far as is known. Others are to ignore
/// attributes that they do not know (RFC 8866 section 5.13).
pub const LEVELS: &str = "x-outflow-levels";

/// A session with its media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// `s=`, empty if there is none.
    pub name: String,
    /// `a=control:` of the session (RFC 2326 appendix C.1.1).
    pub control: Option<String>,
    /// The media that are carried by RTP, in their order. There is at least one.
    pub media: Vec<MediaDescription>,
    /// How many quality levels the stream has, 1 or more, if that is said ([`LEVELS`]).
    pub levels: Option<u8>,
}

/// One media of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaDescription {
    /// Codec, payload type and clock.
    pub track: Track,
    /// `a=control:` of the media, to be resolved against the base URL.
    pub control: Option<String>,
    /// Where it is sent: `c=` of the media or of the session, if it is an address other than
    /// the unspecified one.
    pub address: Option<IpAddr>,
    /// UDP port; 0 if the transport is agreed on elsewhere, as in RTSP.
    pub port: u16,
    /// The only source to listen to, from `a=source-filter: incl` (RFC 4570).
    pub source: Option<IpAddr>,
}

impl Description {
    /// The format of a stream that has all media as its tracks. A description with transport
    /// stream in RTP is a transport stream; what stands beside it is left out.
    pub fn format(&self) -> Format {
        let is_ts = |media: &MediaDescription| media.track.codec == outflow_media::Codec::Mp2t;
        if self.media.iter().any(is_ts) {
            Format::Ts
        } else {
            Format::Rtp(self.media.iter().map(|media| media.track.clone()).collect())
        }
    }
}

/// Why a description is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SdpError {
    /// It is longer than [`SDP_BYTES_MAX`].
    #[error("the session description has {0} bytes, more than the {SDP_BYTES_MAX} that are read")]
    TooLong(usize),
    /// It describes more than [`SDP_TRACKS_MAX`] tracks.
    #[error("the session description has more than {SDP_TRACKS_MAX} tracks")]
    TooManyTracks,
    /// A line is not as RFC 8866 wants it.
    #[error("the session description cannot be read: {0}")]
    Syntax(String),
    /// There is no media that RTP carries.
    #[error("the session description has no media over RTP/AVP or RTP/AVPF")]
    NoTracks,
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use outflow_media::{Codec, ExtensionKind, ExtensionMap};

    use super::*;

    const TEXT: &str = "v=0\r\ns=x\r\na=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid\r\n\
        m=video 5004 RTP/AVP 98\r\na=rtpmap:98 AV1/90000\r\n\
        a=extmap:12/sendonly https://aomediacodec.github.io/av1-rtp-spec/\
        #dependency-descriptor-rtp-header-extension\r\n\
        a=extmap:3 urn:ietf:params:rtp-hdrext:framemarking long form\r\n\
        a=extmap:4096 urn:offer\r\na=extmap:0 urn:none\r\na=extmap:7\r\n\
        m=video 5006 RTP/AVP 99\r\na=rtpmap:99 VP9/90000\r\n\
        m=video 5008 RTP/AVP 100\r\na=rtpmap:100 vp8/90000\r\n";

    #[test]
    fn header_extensions_are_read_and_written_back() {
        let description = parse(TEXT.as_bytes()).unwrap();
        let codecs: Vec<_> = description.media.iter().map(|media| media.track.codec.clone()).collect();
        assert_eq!(codecs, [Codec::Av1, Codec::Vp9, Codec::Vp8]);
        let map = |id, kind, direction: &str, attributes: &str| ExtensionMap {
            id,
            kind,
            direction: direction.to_owned(),
            attributes: attributes.to_owned(),
        };
        let extensions = &description.media[0].track.extensions;
        let expected = [
            map(12, ExtensionKind::DependencyDescriptor, "sendonly", ""),
            map(3, ExtensionKind::FrameMarking, "", "long form"),
        ];
        assert_eq!(*extensions, expected, "those of the media come before those of the session");
        let mid = ExtensionKind::Other("urn:ietf:params:rtp-hdrext:sdes:mid".to_owned());
        assert_eq!(description.media[1].track.extensions, [map(3, mid, "", "")]);

        let anywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let session = Session {
            name: "x",
            id: 1,
            version: 1,
            origin: anywhere,
            destination: anywhere,
            ttl: None,
            ports: &[],
            controls: false,
            levels: 0,
        };
        let text = emit(&description.format(), &session);
        assert_eq!(parse(text.as_bytes()).unwrap().format(), description.format());
        assert_eq!(text.matches("a=extmap-allow-mixed\r\n").count(), 3);
        assert_eq!(parse(text.as_bytes()).unwrap().levels, None);

        let text = emit(&description.format(), &Session { levels: 5, ..session });
        let again = parse(text.as_bytes()).unwrap();
        assert_eq!((again.levels, again.format()), (Some(5), description.format()));
        let ts = emit(&Format::Ts, &Session { levels: 3, ..session });
        assert_eq!(parse(ts.as_bytes()).unwrap().levels, Some(3));
    }

    #[test]
    fn levels_are_a_number_that_a_byte_holds_or_not_said() {
        let levels = |value: &str| {
            let text = format!("{TEXT}a=x-outflow-levels:{value}\r\n");
            parse(text.as_bytes()).expect("a description").levels
        };
        assert_eq!([" 7 ", "255"].map(levels), [Some(7), Some(255)]);
        assert_eq!(["", "0", "256", "-1", "+3", "x"].map(levels), [None; 6]);
    }
}
