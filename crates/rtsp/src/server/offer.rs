//! What a SETUP offers: transports, ports and channels.

use rtsp_types::{StatusCode, headers};

use super::reply::Reply;
use crate::{Pair, Request, Transport};

/// The transports that a SETUP offers.
pub(super) fn offered(request: &Request) -> Vec<Transport> {
    Transport::parse_all(request.header(&headers::TRANSPORT).map_or("", |value| value.as_str()))
}

/// The ports that a transport over UDP is to name.
pub(super) fn client_port(asked: &Transport) -> Result<Pair<u16>, Reply> {
    asked.client_port.ok_or_else(|| Reply::error(StatusCode::BadRequest, "client_port= is missing"))
}

/// Refuses channels that are one and the same, or that another track has.
pub(super) fn check_channels(
    asked: Pair<u8>,
    mut others: impl Iterator<Item = Pair<u8>>,
) -> Result<(), Reply> {
    let is_asked = |channel: u8| channel == asked.rtp || channel == asked.rtcp;
    if asked.rtp == asked.rtcp || others.any(|other| is_asked(other.rtp) || is_asked(other.rtcp)) {
        return Err(Reply::error(StatusCode::BadRequest, "these channels are another track's"));
    }
    Ok(())
}
