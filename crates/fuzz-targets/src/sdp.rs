//! Session descriptions.

use std::net::{IpAddr, Ipv4Addr};

use outflow_rtp::sdp;
use outflow_rtp::sdp::Session;

/// What is read is written, and must be read again as the same tracks.
pub(crate) fn sdp(data: &[u8]) {
    let Ok(read) = sdp::parse(data) else { return };
    let session = Session {
        name: &read.name,
        id: 1,
        version: 1,
        origin: IpAddr::V4(Ipv4Addr::LOCALHOST),
        destination: read.media[0].address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        ttl: Some(1),
        ports: &[5004, 5006],
        controls: true,
        levels: read.levels.unwrap_or(0),
    };
    let format = read.format();
    let written = sdp::emit(&format, &session);
    let again = sdp::parse(written.as_bytes()).expect("what was written can be read");
    assert_eq!(again.format().tracks(), format.tracks(), "{written}");
    assert_eq!(again.levels, read.levels, "{written}");
}
