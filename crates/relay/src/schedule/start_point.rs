//! Where the tracks begin for a sink that joins.

use outflow_packet::ReportClock;

/// Tracks that begin further apart than that do not belong to one timeline: their sender's clocks
/// make no sense.
const APART_MAX_SECONDS: u64 = 10;

/// Where a track's packets begin for a sink, for the answer to its request (RTP-Info, RFC 2326
/// section 12.33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartPoint {
    /// The track.
    pub track: u8,
    /// RTP sequence number of the first packet.
    pub sequence: u16,
    /// Its RTP timestamp.
    pub timestamp: u32,
}

/// Sets the timestamps of tracks back to that of the earliest of them: RTP-Info tells the RTP
/// timestamps of one moment (RFC 2326, section 12.33).
pub fn align(points: &mut [StartPoint], clock: impl Fn(u8) -> Option<ReportClock>) {
    let of = |point: &StartPoint| {
        let clock = clock(point.track)?;
        Some((clock, clock.ntp_of(point.timestamp)?))
    };
    let Some(earliest) = points.iter().filter_map(|point| of(point).map(|(_, ntp)| ntp)).min() else {
        return;
    };
    for point in points {
        let Some((clock, ntp)) = of(point) else { continue };
        let later = ntp - earliest;
        if later >> 32 < APART_MAX_SECONDS {
            let ticks = (u128::from(later) * u128::from(clock.clock_rate())) >> 32;
            point.timestamp = point.timestamp.wrapping_sub(ticks as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use outflow_media::Time;

    use super::*;

    const SECOND_NTP: u64 = 1 << 32;

    #[test]
    fn tracks_are_told_the_timestamps_of_one_moment() {
        let (mut video, mut audio) = (ReportClock::new(90_000, 0), ReportClock::new(48_000, 0));
        video.source_report(Time::ZERO, 7 * SECOND_NTP, 1_000, 0);
        audio.source_report(Time::ZERO, 8 * SECOND_NTP, 2_000, 0);
        let point = |track, timestamp| StartPoint { track, sequence: 9, timestamp };
        let aligned = |video_at, audio_at| {
            let mut points = [point(0, video_at), point(1, audio_at)];
            align(&mut points, |track| [video, audio].get(usize::from(track)).copied());
            points.map(|p| p.timestamp)
        };
        // Audio begins half a second after video.
        assert_eq!(aligned(1_000 + 90_000, 2_000 + 24_000), [91_000, 2_000]);
        // Video begins half a second after audio, both before their reports; numbers wrap.
        let before = |stamp: u32, ticks| stamp.wrapping_sub(ticks);
        let expected = [before(1_000, 90_000), before(2_000, 96_000)];
        assert_eq!(aligned(before(1_000, 45_000), before(2_000, 96_000)), expected);
        // An hour apart: whatever that is, it is no difference between tracks.
        let apart = [1_000, 2_000 + 48_000 * 3_600];
        assert_eq!(aligned(apart[0], apart[1]), apart);
    }
}
