//! What comes in for the streams: from sources' sockets and from publishers' queues.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use outflow_media::Time;
use outflow_packet::DropReason;
use outflow_relay::Priority;
use outflow_rtp::rtcp;
use tokio::sync::mpsc::error::TryRecvError;

use super::{Watched, Worker};
use crate::limits::{INGEST_ROUND_PACKETS, RECEIVE_ROUNDS, SENDER_SILENCE};
use crate::message::{Ingest, SocketRole};

impl Worker {
    /// Reads what has come to a source's socket.
    pub(super) fn receive(&mut self, token: usize, class: Priority) {
        for _ in 0..RECEIVE_ROUNDS / self.parts(class) as usize {
            let now = self.clock.now();
            let Some(Watched::Source { stream, socket, arena, sender }) = self.watched.get_mut(token) else {
                return;
            };
            let Some(stream) = self.streams.get_mut(*stream) else { return };
            stream.touched = true;
            let core = &mut stream.core;
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
                    }
                }
            });
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

    /// Takes what publishers have put into their queues; what is left is taken in the next round.
    pub(super) fn drain_queues(&mut self) {
        for (_, stream) in &mut self.streams {
            let Some(queue) = stream.source.as_mut().and_then(|source| source.queue.as_mut()) else {
                continue;
            };
            let mut taken = 0;
            while taken < INGEST_ROUND_PACKETS {
                let now = self.clock.now();
                match queue.try_recv() {
                    Ok(Ingest::Media { track, bytes }) => {
                        stream.core.handle_media(now, track, bytes);
                    }
                    Ok(Ingest::Rtcp { track, bytes }) => sender_reports(&mut stream.core, now, track, &bytes),
                    Ok(Ingest::Dropped { reason, packets }) => {
                        stream.core.count_drop(reason, packets);
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
                taken += 1;
            }
            stream.touched |= taken > 0;
            if taken == INGEST_ROUND_PACKETS {
                self.bell.ring();
            }
        }
    }
}

/// The sender to a socket: one at a time, so that a second one cannot mix its packets in. One that
/// sends something that can be read has the place until it is silent.
#[derive(Debug, Default)]
pub(super) struct Sender {
    last: Option<(SocketAddr, Time)>,
    ssrc: Option<u32>,
}

impl Sender {
    fn may_send(&self, now: Time, from: SocketAddr) -> bool {
        self.last.is_none_or(|(sender, last)| sender == from || now.since(last) >= SENDER_SILENCE)
    }

    fn sent(&mut self, now: Time, from: SocketAddr, ssrc: Option<u32>) {
        (self.last, self.ssrc) = (Some((from, now)), ssrc);
    }

    /// Its address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.last.map(|(from, _)| from)
    }

    /// The SSRC of its last packet, if that was one of RTP.
    pub(super) fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }
}

fn sender_reports(core: &mut outflow_relay::Stream, now: Time, track: u8, bytes: &[u8]) {
    let told = rtcp::read(bytes, |report| {
        if let rtcp::Report::Sender(report) = report {
            core.handle_sender_report(now, track, report.ntp, report.rtp);
        }
    });
    if told.is_err() {
        core.count_drop(DropReason::Malformed, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_sender_waits_until_the_first_is_silent() {
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        let mut sender = Sender::default();
        assert!(sender.may_send(Time::ZERO, a) && sender.may_send(Time::ZERO, b));
        sender.sent(Time::ZERO, a, None);
        let soon = Time::from_millis(100);
        assert!(sender.may_send(soon, a) && !sender.may_send(soon, b));
        assert!(sender.may_send(Time::ZERO + SENDER_SILENCE, b));
    }
}
