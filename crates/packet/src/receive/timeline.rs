//! One timeline for all renditions: their encoders may have begun to count anywhere, and may lag behind each
//! other.
//!
//! Timestamps are brought together by when frames arrive. A rendition that is always 30 ms behind is told to be
//! of 30 ms later, so that a sink that changes goes on in time, in both directions, without a frame twice.

use outflow_media::Time;

use super::ticks;

/// Timelines that are further apart than this part of a second are brought together again, at a key frame.
const APART_PARTS: u32 = 50;
/// Frames that begin within this part of a second begin at the same time.
const AT_ONCE_PARTS: u32 = 25;
/// Timestamps that are further apart than this many seconds have jumped. An encoder that is too slow may be apart by
/// less: how much it lags is known of the group of pictures before, and it has lagged more since.
const JUMP_SECONDS: u32 = 10;

/// How the timestamps of the main tracks of renditions are changed.
#[derive(Debug, Default)]
pub struct Timeline {
    clock_rate: u32,
    /// The rendition whose timestamps stay as they are: the first that came.
    reference: Option<usize>,
    lines: Vec<Line>,
}

/// A packet, as far as timestamps go.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// When it came.
    pub arrived: Time,
    /// Of RTP, as it came.
    pub timestamp: u32,
    /// It is the first of its frame.
    pub first: bool,
    /// Receivers may change with it.
    pub opens: bool,
}

/// A rendition's timestamps.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// What is added to them.
    shift: Option<u32>,
    /// By how much the clock of arrivals is ahead of them: what it was first, ...
    base: Option<u32>,
    /// ... and by how much more, at least, since the last key frame, ...
    least: Option<i32>,
    /// ... and before that.
    before: Option<i32>,
    /// The newest, shifted.
    newest: Option<u32>,
}

impl Line {
    fn arrives(&mut self, now: u32, stamp: Stamp) {
        let ahead = now.wrapping_sub(stamp.timestamp);
        let more = ahead.wrapping_sub(*self.base.get_or_insert(ahead)).cast_signed();
        if stamp.opens {
            self.before = self.least.take().or(self.before);
        }
        self.least = Some(self.least.map_or(more, |least| least.min(more)));
    }

    /// By how much the clock of arrivals is ahead of the timestamps.
    fn ahead(&self) -> Option<u32> {
        let more = self.before.or(self.least)?;
        Some(self.base?.wrapping_add_signed(more))
    }
}

impl Timeline {
    /// A timeline for `renditions` renditions.
    pub fn new(clock_rate: u32, renditions: usize) -> Self {
        Timeline { clock_rate, reference: None, lines: vec![Line::default(); renditions] }
    }

    /// What to add to the timestamp of a rendition's next packet.
    pub fn shift(&mut self, rendition: usize, stamp: Stamp) -> u32 {
        let now = ticks(stamp.arrived, self.clock_rate);
        let Some(line) = self.lines.get_mut(rendition) else { return 0 };
        if stamp.first || line.base.is_none() {
            line.arrives(now, stamp);
        }
        self.reference.get_or_insert(rendition);
        if stamp.first && stamp.opens || line.shift.is_none() {
            self.bring_together(rendition, stamp.timestamp);
        }
        let line = &mut self.lines[rendition];
        let shift = line.shift.unwrap_or_default();
        let shifted = stamp.timestamp.wrapping_add(shift);
        let is_newer = |newest: u32| shifted.wrapping_sub(newest).cast_signed() > 0;
        if line.newest.is_none_or(is_newer) {
            line.newest = Some(shifted);
        }
        shift
    }

    /// What is added to the timestamps of a rendition.
    pub fn shift_of(&self, rendition: usize) -> Option<u32> {
        self.lines.get(rendition)?.shift
    }

    /// Whether a frame may stand before a key frame whose timestamp is so much earlier: it began while the first
    /// packets of that came.
    pub fn is_at_once(&self, late: i32) -> bool {
        late < 0 || self.is_within(late.cast_unsigned(), AT_ONCE_PARTS)
    }

    fn bring_together(&mut self, rendition: usize, timestamp: u32) {
        let reference = self.reference.filter(|reference| *reference != rendition);
        let reference = reference.and_then(|reference| self.lines.get(reference)?.ahead());
        let line = &self.lines[rendition];
        let wanted = match (line.ahead(), reference) {
            (Some(ahead), Some(reference)) => ahead.wrapping_sub(reference),
            _ => line.shift.unwrap_or_default(),
        };
        let near = |shift: &u32| self.is_within(wanted.wrapping_sub(*shift), APART_PARTS);
        let shift = line.shift.filter(near).unwrap_or(wanted);
        let behind = self.behind(rendition, timestamp.wrapping_add(shift));
        // Not where the timestamps of a rendition have jumped.
        let behind = if behind <= self.clock_rate.saturating_mul(JUMP_SECONDS) { behind } else { 0 };
        self.lines[rendition].shift = Some(shift.wrapping_add(behind));
    }

    /// By how much a timestamp is too early to come after those that the others had.
    fn behind(&self, rendition: usize, shifted: u32) -> u32 {
        let others = self.lines.iter().enumerate().filter(|(index, _)| *index != rendition);
        let late = |newest: u32| newest.wrapping_sub(shifted).cast_signed().saturating_add(1).max(0);
        others.filter_map(|(_, line)| line.newest.map(late)).max().unwrap_or(0).cast_unsigned()
    }

    /// Whether a difference is less than that part of a second.
    fn is_within(&self, difference: u32, parts: u32) -> bool {
        difference.cast_signed().unsigned_abs() <= self.clock_rate / parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 3_600;

    /// Two renditions of 25 frames a second, with a key frame each second; the second is `lag` ms later and
    /// counts from another number on. Returns for each what was added, frame by frame.
    fn run(lag: u64, from: u32, frames: u64) -> [Vec<(u64, u32)>; 2] {
        let mut timeline = Timeline::new(90_000, 2);
        let mut sent: Vec<(u64, usize, u32, bool)> = Vec::new();
        for frame in 0..frames {
            let timestamp = (frame * FRAME) as u32;
            sent.push((frame * 40, 0, timestamp, frame % 25 == 0));
            sent.push((frame * 40 + lag, 1, timestamp.wrapping_add(from), frame % 25 == 0));
        }
        sent.sort_by_key(|(at, rendition, ..)| (*at, *rendition));
        let mut out = [Vec::new(), Vec::new()];
        for (at, rendition, timestamp, opens) in sent {
            let stamp = Stamp { arrived: Time::from_millis(1000 + at), timestamp, first: true, opens };
            let shift = timeline.shift(rendition, stamp);
            out[rendition].push((at, timestamp.wrapping_add(shift)));
        }
        out
    }

    #[test]
    fn one_that_lags_is_told_to_be_later() {
        for (lag, from) in [(0, 0), (30, 0), (30, 0xffff_0000), (130, 77)] {
            let [first, second] = run(lag, from, 100);
            assert!(first.iter().zip(0..).all(|((_, stamp), frame)| *stamp == frame * FRAME as u32));
            let mut all = [first, second].concat();
            all.sort_by_key(|(at, _)| *at);
            // A sink that changes at any time goes on in time, but for what is within a frame.
            for pair in all.windows(2) {
                let step = pair[1].1.wrapping_sub(pair[0].1).cast_signed();
                assert!(step >= -1, "{lag} ms, {from}: {pair:?}");
            }
            let (at, stamp) = all[all.len() - 1];
            assert!(stamp.abs_diff(at as u32 * 90) <= 90_000 / APART_PARTS, "{lag} ms, {from}: {stamp}");
        }
    }

    #[test]
    fn key_frames_come_after_what_the_others_had() {
        let [first, second] = run(0, 0, 60);
        for (frame, (one, other)) in first.iter().zip(&second).enumerate().filter(|(n, _)| n % 25 == 0) {
            assert!(other.1 > one.1, "frame {frame}");
        }
    }

    #[test]
    fn a_clock_that_goes_wrong_is_followed_at_key_frames() {
        let mut timeline = Timeline::new(90_000, 2);
        let mut apart = 0;
        for frame in 0..25_u32 * 600 {
            let at = Time::from_millis(u64::from(frame) * 40);
            for rendition in 0..2 {
                // The second one's clock is 0.01 % slow.
                let timestamp = frame * FRAME as u32 - rendition as u32 * (frame * FRAME as u32 / 10_000);
                let stamp = Stamp { arrived: at, timestamp, first: true, opens: frame % 25 == 0 };
                let shifted = timestamp.wrapping_add(timeline.shift(rendition, stamp));
                apart = apart.max(shifted.abs_diff(frame * FRAME as u32));
            }
        }
        assert!((1..=90_000 / APART_PARTS + 100).contains(&apart), "{apart}");
    }

    /// A rendition's encoder: how long it takes for a frame, beside the time between two, in ms.
    type Encoder = fn(u64) -> f64;

    /// Plays renditions of 25 frames a second for `seconds`, with a key frame every 12; a frame comes when its
    /// encoder is done with it. `each` gets the timeline, the rendition, what came of it, and the shifted timestamp.
    fn encode(encoders: &[Encoder], seconds: f64, mut each: impl FnMut(&Timeline, usize, Stamp, u32)) {
        let mut timeline = Timeline::new(90_000, encoders.len());
        // When each is done with its next frame, and which that is.
        let mut next: Vec<(f64, u64)> = encoders.iter().map(|takes| (takes(0), 0)).collect();
        loop {
            let first =
                (0..next.len()).min_by(|a, b| next[*a].0.total_cmp(&next[*b].0)).expect("there are some");
            let (at, frame) = next[first];
            if at > seconds * 1000.0 {
                return;
            }
            let takes = encoders[first](frame + 1);
            // A frame is there at its time, and encoded when the one before is.
            next[first] = (at.max((frame + 1) as f64 * 40.0) + takes, frame + 1);
            let (arrived, timestamp) = (Time::from_millis(1000 + at as u64), (frame * FRAME) as u32);
            let stamp = Stamp { arrived, timestamp, first: true, opens: frame % 12 == 0 };
            let shifted = timestamp.wrapping_add(timeline.shift(first, stamp));
            each(&timeline, first, stamp, shifted);
        }
    }

    #[test]
    fn receivers_can_change_at_each_key_frame_however_slow_the_encoders_are() {
        let encoders: [Encoder; 3] = [|_| 130.0, |frame| if frame % 12 == 0 { 80.0 } else { 47.0 }, |_| 1.0];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut newest = [None::<u32>; 3];
            encode(&order.map(|at| encoders[at]), 120.0, |timeline, rendition, stamp, shifted| {
                if stamp.opens {
                    for other in newest.iter().flatten() {
                        let late = other.wrapping_sub(shifted).cast_signed();
                        let at = stamp.arrived;
                        assert!(
                            timeline.is_at_once(late),
                            "{order:?}, {rendition} at {at:?}: {late} ticks late"
                        );
                    }
                }
                newest[rendition] = Some(shifted);
            });
        }
    }

    #[test]
    fn timestamps_run_no_faster_because_key_frames_take_longer() {
        let encoders: [Encoder; 2] = [|frame| if frame % 12 == 0 { 15.0 } else { 3.0 }, |_| 2.0];
        let mut apart = 0;
        encode(&encoders, 3600.0, |_, _, stamp, shifted| {
            apart = apart.max(shifted.wrapping_sub(stamp.timestamp).cast_signed().unsigned_abs());
        });
        assert!(apart <= 90_000 / APART_PARTS + 3_600, "{apart} ticks");
    }
}
