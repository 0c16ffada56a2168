//! How a viewer's packets are covered by repair packets, and how these go.

use std::net::SocketAddr;

use outflow_media::Time;
use outflow_media::ecn::Mark;

use super::Viewer;
use super::track::{Sent, Unsent};

impl Viewer {
    /// A packet goes for the first time, as it is before it is sealed.
    pub(super) fn cover(&mut self, now: Time, unsent: &Unsent, packet: &[u8]) {
        let (Some(fec), Some(track)) = (&mut self.fec, self.tracks.get(unsent.track)) else { return };
        if track.sending.ssrc != fec.media() || !matches!(unsent.way, Sent::First(_)) {
            return;
        }
        let of = (track.is_key(unsent.media.timestamp), unsent.media.marker);
        if let Some(bytes) = fec.cover(now, (packet, track.sending.elements.transport), of) {
            fec.settle(self.pace.repeats(now, bytes, false));
        }
    }

    /// Writes the repair packet that is to go behind what is in `out`, and seals it, if there is one.
    pub(super) fn seal_repair(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SocketAddr, Mark)> {
        let (to, fec) = (self.to?, self.fec.as_deref_mut().filter(|fec| fec.is_due())?);
        let track = self.tracks.iter().find(|track| track.sending.ssrc == fec.media())?;
        let (id, way) = (track.sending.elements.transport?, self.way.as_mut()?);
        let number = way.sent(now, fec.bytes());
        let start = out.len();
        let rollovers = fec.write((id, number), out);
        if self.session.seal(out, start, rollovers).is_err() {
            out.truncate(start);
            return None;
        }
        Some((to, Mark::None))
    }
}
