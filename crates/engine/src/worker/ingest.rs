//! What comes in at sources' sockets.

use std::os::fd::AsFd;

use outflow_packet::DropReason;
use outflow_relay::Priority;

use super::Worker;
use super::source::sender_reports;
use super::watch::Watched;
use crate::limits::RECEIVE_ROUNDS;
use crate::message::SocketRole;

impl Worker {
    /// Reads what has come to a source's socket.
    pub(super) fn receive(&mut self, token: usize, class: Priority) {
        for _ in 0..RECEIVE_ROUNDS / self.tasks.parts(class) as usize {
            let now = self.clock.now();
            let Some(Watched::Source { stream, socket, arena, sender }) = self.watch.get_mut(token) else {
                return;
            };
            let Some(stream) = self.streams.get_mut(*stream) else { return };
            stream.touched = true;
            let (core, source) = (&mut stream.core, &stream.source);
            let mut has_media = false;
            let (track, role, expected) = (socket.track, socket.role, socket.from);
            let received = self.receiver.receive(socket.socket.as_fd(), arena, |datagram| {
                if expected.is_some_and(|ip| ip != datagram.from.ip()) {
                    core.count_drop(DropReason::ForeignSource, 1);
                } else if datagram.truncated {
                    core.count_drop(DropReason::Oversized, 1);
                } else if role == SocketRole::Rtcp {
                    sender_reports(core, now, track, &datagram.bytes);
                    sender.sent(now, datagram.from, None);
                } else if !sender.may_send(now, datagram.from) {
                    core.count_drop(DropReason::ForeignSource, 1);
                } else {
                    let ssrc = outflow_rtp::ssrc(&datagram.bytes).filter(|_| role == SocketRole::Rtp);
                    if core.handle_media(now, track, datagram.bytes.into()) {
                        sender.sent(now, datagram.from, ssrc);
                        has_media = true;
                    }
                }
            });
            if let (true, Some(source)) = (has_media, source) {
                source.media_came(now);
            }
            match received {
                Ok((is_more, dropped)) => {
                    core.count_drop(DropReason::ReceiveBuffer, u64::from(dropped));
                    if !is_more {
                        return;
                    }
                }
                // Nothing left, or an error that a later packet will show again if it stays.
                Err(_) => return,
            }
        }
    }
}
