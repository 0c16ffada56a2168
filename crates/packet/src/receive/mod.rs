//! What comes in, brought into the one form that the stream's receivers get.
//!
//! RTP keeps its headers; if the source was restarted, sequence numbers, timestamps and SSRC are
//! rewritten so that receivers see one source that never went away; not so where it is encrypted, for
//! headers are signed then. A transport stream is taken out of what carried it, and the RTP header for
//! sinks that receive it by RTP is made here, once.

mod continuity;
mod incoming;
mod save;
mod timeline;

pub use continuity::{Continuity, Passage, TurnBy};
pub use incoming::Incoming;
pub use save::{SavedReceive, SavedSender, SavedWrap};
pub use timeline::{Stamp, Timeline};

use bytes::Bytes;
use outflow_media::{Codec, Format, Time, Track};
use outflow_rtp::{PlainHeader, Reception, RtpHeader};

use crate::DropReason;
use crate::limits::TRACKS_MAX;

/// Payload type of MPEG-TS in RTP (RFC 3551, section 6).
const PAYLOAD_TYPE_MP2T: u8 = 33;

/// The receiving side of a stream.
#[derive(Debug)]
pub struct Receive {
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// A transport stream, bare or in RTP.
    Ts {
        in_rtp: Option<RtpStatistics>,
        wrap: RtpWrap,
    },
    Rtp(Vec<RtpTrack>),
    /// Datagrams, as they come.
    Datagrams,
}

#[derive(Debug)]
struct RtpTrack {
    payload_type: u8,
    encrypted: bool,
    continuity: Continuity,
    statistics: RtpStatistics,
}

impl Receive {
    /// For a source of this format. `ssrc` is used when a transport stream goes out by RTP.
    pub fn new(format: &Format, ssrc: u32) -> Self {
        let form = match format {
            Format::Ts => Form::Ts { in_rtp: None, wrap: RtpWrap::new(ssrc) },
            Format::Rtp(tracks) if carries_ts(tracks) => {
                Form::Ts { in_rtp: Some(RtpStatistics::new(&tracks[0])), wrap: RtpWrap::new(ssrc) }
            }
            Format::Rtp(tracks) => Form::Rtp(tracks.iter().take(TRACKS_MAX).map(RtpTrack::new).collect()),
            Format::Images | Format::Data => Form::Datagrams,
        };
        Receive { form }
    }

    /// The format that comes out: RTP that carries a transport stream becomes one.
    pub fn effective(format: &Format) -> Format {
        match format {
            Format::Rtp(tracks) if carries_ts(tracks) => Format::Ts,
            other => other.clone(),
        }
    }

    /// The source begins again, after it was away or in another form (bare or in RTP).
    pub fn restart(&mut self, format: &Format, by: TurnBy) {
        match (&mut self.form, format) {
            (Form::Rtp(tracks), Format::Rtp(new)) => {
                for (track, new) in tracks.iter_mut().zip(new) {
                    track.continuity.restart(by);
                    track.statistics = RtpStatistics::new(new);
                }
            }
            (Form::Ts { in_rtp, wrap }, Format::Rtp(new)) => {
                *in_rtp = new.first().map(RtpStatistics::new);
                wrap.mark_break();
            }
            (Form::Ts { in_rtp, wrap }, Format::Ts) => {
                *in_rtp = None;
                wrap.mark_break();
            }
            (Form::Rtp(_) | Form::Datagrams, _) | (_, Format::Images | Format::Data) => {}
        }
    }

    /// Takes one packet of `track`.
    ///
    /// # Errors
    /// Why it goes no further.
    pub fn take(&mut self, now: Time, track: u8, incoming: Incoming) -> Result<Bytes, DropReason> {
        match &mut self.form {
            Form::Ts { in_rtp: None, .. } | Form::Datagrams => Ok(incoming.freeze()),
            Form::Ts { in_rtp: Some(statistics), .. } => {
                let header = RtpHeader::new_checked(incoming.as_ref()).map_err(|_| DropReason::Malformed)?;
                statistics.packet(now, &header);
                let (from, to) = (header.payload_offset(), header.payload_offset() + header.payload().len());
                let bytes = incoming.freeze().slice(from..to);
                Ok(bytes)
            }
            Form::Rtp(tracks) => {
                let track = tracks.get_mut(usize::from(track)).ok_or(DropReason::UnknownTrack)?;
                let bytes = track.take(now, incoming)?;
                Ok(bytes)
            }
        }
    }

    /// The RTP header for a transport stream's next packet, once it is certain that it goes on: each
    /// takes a sequence number. Zeros for RTP streams, whose packets have their own.
    pub fn rtp_header(&mut self, now: Time) -> [u8; 12] {
        match &mut self.form {
            Form::Ts { wrap, .. } => wrap.next(now),
            Form::Rtp(_) | Form::Datagrams => [0; 12],
        }
    }

    /// What is added to the timestamps of a track's sender.
    pub fn timestamp_delta(&self, track: u8) -> u32 {
        match &self.form {
            Form::Rtp(tracks) => {
                tracks.get(usize::from(track)).map_or(0, |track| track.continuity.timestamp_delta())
            }
            Form::Ts { .. } | Form::Datagrams => 0,
        }
    }

    /// How well RTP comes in, per track; nothing for bare transport streams.
    pub fn receptions(&self) -> impl Iterator<Item = &Reception> {
        let (one, many) = match &self.form {
            Form::Ts { in_rtp, .. } => (in_rtp.as_ref(), &[][..]),
            Form::Rtp(tracks) => (None, &tracks[..]),
            Form::Datagrams => (None, &[][..]),
        };
        one.into_iter().chain(many.iter().map(|track| &track.statistics)).filter_map(|s| s.reception.as_ref())
    }
}

/// How the packets of one sender come in; begins with its first.
#[derive(Debug)]
struct RtpStatistics {
    clock_rate: u32,
    reception: Option<Reception>,
}

impl RtpStatistics {
    fn new(track: &Track) -> Self {
        RtpStatistics { clock_rate: track.clock_rate, reception: None }
    }

    fn packet(&mut self, now: Time, header: &RtpHeader<'_>) {
        let known = self.reception.take().filter(|reception| reception.ssrc() == header.ssrc());
        let mut reception = known.unwrap_or_else(|| Reception::new(header.ssrc(), self.clock_rate));
        reception.packet(header.sequence(), header.timestamp(), now);
        self.reception = Some(reception);
    }
}

fn carries_ts(tracks: &[Track]) -> bool {
    tracks.first().is_some_and(|track| track.codec == Codec::Mp2t)
}

impl RtpTrack {
    fn new(track: &Track) -> Self {
        RtpTrack {
            payload_type: track.payload_type,
            encrypted: track.codec.is_srtp(),
            continuity: Continuity::new(track.clock_rate),
            statistics: RtpStatistics::new(track),
        }
    }

    fn take(&mut self, now: Time, incoming: Incoming) -> Result<Bytes, DropReason> {
        let header = match self.encrypted {
            true => RtpHeader::new_encrypted(incoming.as_ref()),
            false => RtpHeader::new_checked(incoming.as_ref()),
        };
        let header = header.map_err(|_| DropReason::Malformed)?;
        if header.payload_type() != self.payload_type {
            return Err(DropReason::UnknownTrack);
        }
        let (sequence, timestamp, ssrc) = (header.sequence(), header.timestamp(), header.ssrc());
        let passage = self.continuity.pass(now, ssrc, sequence, timestamp);
        if passage == Passage::Foreign {
            return Err(DropReason::ForeignSource);
        }
        self.statistics.packet(now, &header);
        let Passage::Rewrite { ssrc, sequence, timestamp } = passage else {
            return Ok(incoming.freeze());
        };
        if self.encrypted {
            // Its header is signed. Receivers see the source that was restarted.
            return Ok(incoming.freeze());
        }
        let mut own = incoming.into_own();
        outflow_rtp::set_sequence(&mut own, sequence);
        outflow_rtp::set_timestamp(&mut own, timestamp);
        outflow_rtp::set_ssrc(&mut own, ssrc);
        Ok(own.freeze())
    }
}

/// Makes the RTP headers of a transport stream (RFC 2250, section 2).
#[derive(Debug)]
pub struct RtpWrap {
    ssrc: u32,
    sequence: u16,
    /// The next packet follows a discontinuity of the timestamps.
    marker: bool,
}

impl RtpWrap {
    /// Of the source `ssrc`.
    pub fn new(ssrc: u32) -> Self {
        // RFC 3550, section 5.1: the first sequence number should not be guessable.
        RtpWrap { ssrc, sequence: (ssrc >> 7) as u16, marker: false }
    }

    /// The next packet follows a discontinuity of the timestamps.
    pub const fn mark_break(&mut self) {
        self.marker = true;
    }

    /// The header of the next packet.
    pub fn next(&mut self, now: Time) -> [u8; 12] {
        let marker = core::mem::take(&mut self.marker);
        self.sequence = self.sequence.wrapping_add(1);
        let timestamp = ticks(now, 90_000).wrapping_add(self.ssrc.rotate_left(9));
        PlainHeader {
            payload_type: PAYLOAD_TYPE_MP2T,
            marker,
            sequence: self.sequence,
            timestamp,
            ssrc: self.ssrc,
        }
        .emit()
    }
}

/// `now` in ticks of a clock, wrapping as RTP timestamps do.
pub fn ticks(now: Time, clock_rate: u32) -> u32 {
    (u128::from(now.as_nanos()) * u128::from(clock_rate) / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_packets_pass_as_they_are_with_padding_and_after_a_restart() {
        let track = Track { codec: Codec::Srtp { video: true }, ..Track::mp2t() };
        let format = Format::Rtp(vec![track]);
        let mut receive = Receive::new(&format, 1);
        for (at, ssrc) in [(0, 5), (1, 6)] {
            let header = PlainHeader { marker: false, payload_type: 33, sequence: 9, timestamp: 0, ssrc };
            let mut packet = [&header.emit()[..], b"encrypted\0"].concat();
            packet[0] |= 0x20;
            let sent = Bytes::from(packet);
            let came = receive.take(Time::from_millis(at), 0, sent.clone().into()).unwrap();
            assert_eq!(came, sent);
            receive.restart(&format, TurnBy::Source);
        }
    }
}
