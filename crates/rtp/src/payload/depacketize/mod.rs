//! Access units out of the RTP packets of one track.

mod aac;
mod arrived;
mod collect;
mod mpeg;
mod nal;
pub mod reorder;
mod unit;

use bytes::Bytes;
use outflow_media::format::{Codec, Track};

use crate::RtpHeader;
use arrived::Arrived;
use collect::Collector;
use reorder::{Pushed, Reorder};

pub use unit::{DepacketizedUnit, Dropped};

#[derive(Debug)]
enum Assembler {
    Nal(Box<nal::NalUnits>),
    MpegVideo(Box<mpeg::Video>),
    MpegAudio(mpeg::Audio),
    Aac(aac::Frames),
    Packet,
}

/// Puts access units together.
///
/// Packets go in in the order of arrival; those that are a few places early wait for their turn.
/// A unit of which something is missing is dropped as a whole and counted. Memory is bounded by
/// the reorder window and [`UNIT_BYTES_MAX`](crate::limits::UNIT_BYTES_MAX).
#[derive(Debug)]
pub struct Depacketizer {
    assembler: Assembler,
    reorder: Reorder,
    ssrc: Option<u32>,
    dropped: Dropped,
}

impl Depacketizer {
    /// For a track whose access units can be told; `None` for transport streams and unknown
    /// codecs.
    pub fn new(track: &Track) -> Option<Self> {
        let assembler = match &track.codec {
            Codec::H264 { .. } | Codec::H265 { .. } => Assembler::Nal(Box::new(nal::NalUnits::new(track))),
            Codec::MpegVideo => Assembler::MpegVideo(Box::default()),
            Codec::MpegAudio => Assembler::MpegAudio(mpeg::Audio::default()),
            Codec::Aac { config, size_length, index_length, index_delta_length } => {
                let lengths = aac::Lengths {
                    size: *size_length,
                    index: *index_length,
                    index_delta: *index_delta_length,
                };
                Assembler::Aac(aac::Frames::new(config, track.clock_rate, lengths))
            }
            Codec::Opus => Assembler::Packet,
            Codec::Mp2t
            | Codec::RawVideo(_)
            | Codec::Jpeg2000
            | Codec::Av1
            | Codec::Vp9
            | Codec::Vp8
            | Codec::Srtp { .. }
            | Codec::Other { .. } => return None,
        };
        Some(Depacketizer { assembler, reorder: Reorder::default(), ssrc: None, dropped: Dropped::default() })
    }

    /// Takes a packet, header included, and tells the units that it completes.
    pub fn handle(&mut self, packet: Bytes, mut tell: impl FnMut(DepacketizedUnit)) {
        let Ok(header) = RtpHeader::new_checked(&packet) else {
            self.dropped.malformed += 1;
            return;
        };
        let sequence = header.sequence();
        if self.ssrc.replace(header.ssrc()).is_some_and(|before| before != header.ssrc()) {
            self.flush(&mut tell);
        }
        let Depacketizer { assembler, reorder, dropped, .. } = self;
        let pushed = reorder.push(sequence, packet, |packet, gap| {
            assembler.packet(&packet, gap, dropped, &mut tell);
        });
        if pushed == Pushed::Late {
            self.dropped.late += 1;
        }
    }

    /// Tells what is there; what comes next begins again. For the end of a stream, or of a source.
    pub fn flush(&mut self, mut tell: impl FnMut(DepacketizedUnit)) {
        let Depacketizer { assembler, reorder, dropped, .. } = self;
        reorder.flush(|packet, gap| assembler.packet(&packet, gap, dropped, &mut tell));
        assembler.flush(dropped, &mut tell);
    }

    /// What was dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }
}

impl Assembler {
    fn packet(
        &mut self,
        packet: &Bytes,
        gap: bool,
        dropped: &mut Dropped,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) {
        // The header was checked when the packet came.
        let Ok(header) = RtpHeader::new_checked(packet) else { return };
        let mut arrived = Arrived {
            payload: packet.slice_ref(header.payload()),
            timestamp: header.timestamp(),
            marker: header.marker(),
            gap,
            dropped,
        };
        let read = match self {
            Assembler::Nal(units) => units.packet(&mut arrived, tell),
            Assembler::MpegVideo(video) => video.packet(&mut arrived, tell),
            Assembler::MpegAudio(audio) => audio.packet(&mut arrived, tell),
            Assembler::Aac(frames) => frames.packet(&mut arrived, tell),
            Assembler::Packet => {
                let data = core::mem::take(&mut arrived.payload);
                tell(arrived.whole(data));
                Ok(())
            }
        };
        if read.is_err() {
            dropped.malformed += 1;
            self.collector().into_iter().for_each(Collector::spoil);
        }
    }

    fn flush(&mut self, dropped: &mut Dropped, tell: &mut dyn FnMut(DepacketizedUnit)) {
        match self {
            Assembler::Nal(units) => units.finish(dropped, tell),
            Assembler::MpegVideo(video) => video.finish(dropped, tell),
            Assembler::MpegAudio(audio) => audio.collector.abandon(dropped),
            Assembler::Aac(frames) => frames.collector.abandon(dropped),
            Assembler::Packet => {}
        }
    }

    fn collector(&mut self) -> Option<&mut Collector> {
        match self {
            Assembler::Nal(units) => Some(&mut units.collector),
            Assembler::MpegVideo(video) => Some(&mut video.collector),
            Assembler::MpegAudio(audio) => Some(&mut audio.collector),
            Assembler::Aac(frames) => Some(&mut frames.collector),
            Assembler::Packet => None,
        }
    }
}

#[cfg(test)]
mod tests;
