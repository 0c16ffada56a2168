//! Frames of sound into Opus.

use bytes::Bytes;
use outflow_media::AccessUnit;
use outflow_media::codec::aac::AudioSpecificConfig;
use outflow_sound::{Coding, ToOpus};

use crate::packets::packets;

/// Packets that one frame completes, at most: a second of silence in front of it, 2048 samples of 7,350 Hz, and what was
/// held back.
const PACKETS_MAX: u64 = 50 + 14 + 1;

/// The first packet is a configuration of AAC, one byte for ADTS, or nothing for MPEG audio. The others are frames, with how far behind the
/// one before it each is, one byte: in steps of 256 ticks, -128 is far back.
pub(crate) fn sound(data: &[u8]) {
    let mut frames = packets(data);
    let coding = match frames.next() {
        None | Some([]) => Coding::MpegAudio,
        Some([_]) => Coding::Adts,
        Some(config) => match AudioSpecificConfig::parse(config) {
            Ok(config) => Coding::Aac(config),
            Err(_) => return,
        },
    };
    let Ok(mut to_opus) = ToOpus::new(coding, 64_000) else { return };
    let (mut pts, mut next) = (0, None);
    for frame in frames {
        let Some((step, frame)) = frame.split_first() else { continue };
        pts += match step.cast_signed() {
            i8::MIN => i64::MIN / 8,
            step => i64::from(step) * 256,
        };
        let before = to_opus.counts();
        let unit = AccessUnit { track: 1, pts, dts: pts, key: true, data: Bytes::copy_from_slice(frame) };
        let mut times = Vec::new();
        to_opus.push(&unit, &mut |packet| {
            assert!((1..=1_276).contains(&packet.data.len()) && packet.dts == packet.pts);
            times.push(packet.pts);
        });
        let counts = to_opus.counts();
        assert!(counts.packets - before.packets == times.len() as u64 && times.len() as u64 <= PACKETS_MAX);
        assert!((counts.frames, counts.uncoded) == (before.frames + 1, 0));
        if counts.begun != before.begun {
            next = None;
        }
        for time in times {
            assert_eq!(*next.get_or_insert(time), time, "without a break");
            next = Some(time + 1_800);
        }
    }
}
