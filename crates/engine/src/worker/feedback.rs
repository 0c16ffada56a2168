//! What receivers say of a stream goes up: from replicas to the worker that has the source, and from there to the
//! publisher's front, or, where the worker itself reads the source's sockets, to the sender by RTCP.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use outflow_relay::Feedback;
use outflow_rtp::rtcp::key_frame_request;

use super::rtcp::CNAME;
use super::{Watched, Worker};
use crate::bell::Bell;
use crate::message::{Command, SocketRole, StreamId};

/// The way from a replica to the stream that it is one of.
#[derive(Debug)]
pub struct Upward {
    pub(super) stream: StreamId,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) bell: Arc<Bell>,
}

impl Upward {
    fn send(&self, feedback: Feedback) {
        // A worker that has ended has no source any more.
        if self.commands.send(Command::Feedback { stream: self.stream, feedback }).is_ok() {
            self.bell.ring();
        }
    }
}

impl Worker {
    /// Receivers of a replica say this.
    pub(super) fn handle_feedback(&mut self, id: StreamId, feedback: Feedback) {
        self.with(id, |stream| stream.core.handle_feedback(feedback));
    }

    /// Hands on what receivers say of a stream.
    pub(super) fn hand_up(&mut self, index: usize, feedback: Feedback) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        stream.inlets.iter().for_each(|inlet| inlet.upward.send(feedback));
        let Some(source) = &mut stream.source else { return };
        if source.sockets.is_empty() {
            // It is said again, as long as it holds.
            let _ = source.feedback.try_send(feedback);
        } else if let Feedback::KeyFrame { track } = feedback {
            source.requests = source.requests.wrapping_add(1);
            let (sockets, number) = (source.sockets.clone(), source.requests);
            self.ask_sender(&sockets, track, number);
        }
    }

    /// Asks the sender of a track for a key frame, if it is known where that is.
    fn ask_sender(&self, sockets: &[usize], track: u8, number: u8) {
        let of = |role| {
            sockets.iter().find_map(|token| match self.watched.get(*token) {
                Some(Watched::Source { socket, sender, .. })
                    if (socket.track, socket.role) == (track, role) =>
                {
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
}
