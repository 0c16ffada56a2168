//! What of the receiving side goes on in another process, so that receivers see one source that never went away:
//! how the sender's numbers become theirs.

use minicbor::{Decode, Encode};
use outflow_media::{Format, Time, Track};
use outflow_rtp::Reception;
use outflow_rtp::save::SavedReception;

use super::{Continuity, Form, Receive, RtpStatistics, RtpWrap, TurnBy};

/// The receiving side of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedReceive {
    /// Of each RTP track, its sender, once packets came.
    #[n(0)]
    pub senders: Vec<Option<SavedSender>>,
    /// How well RTP comes in, of each track.
    #[n(1)]
    pub receptions: Vec<Option<SavedReception>>,
    /// Of a transport stream, what its packets get that go out by RTP.
    #[n(2)]
    pub wrap: Option<SavedWrap>,
}

/// The sender of a track, and what becomes of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedSender {
    /// SSRC of the sender.
    #[n(0)]
    pub ssrc: u32,
    /// When its newest packet came, in nanoseconds.
    #[n(1)]
    pub heard_ns: u64,
    /// The next packet begins a new turn: of the source itself, or of another relay.
    #[n(2)]
    pub restarted_by_relay: Option<bool>,
    /// SSRC for receivers.
    #[n(3)]
    pub ssrc_out: u32,
    /// What is added to sequence numbers.
    #[n(4)]
    pub sequence_delta: u16,
    /// What is added to timestamps, in ticks.
    #[n(5)]
    pub timestamp_delta: u32,
    /// The highest sequence number that receivers got.
    #[n(6)]
    pub last_sequence: u16,
    /// Its timestamp.
    #[n(7)]
    pub last_timestamp: u32,
}

/// The RTP headers of a transport stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct SavedWrap {
    /// SSRC for receivers.
    #[n(0)]
    pub ssrc: u32,
    /// The sequence number that the newest packet got.
    #[n(1)]
    pub sequence: u16,
    /// The next packet follows a discontinuity of the timestamps.
    #[n(2)]
    pub marker: bool,
}

impl Receive {
    /// What goes on in another process.
    pub fn save(&self) -> SavedReceive {
        let reception = |statistics: &RtpStatistics| statistics.reception.as_ref()?.save();
        match &self.form {
            Form::Ts { in_rtp, wrap } => SavedReceive {
                senders: Vec::new(),
                receptions: in_rtp.iter().map(reception).collect(),
                wrap: Some(wrap.save()),
            },
            Form::Rtp(tracks) => SavedReceive {
                senders: tracks.iter().map(|track| track.continuity.save()).collect(),
                receptions: tracks.iter().map(|track| reception(&track.statistics)).collect(),
                wrap: None,
            },
            Form::Datagrams => SavedReceive::default(),
        }
    }

    /// For a source that another process has received up to now, of which this comes out. What does not fit that
    /// is left out, as if it had not been known.
    pub fn restore(format: &Format, saved: &SavedReceive) -> Self {
        let mut receive = Receive::new(format, 0);
        let reception = |at: usize| saved.receptions.get(at).copied().flatten();
        match &mut receive.form {
            Form::Ts { in_rtp, wrap } => {
                // It has a place for that exactly if the transport stream comes in RTP.
                *in_rtp = saved.receptions.first().map(|_| RtpStatistics::new(&Track::mp2t()));
                in_rtp.iter_mut().for_each(|statistics| statistics.restore(reception(0)));
                saved.wrap.into_iter().for_each(|saved| *wrap = RtpWrap::restore(saved));
            }
            Form::Rtp(tracks) => {
                for (at, track) in tracks.iter_mut().enumerate() {
                    track.statistics.restore(reception(at));
                    let sender = saved.senders.get(at).copied().flatten();
                    sender.into_iter().for_each(|sender| track.continuity.restore(sender));
                }
            }
            Form::Datagrams => {}
        }
        receive
    }
}

impl RtpWrap {
    /// What goes on in another process.
    pub fn save(&self) -> SavedWrap {
        SavedWrap { ssrc: self.ssrc, sequence: self.sequence, marker: self.marker }
    }

    /// Goes on from what another process has saved.
    pub fn restore(SavedWrap { ssrc, sequence, marker }: SavedWrap) -> Self {
        RtpWrap { ssrc, sequence, marker }
    }
}

impl RtpStatistics {
    fn restore(&mut self, saved: Option<SavedReception>) {
        self.reception = saved.map(|saved| Reception::restore(saved, self.clock_rate));
    }
}

impl Continuity {
    fn save(&self) -> Option<SavedSender> {
        let (ssrc, heard) = self.current?;
        Some(SavedSender {
            ssrc,
            heard_ns: heard.as_nanos(),
            restarted_by_relay: self.restarted.map(|by| by == TurnBy::Relay),
            ssrc_out: self.ssrc_out,
            sequence_delta: self.sequence_delta,
            timestamp_delta: self.timestamp_delta,
            last_sequence: self.last_sequence,
            last_timestamp: self.last_timestamp,
        })
    }

    fn restore(&mut self, saved: SavedSender) {
        let by = |by_relay| if by_relay { TurnBy::Relay } else { TurnBy::Source };
        *self = Continuity {
            clock_rate: self.clock_rate,
            current: Some((saved.ssrc, Time::from_nanos(saved.heard_ns))),
            restarted: saved.restarted_by_relay.map(by),
            ssrc_out: saved.ssrc_out,
            sequence_delta: saved.sequence_delta,
            timestamp_delta: saved.timestamp_delta,
            last_sequence: saved.last_sequence,
            last_timestamp: saved.last_timestamp,
        };
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_rtp::PlainHeader;

    use super::*;

    fn packet(payload_type: u8, ssrc: u32, sequence: u16) -> Bytes {
        let timestamp = u32::from(sequence) * 3_600;
        let header = PlainHeader { marker: false, payload_type, sequence, timestamp, ssrc };
        Bytes::from([&header.emit()[..], &[0x47; 188]].concat())
    }

    fn carried_over(format: &Format, receive: &Receive) -> Receive {
        let bytes = minicbor::to_vec(receive.save()).expect("memory does not fail");
        let saved: SavedReceive = minicbor::decode(&bytes).expect("what was written");
        let restored = Receive::restore(&Receive::effective(format), &saved);
        assert_eq!(restored.save(), saved);
        restored
    }

    #[test]
    fn what_another_process_has_received_goes_on() {
        for (format, payload_type) in
            [(Format::Rtp(vec![Track::h264()]), 96), (Format::Rtp(vec![Track::mp2t()]), 33), (Format::Ts, 33)]
        {
            let mut receive = Receive::new(&format, 5);
            let at = |sequence: u16| Time::from_millis(40 * u64::from(sequence % 100));
            let take = |receive: &mut Receive, ssrc, sequence| {
                let now = at(sequence);
                let bytes = receive.take(now, 0, packet(payload_type, ssrc, sequence).into());
                (bytes, receive.rtp_header(now))
            };
            for sequence in 65_530..=65_535 {
                take(&mut receive, 7, sequence).0.expect("taken");
            }
            receive.restart(&format, TurnBy::Source);
            take(&mut receive, 8, 3_000).0.expect("taken");
            let mut restored = carried_over(&format, &receive);
            for sequence in 3_001..3_010 {
                assert_eq!(take(&mut restored, 8, sequence), take(&mut receive, 8, sequence));
            }
            // The restart is announced in one process, and its first packet comes in the other.
            receive.restart(&format, TurnBy::Source);
            let mut restored = carried_over(&format, &receive);
            assert_eq!(take(&mut restored, 9, 50), take(&mut receive, 9, 50));
        }
    }
}
