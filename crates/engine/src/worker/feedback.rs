//! What receivers say of a stream goes up: from replicas to the worker that has the source, and from there to the
//! publisher's front, or, where the worker itself reads the source's sockets, to the sender by RTCP.

use std::net::SocketAddr;

use outflow_relay::Feedback;
use outflow_rtp::rtcp::key_frame_request;

use super::Worker;
use super::reports::CNAME;
use super::watch::{Watch, Watched};
use crate::message::SocketRole;

impl Worker {
    /// Hands on what receivers say of a stream.
    pub(super) fn hand_up(&mut self, index: usize, feedback: Feedback) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        stream.queues.hand_up(feedback);
        if let Feedback::Reception(reception) = feedback {
            stream.reported = Some((self.clock.now(), reception));
        }
        let Some(source) = &mut stream.source else { return };
        if let Some((track, number)) = source.hand_up(feedback) {
            ask_sender(&self.watch, source.sockets(), track, number);
        }
    }
}

/// Asks the sender of a track for a key frame, if it is known where that is.
fn ask_sender(watch: &Watch, sockets: &[usize], track: u8, number: u8) {
    let of = |role| {
        sockets.iter().find_map(|token| match watch.get(*token) {
            Some(Watched::Source { socket, sender, .. }) if (socket.track, socket.role) == (track, role) => {
                Some((socket, sender))
            }
            _ => None,
        })
    };
    let (Some((_, media)), Some((reports, heard))) = (of(SocketRole::Rtp), of(SocketRole::Rtcp)) else {
        return;
    };
    let Some((from, ssrc)) = media.address().zip(media.ssrc()) else { return };
    // RFC 3550, section 11: the port above that of the packets, unless its reports come from elsewhere.
    let above = || from.port().checked_add(1).map(|port| SocketAddr::new(from.ip(), port));
    if let Some(to) = heard.address().or_else(above) {
        let request = key_frame_request(u32::from(number) | 1 << 31, ssrc, number, CNAME);
        // It is asked again.
        let _ = reports.socket.send_to(&request, to);
    }
}
