//! Goodbyes: a receiver that the relay ends is told by RTCP (RFC 3550, section 6.6).

use outflow_media::Time;
use outflow_relay::{SinkKey, Stream};
use outflow_rtp::rtcp;

use super::Worker;
use super::reports::{CNAME, senders_of};

impl Worker {
    /// Tells a receiver that gets RTP that nothing more comes.
    pub(super) fn say_goodbye(&mut self, index: usize, key: SinkKey) {
        let now = self.clock.now();
        let Some(stream) = self.streams.get_mut(index) else { return };
        let goodbyes = goodbyes_to(&stream.core, now, key);
        let Some(Some(sink)) = stream.sinks.get_mut(key.0) else { return };
        for (track, bytes) in goodbyes {
            self.paths.send_rtcp(&self.watch, now, &mut sink.out, (track, &bytes));
        }
    }
}

/// What a sink is told, by track.
fn goodbyes_to(core: &Stream, now: Time, key: SinkKey) -> Vec<(u8, Vec<u8>)> {
    let by_rtp = core.sink(key).filter(|sink| sink.spec.encapsulation.is_rtp());
    let Some(branch) = by_rtp.and_then(|sink| sink.branch) else { return Vec::new() };
    senders_of(core, now, branch).map(|(track, sender)| (track, rtcp::bye(sender.ssrc, CNAME))).collect()
}
