//! Units of codecs, configurations, and frames.

use outflow_media::codec::aac::AudioSpecificConfig;
use outflow_media::codec::{h264, h265, mpeg_audio, mpeg_video, sps};
use outflow_media::frames::Frames;

use crate::packets::packets;

/// Every reader of units gets every unit.
pub(crate) fn codecs(data: &[u8]) {
    let readers = [h264::classify, h265::classify, mpeg_video::classify];
    let mut all = [Frames::new(), Frames::new(), Frames::new()];
    for unit in packets(data) {
        for (read, frames) in readers.iter().zip(&mut all) {
            let told = read(unit);
            if frames.ends_before(told) || unit.len() % 5 == 0 {
                frames.begin(unit.get(..4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])));
            }
            frames.unit(told);
            let frame = frames.current();
            assert!(frame.layer < frame.layers.max(1) && frame.layers < 128);
            assert!(!frame.key || frame.needs.is_nothing());
        }
        let depth = |depth: Option<u8>| assert!(depth.is_none_or(|d| d <= sps::MAX_REORDER));
        depth(sps::h264_reorder(unit));
        depth(sps::h265_reorder(unit));
        assert!(mpeg_audio::frame_length(unit).is_none_or(|length| length < 1 << 16));
        if let Ok(config) = AudioSpecificConfig::parse(unit) {
            config.adts_header(unit.len());
        }
    }
}
