//! The sender to a source's socket.

use std::net::SocketAddr;

use outflow_media::Time;

use crate::limits::SENDER_SILENCE;

/// The sender to a socket: one at a time, so that a second one cannot mix its packets in. One that
/// sends something that can be read has the place until it is silent.
#[derive(Debug, Default)]
pub(super) struct Sender {
    last: Option<(SocketAddr, Time)>,
    ssrc: Option<u32>,
}

impl Sender {
    /// Whether packets from there are let in now.
    pub(super) fn may_send(&self, now: Time, from: SocketAddr) -> bool {
        self.last.is_none_or(|(sender, last)| sender == from || now.since(last) >= SENDER_SILENCE)
    }

    /// Something came from there.
    pub(super) fn sent(&mut self, now: Time, from: SocketAddr, ssrc: Option<u32>) {
        (self.last, self.ssrc) = (Some((from, now)), ssrc);
    }

    /// It as it is saved: its address, when it sent last, and its SSRC.
    pub(super) fn save(&self) -> Option<(String, u64, Option<u32>)> {
        self.last.map(|(from, at)| (from.to_string(), at.as_nanos(), self.ssrc))
    }

    /// The same as it was.
    pub(super) fn restore(saved: Option<(String, u64, Option<u32>)>) -> Self {
        let parsed =
            saved.and_then(|(from, at, ssrc)| Some((from.parse().ok()?, Time::from_nanos(at), ssrc)));
        parsed.map_or_else(Sender::default, |(from, at, ssrc)| Sender { last: Some((from, at)), ssrc })
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
