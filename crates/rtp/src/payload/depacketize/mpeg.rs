//! Pictures of MPEG video and frames of MPEG audio (RFC 2250 section 3).

use outflow_media::Malformed;
use outflow_media::codec::mpeg_audio::frame_length;
use outflow_media::frames::Frames;

use super::super::mpeg as payload;
use super::arrived::Arrived;
use super::collect::Collector;
use super::unit::{DepacketizedUnit, Dropped};

/// Collects pictures.
#[derive(Debug, Default)]
pub(super) struct Video {
    pub(super) collector: Collector,
    frames: Frames,
}

impl Video {
    pub(super) fn packet(
        &mut self,
        arrived: &mut Arrived<'_>,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) -> Result<(), Malformed> {
        let video = payload::Video::parse(&arrived.payload)?;
        if !self.collector.goes_on(arrived) {
            self.finish(arrived.dropped, tell);
            self.collector.begin(arrived.timestamp);
            self.frames.begin(Some(arrived.timestamp));
            if !video.starts_picture() {
                self.collector.spoil();
            }
        }
        video.units(|unit| self.frames.unit(unit));
        self.collector.push(video.data);
        if arrived.marker {
            self.finish(arrived.dropped, tell);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, dropped: &mut Dropped, tell: &mut dyn FnMut(DepacketizedUnit)) {
        self.collector.tell(self.frames.current().key, dropped, tell);
    }
}

/// Passes frames on, and collects those that are fragmented.
#[derive(Debug, Default)]
pub(super) struct Audio {
    pub(super) collector: Collector,
    /// Bytes of the fragmented frame.
    wanted: usize,
}

impl Audio {
    pub(super) fn packet(
        &mut self,
        arrived: &mut Arrived<'_>,
        tell: &mut dyn FnMut(DepacketizedUnit),
    ) -> Result<(), Malformed> {
        let audio = payload::Audio::parse(&arrived.payload)?;
        let length = frame_length(audio.data).unwrap_or(0);
        if audio.offset == 0 {
            self.collector.abandon(arrived.dropped);
            if length <= audio.data.len() {
                tell(arrived.whole(arrived.payload.slice_ref(audio.data)));
                return Ok(());
            }
            self.collector.begin(arrived.timestamp);
            self.wanted = length;
        } else {
            let follows = usize::from(audio.offset) == self.collector.len();
            if arrived.gap || !follows || !self.collector.is_open_at(arrived.timestamp) {
                self.collector.abandon(arrived.dropped);
                return Ok(());
            }
        }
        self.collector.push(audio.data);
        if self.collector.len() >= self.wanted {
            self.collector.tell(true, arrived.dropped, tell);
        }
        Ok(())
    }
}
