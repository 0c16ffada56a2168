//! How long packets wait on the way, from when they arrive and the timestamps of their frames.
//!
//! A frame leaves its sender over some time, all of its packets with one timestamp; and where there are B
//! pictures, frames leave before others that are shown earlier. Neither is waiting.

use core::time::Duration;
use std::collections::VecDeque;

use outflow_media::Time;

/// What is best, and how long frames take to leave, is looked for over so long, and at most twice that: clocks
/// drift, ways and levels change.
const LEARN_OVER: Duration = Duration::from_secs(10);

/// A frame whose successor waits less than that took no longer than its sender had it take.
const CALM: Duration = Duration::from_millis(25);

/// Frames between two that are shown next to each other, at most: H.264 and H.265 allow 16, encoders use fewer.
const DEPTH_MAX: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Frame {
    media: Time,
    began: Time,
    /// From its first packet to its last.
    spread: Duration,
    /// The time that its first packet took, in nanoseconds: the sender's clock is another one.
    took: i128,
}

/// The value of the present period, and of the one before.
#[derive(Debug, Clone, Copy)]
struct Learned<T> {
    present: Option<T>,
    before: Option<T>,
}

impl<T: Copy> Learned<T> {
    const NOTHING: Self = Learned { present: None, before: None };

    fn learn(&mut self, value: T, pick: fn(T, T) -> T) {
        self.present = Some(self.present.map_or(value, |known| pick(known, value)));
    }

    fn get(&self, pick: fn(T, T) -> T) -> Option<T> {
        let both = self.present.zip(self.before).map(|(present, before)| pick(before, present));
        both.or(self.present).or(self.before)
    }

    /// A new period begins. Where the last one told nothing, what was known before stays.
    fn rotate(&mut self) {
        self.before = self.present.take().or(self.before);
    }
}

/// Measures how much later packets come than at best.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    least: Learned<i128>,
    spread: Learned<Duration>,
    period: Time,
    /// The newest frame last, and as many before it as may leave out of order.
    frames: VecDeque<Frame>,
    depth: usize,
    /// Frames in a row that are shown before one that came earlier.
    early: usize,
    newest: Time,
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting {
            least: Learned::NOTHING,
            spread: Learned::NOTHING,
            period: Time::ZERO,
            frames: VecDeque::new(),
            depth: 0,
            early: 0,
            newest: Time::ZERO,
        }
    }
}

impl Waiting {
    /// Notes a packet. Returns how much longer it was on its way than packets are at best.
    pub(crate) fn arrived(&mut self, now: Time, media: Time) -> Duration {
        if now.since(self.period) >= LEARN_OVER {
            self.least.rotate();
            self.spread.rotate();
            self.period = now;
        }
        let took = i128::from(now.as_nanos()) - i128::from(media.as_nanos());
        self.least.learn(took, i128::min);
        if self.frames.back().is_none_or(|frame| frame.media != media) {
            self.begin(now, media, took);
            return self.standing();
        }
        let late = self.late(took);
        let Some(frame) = self.frames.back_mut() else { return Duration::ZERO };
        let offset = now.since(frame.began);
        frame.spread = frame.spread.max(offset);
        // As long as it is not known how long frames take, none takes too long.
        let Some(usual) = self.spread.get(Duration::max) else { return Duration::ZERO };
        // Either its frame takes longer than frames do, or it began late, and this packet, too, is later than
        // it would be at the end of a frame.
        let stretched = offset.saturating_sub(usual);
        stretched.max(self.standing().min(late.saturating_sub(usual)))
    }

    /// How much longer than the best.
    fn late(&self, took: i128) -> Duration {
        let late = self.least.get(i128::min).map_or(0, |best| took - best);
        Duration::from_nanos(late.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// A packet of another frame than before.
    fn begin(&mut self, now: Time, media: Time, took: i128) {
        if media < self.newest {
            self.early += 1;
            self.depth = self.depth.max(self.early.min(DEPTH_MAX));
        } else {
            (self.early, self.newest) = (0, media);
        }
        let before = self.frames.back().map(|frame| frame.spread);
        self.frames.push_back(Frame { media, began: now, spread: Duration::ZERO, took });
        while self.frames.len() > self.depth + 1 {
            self.frames.pop_front();
        }
        if let Some(spread) = before.filter(|_| self.standing() <= CALM) {
            self.spread.learn(spread, Duration::max);
        }
    }

    /// How late the least late of the last frames began: one that is shown before others leaves late.
    fn standing(&self) -> Duration {
        let least = self.frames.iter().map(|frame| frame.took).min();
        least.map_or(Duration::ZERO, |took| self.late(took))
    }
}
