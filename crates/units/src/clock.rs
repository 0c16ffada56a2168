//! One timeline for tracks that each have their own clock.

use outflow_media::Time;

use crate::limits::CLOCK_DEVIATION_SECONDS_MAX;
use crate::save::{SavedClock, SavedClocks};

/// Ticks a second of the timeline, as in a transport stream.
pub(super) const TICKS: i64 = 90_000;
/// Where the timeline begins, so that nothing that is decoded before it is shown has a negative
/// time.
pub(super) const START: i64 = TICKS;
/// A timestamp further than this from where its arrival puts it belongs to a source that began
/// again, or leapt.
const MAX_DEVIATION: i64 = CLOCK_DEVIATION_SECONDS_MAX as i64 * TICKS;
/// What sender reports say is followed in steps of at least this: they tremble by less.
const MIN_STEP: i64 = TICKS / 200;

/// A sender report: the same moment on the wall clock and on the track's clock.
#[derive(Debug, Clone, Copy)]
struct Report {
    /// In ticks of the timeline, since 1900.
    ntp: i64,
    /// Unwrapped RTP timestamp.
    rtp: i64,
}

#[derive(Debug, Clone)]
struct TrackClock {
    rate: i64,
    /// The newest timestamp, unwrapped.
    newest: Option<i64>,
    /// What is added to a timestamp in ticks to make a time of the timeline.
    offset: i64,
    /// The newest report as it came: NTP time, timestamp, arrival.
    pending: Option<(u64, u32, Time)>,
    report: Option<Report>,
}

/// Brings timestamps of several tracks to one timeline.
///
/// A track begins where its first packet arrived. Once the main track and another one have sender
/// reports, the other one is moved to where its report puts it relative to the main one
/// (RFC 3550 section 6.4.1).
#[derive(Debug, Clone)]
pub(super) struct Clocks {
    tracks: Vec<TrackClock>,
    main: usize,
    began: Option<Time>,
}

/// A time of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) ticks: i64,
    /// The track begins here, or begins again.
    pub(super) leapt: bool,
}

impl Clocks {
    /// For tracks with these clock rates. The main one is never moved.
    pub(super) fn new(rates: impl Iterator<Item = u32>, main: usize) -> Self {
        let track = |rate: u32| TrackClock {
            rate: i64::from(rate.max(1)),
            newest: None,
            offset: 0,
            pending: None,
            report: None,
        };
        Clocks { tracks: rates.map(track).collect(), main, began: None }
    }

    /// What goes on in another process, once there was a timestamp.
    pub(super) fn save(&self) -> Option<SavedClocks> {
        let of = |clock: &TrackClock| {
            let report = clock.report.map(|report| (report.ntp, report.rtp));
            clock.newest.map(|newest| SavedClock { newest, offset: clock.offset, report })
        };
        Some(SavedClocks { began_ns: self.began?.as_nanos(), tracks: self.tracks.iter().map(of).collect() })
    }

    /// Goes on from what another process has saved.
    pub(super) fn restore(&mut self, saved: &SavedClocks) {
        self.began = Some(Time::from_nanos(saved.began_ns));
        for (clock, saved) in self.tracks.iter_mut().zip(&saved.tracks) {
            if let Some(SavedClock { newest, offset, report }) = *saved {
                clock.newest = Some(near(newest));
                clock.offset = near(offset);
                clock.report = report.map(|(ntp, rtp)| Report { ntp: near(ntp), rtp: near(rtp) });
            }
        }
    }

    /// When the timeline began: that moment is [`START`].
    pub(super) fn began(&self) -> Option<Time> {
        self.began
    }

    /// Whether a timestamp of this track was seen.
    pub(super) fn has_begun(&self, track: usize) -> bool {
        self.tracks.get(track).is_some_and(|clock| clock.newest.is_some())
    }

    /// The time of this timestamp, which arrived now.
    pub(super) fn stamp(&mut self, track: usize, timestamp: u32, now: Time) -> Stamp {
        let began = *self.began.get_or_insert(now);
        let arrival = arrival(now, began);
        let Some(clock) = self.tracks.get_mut(track) else { return Stamp { ticks: arrival, leapt: true } };
        let first = clock.newest.is_none();
        let unwrapped = clock.unwrap(timestamp);
        clock.newest = Some(unwrapped);
        let time = clock.time(unwrapped);
        let leapt = first || (time - arrival).abs() > MAX_DEVIATION;
        if leapt {
            clock.offset += arrival - time;
            clock.report = None;
        }
        clock.take_report(began);
        self.follow_reports(track);
        Stamp { ticks: self.tracks[track].time(unwrapped), leapt }
    }

    /// A sender report of a track came.
    pub(super) fn sender_report(&mut self, track: usize, ntp: u64, rtp: u32, now: Time) {
        if let Some(clock) = self.tracks.get_mut(track) {
            clock.pending = Some((ntp, rtp, now));
        }
    }

    /// Moves a track to where its report puts it relative to the main one.
    fn follow_reports(&mut self, track: usize) {
        let report = |track: usize| self.tracks.get(track).and_then(|clock| Some((clock, clock.report?)));
        let (Some((main, reference)), Some((clock, own))) = (report(self.main), report(track)) else {
            return;
        };
        let wanted = main.time(reference.rtp) + (own.ntp - reference.ntp);
        let step = wanted - clock.time(own.rtp);
        // Reports that would move a track by more are wrong: some devices have several clocks.
        if track != self.main && (MIN_STEP..=MAX_DEVIATION).contains(&step.abs()) {
            self.tracks[track].offset += step;
        }
    }
}

impl TrackClock {
    fn unwrap(&self, timestamp: u32) -> i64 {
        let Some(newest) = self.newest else { return i64::from(timestamp) };
        let step = timestamp.wrapping_sub(newest as u32).cast_signed();
        newest + i64::from(step)
    }

    fn ticks(&self, rtp: i64) -> i64 {
        let scaled = i128::from(rtp) * i128::from(TICKS) / i128::from(self.rate);
        i64::try_from(scaled).unwrap_or(i64::MAX / 4)
    }

    fn time(&self, rtp: i64) -> i64 {
        self.ticks(rtp) + self.offset
    }

    /// Believes the newest report, unless its timestamp is far from where it arrived.
    fn take_report(&mut self, began: Time) {
        let Some((ntp, rtp, arrived)) = self.pending.take() else { return };
        let rtp = self.unwrap(rtp);
        if (self.time(rtp) - arrival(arrived, began)).abs() <= MAX_DEVIATION {
            let whole = i64::from((ntp >> 32) as u32) * TICKS;
            // Rounded: a tick is longer than what the fraction can tell.
            let part = (i64::from(ntp as u32) * TICKS + (1 << 31)) >> 32;
            self.report = Some(Report { ntp: whole + part, rtp });
        }
    }
}

/// A number of ticks from elsewhere: sums of a few of them fit their type.
fn near(ticks: i64) -> i64 {
    ticks.clamp(-(1 << 60), 1 << 60)
}

/// The time at which something arrives.
fn arrival(now: Time, began: Time) -> i64 {
    START + ticks(now) - ticks(began)
}

fn ticks(time: Time) -> i64 {
    let scaled = u128::from(time.as_nanos()) * 9 / 100_000;
    i64::try_from(scaled).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks() -> Clocks {
        Clocks::new([90_000, 48_000].into_iter(), 0)
    }

    fn ntp(millis: u64) -> u64 {
        (millis << 32) / 1000
    }

    #[test]
    fn tracks_begin_where_their_first_packets_arrive() {
        let mut clocks = clocks();
        assert_eq!(clocks.stamp(0, 5_000, Time::from_millis(100)).ticks, START);
        assert_eq!(clocks.stamp(1, 77, Time::from_millis(110)).ticks, START + 900);
        assert_eq!(
            clocks.stamp(0, 8_600, Time::from_millis(149)).ticks,
            START + 3600,
            "by timestamp, not arrival"
        );
        assert_eq!(clocks.stamp(1, 77 + 960, Time::from_millis(129)).ticks, START + 900 + 1800);
    }

    #[test]
    fn timestamps_wrap_and_go_back() {
        let mut clocks = clocks();
        let first = clocks.stamp(0, u32::MAX - 899, Time::ZERO).ticks;
        assert_eq!(clocks.stamp(0, 900, Time::ZERO).ticks, first + 1800);
        assert_eq!(clocks.stamp(0, u32::MAX, Time::ZERO).ticks, first + 899);
    }

    #[test]
    fn reports_move_the_second_track() {
        let mut clocks = clocks();
        let video = clocks.stamp(0, 0, Time::ZERO).ticks;
        clocks.stamp(1, 0, Time::from_millis(80));
        clocks.sender_report(0, ntp(5_000), 0, Time::ZERO);
        clocks.sender_report(1, ntp(5_000), 0, Time::ZERO);
        clocks.stamp(0, 3_600, Time::from_millis(40));
        assert_eq!(clocks.stamp(1, 0, Time::from_millis(80)).ticks, video, "the same moment for both");
        // A step that is too small, and one that cannot be.
        clocks.sender_report(1, ntp(5_003), 0, Time::ZERO);
        assert_eq!(clocks.stamp(1, 0, Time::from_millis(80)).ticks, video);
        clocks.sender_report(1, ntp(50_000), 0, Time::ZERO);
        assert_eq!(clocks.stamp(1, 0, Time::from_millis(80)).ticks, video);
        clocks.sender_report(1, ntp(5_040), 0, Time::ZERO);
        assert_eq!(clocks.stamp(1, 0, Time::from_millis(80)).ticks, video + 3_600);
    }

    #[test]
    fn reports_with_foreign_timestamps_are_not_believed() {
        let mut clocks = clocks();
        clocks.stamp(0, 0, Time::ZERO);
        let before = clocks.stamp(1, 0, Time::from_millis(80)).ticks;
        clocks.sender_report(0, ntp(5_000), 0, Time::ZERO);
        clocks.stamp(0, 0, Time::ZERO);
        clocks.sender_report(1, ntp(5_000), 4_000_000_000, Time::ZERO);
        assert_eq!(clocks.stamp(1, 0, Time::from_millis(80)).ticks, before);
    }

    #[test]
    fn a_leap_is_put_where_it_arrives() {
        let mut clocks = clocks();
        let first = clocks.stamp(0, 0, Time::ZERO).ticks;
        let leapt = clocks.stamp(0, 900_000_000, Time::from_millis(40)).ticks;
        assert_eq!(leapt, first + 3_600);
        assert_eq!(clocks.stamp(0, 900_003_600, Time::from_millis(80)).ticks, first + 7_200);
    }

    #[test]
    fn rates_of_zero_and_unknown_tracks_do_no_harm() {
        let mut clocks = Clocks::new([0].into_iter(), 0);
        clocks.stamp(0, u32::MAX, Time::from_nanos(u64::MAX));
        clocks.stamp(0, 7, Time::ZERO);
        clocks.stamp(9, 7, Time::ZERO);
        clocks.sender_report(9, 1, 1, Time::ZERO);
        clocks.sender_report(0, u64::MAX, u32::MAX, Time::ZERO);
        clocks.stamp(0, 8, Time::ZERO);
    }
}
