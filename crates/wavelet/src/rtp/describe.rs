//! What a description says of a wavelet video (RFC 5371, section 6; RFC 5372, section 4).

use core::net::{IpAddr, Ipv4Addr};

use outflow_media::{Codec, Format, Track};
use outflow_rtp::sdp;
use outflow_rtp::sdp::Session;

use crate::picture::{Sampling, Shape};

/// Payload type of the packets: the first of the dynamic ones (RFC 3551, section 6).
pub const PAYLOAD_TYPE: u8 = 96;

/// Ticks a second of the timestamps (RFC 5371, section 6.1).
pub const CLOCK_RATE: u32 = 90_000;

/// The track of a wavelet video. Where its shape is not known, what is said of that is left out.
pub fn track(shape: Option<Shape>) -> Track {
    let shape = shape.map_or_else(String::new, |Shape { width, height, sampling }| {
        let sampling = match sampling {
            Sampling::Mono => "GRAYSCALE",
            Sampling::C420 => "YCbCr-4:2:0",
            Sampling::C422 => "YCbCr-4:2:2",
            Sampling::C444 => "YCbCr-4:4:4",
        };
        format!("sampling={sampling}; width={width}; height={height}; ")
    });
    Track {
        extensions: Vec::new(),
        codec: Codec::Jpeg2000,
        payload_type: PAYLOAD_TYPE,
        clock_rate: CLOCK_RATE,
        // Main headers can be recovered, and priorities are those of layers.
        fmtp: format!("{shape}mhc=1; pt=layer"),
        encoding: "JPEG2000".to_owned(),
        ..Track::mp2t()
    }
}

/// The session description of a wavelet video that goes to these ports of an address.
pub fn description(shape: Option<Shape>, destination: IpAddr, ports: &[u16]) -> String {
    let session = Session {
        name: "wavelet video",
        id: 0,
        version: 0,
        origin: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        destination,
        ttl: None,
        ports,
        controls: false,
        levels: 0,
    };
    sdp::emit(&Format::Rtp(vec![track(shape)]), &session)
}
