//! Decoding times, which RTP does not carry, from presentation times in decoding order.

use outflow_media::codec::sps::MAX_REORDER;

/// The spacing assumed of frames before the first one, in ticks: 20 ms.
const ASSUMED_SPACING: i64 = 1_800;
const PLACES: usize = MAX_REORDER as usize + 1;

/// Gives decoding times that always grow and are never behind the presentation time.
///
/// With `depth` frames of reordering, the decoding times are the presentation times in their
/// order, `depth` frames later. Where the depth turns out to be larger than it was said to be,
/// it is raised, and the one frame that shows it is presented when it is decoded.
#[derive(Debug, Clone)]
pub(super) struct DecodeOrder {
    depth: usize,
    /// The presentation times not yet used as decoding times, in order.
    waiting: [i64; PLACES],
    count: usize,
    last: Option<i64>,
    /// What waits is of another timeline than what comes.
    fresh: bool,
}

impl DecodeOrder {
    pub(super) fn new(depth: u8) -> Self {
        let depth = usize::from(depth.min(MAX_REORDER));
        DecodeOrder { depth, waiting: [0; PLACES], count: 0, last: None, fresh: true }
    }

    /// The decoder was told another depth; a smaller one is not followed.
    pub(super) fn raise(&mut self, depth: u8) {
        self.depth = self.depth.max(usize::from(depth.min(MAX_REORDER)));
    }

    /// The next frame is not a continuation of those before, except that decoding times grow.
    pub(super) fn restart(&mut self) {
        self.fresh = true;
    }

    /// Presentation and decoding time of the next frame in decoding order.
    pub(super) fn next(&mut self, presentation: i64) -> (i64, i64) {
        if std::mem::take(&mut self.fresh) {
            self.count = 0;
            for back in (1..=self.depth).rev() {
                self.insert(presentation - ASSUMED_SPACING * back as i64);
            }
        }
        self.insert(presentation);
        let earliest = self.last.map_or(i64::MIN, |last| last + 1);
        // A depth that was raised is reached by using a time between.
        let decoding = if self.count > self.depth { self.take().max(earliest) } else { earliest };
        if decoding > presentation && self.depth < usize::from(MAX_REORDER) {
            self.depth += 1;
        }
        self.last = Some(decoding);
        (presentation.max(decoding), decoding)
    }

    fn insert(&mut self, time: i64) {
        if self.count == PLACES {
            self.take();
        }
        self.waiting[self.count] = time;
        self.count += 1;
        self.waiting[..self.count].sort_unstable();
    }

    fn take(&mut self) -> i64 {
        let first = self.waiting[0];
        self.waiting.copy_within(1..self.count, 0);
        self.count = self.count.saturating_sub(1);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(depth: u8, presentation: &[i64]) -> Vec<(i64, i64)> {
        let mut order = DecodeOrder::new(depth);
        let times: Vec<_> = presentation.iter().map(|p| order.next(*p)).collect();
        assert!(times.windows(2).all(|w| w[0].1 < w[1].1), "{times:?} must grow");
        assert!(times.iter().all(|(p, d)| d <= p), "{times:?} must not be behind");
        times
    }

    fn decoding(depth: u8, presentation: &[i64]) -> Vec<i64> {
        times(depth, presentation).into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn without_reordering_both_are_the_same() {
        assert_eq!(times(0, &[0, 3600, 7200]), [(0, 0), (3600, 3600), (7200, 7200)]);
    }

    #[test]
    fn b_frames_are_decoded_one_frame_later() {
        let presentation = [0, 10_800, 3_600, 7_200, 21_600, 14_400, 18_000];
        assert_eq!(decoding(1, &presentation), [-1_800, 0, 3_600, 7_200, 10_800, 14_400, 18_000]);
    }

    #[test]
    fn pyramids_are_decoded_two_frames_later() {
        // I0 P4 B2 b1 b3.
        let presentation = [0, 4, 2, 1, 3, 8, 6, 5, 7].map(|p| p * 3_600);
        let decoded = decoding(2, &presentation);
        assert_eq!(decoded[2..], [0, 1, 2, 3, 4, 5, 6].map(|p| p * 3_600));
    }

    #[test]
    fn a_depth_that_was_not_said_is_learnt() {
        let presentation: Vec<i64> =
            (0..10).flat_map(|group| [4, 2, 1, 3].map(|p| (group * 4 + p) * 3_600)).collect();
        let times = times(0, &presentation);
        let moved = times.iter().zip(&presentation).filter(|(t, p)| t.0 != **p).count();
        assert!(moved <= 4, "{moved} frames are shown late");
        assert_eq!(times.last().map(|t| t.0), presentation.last().copied());
    }

    #[test]
    fn a_restart_forgets_what_waits() {
        let mut order = DecodeOrder::new(1);
        order.next(1_000_000);
        order.next(1_007_200);
        order.restart();
        assert_eq!(order.next(2_000_000), (2_000_000, 2_000_000 - ASSUMED_SPACING));
        assert_eq!(order.next(2_003_600), (2_003_600, 2_000_000));
    }

    #[test]
    fn leaps_and_repeated_times_keep_the_order() {
        times(2, &[0, 0, 0, 1_000_000, 5, 5, -700, 2_000_000]);
        let many: Vec<i64> = (0..200).map(|i| (i * 7919) % 1000).collect();
        times(16, &many);
    }
}
