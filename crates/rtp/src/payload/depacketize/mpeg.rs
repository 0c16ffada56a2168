//! Pictures of MPEG video and frames of MPEG audio (RFC 2250 section 3).

use outflow_media::Malformed;
use outflow_media::codec::mpeg_audio::frame_length;
use outflow_media::frames::Frames;

use super::super::mpeg as payload;
use super::collect::Collector;
use super::{Arrived, DepacketizedUnit, Dropped};

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
        if arrived.gap {
            self.collector.spoil();
        }
        let video = payload::Video::parse(&arrived.payload)?;
        if !self.collector.is_open_at(arrived.timestamp) {
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
        if let Some((timestamp, data)) = self.collector.finish(dropped) {
            tell(DepacketizedUnit { timestamp, data, key: self.frames.current().key });
        }
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
                let data = arrived.payload.slice_ref(audio.data);
                tell(DepacketizedUnit { timestamp: arrived.timestamp, data, key: true });
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
        if self.collector.len() >= self.wanted
            && let Some((timestamp, data)) = self.collector.finish(arrived.dropped)
        {
            tell(DepacketizedUnit { timestamp, data, key: true });
        }
        Ok(())
    }
}
