//! What a stream's receivers say that its publisher can do something about, gathered: one request goes up, however
//! many receivers ask.

use core::time::Duration;

use outflow_media::Time;

/// A key frame is asked for no more often. What comes in between is asked for when that time has passed, unless a
/// key frame has come.
pub const KEY_FRAME_EVERY: Duration = Duration::from_secs(1);

/// How often what receivers report is handed on, at most.
pub const RECEPTION_EVERY: Duration = Duration::from_secs(1);

/// For the publisher of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// A receiver cannot go on without a key frame, or waits for one to change the rendition.
    KeyFrame {
        /// The rendition that it is wanted of; 0 if the stream has a source of its own.
        rendition: usize,
        /// The track, as the publisher of that numbers it.
        track: u8,
    },
    /// What receivers have reported since the last time.
    Reception(Reception),
}

/// What receivers report of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reception {
    /// Reports.
    pub reports: u32,
    /// The largest share of packets that one of them lost, in 256ths (RFC 3550, section 6.4.1).
    pub lost_most: u8,
    /// The share that they lost on average, in 256ths.
    pub lost_mean: u8,
    /// The most that the path to one of them carries, bits a second, if one said that.
    pub estimate_bps: Option<u64>,
}

/// Gathers it.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    // bounded: an entry a rendition.
    key_frames: Vec<KeyFrames>,
    reception: Reception,
    lost_sum: u64,
    handed_on_at: Option<Time>,
}

/// Key frames of a rendition.
#[derive(Debug, Clone, Default)]
struct KeyFrames {
    /// Track of which one is wanted.
    wanted: Option<u8>,
    asked_at: Option<Time>,
}

impl KeyFrames {
    /// When one may be asked for, if it is wanted.
    fn due(&self) -> Option<Time> {
        self.wanted.map(|_| self.asked_at.map_or(Time::ZERO, |last| last + KEY_FRAME_EVERY))
    }
}

impl Gathered {
    /// A receiver wants a key frame of a track of a rendition.
    pub(crate) fn want_key_frame(&mut self, rendition: usize, track: u8) {
        if self.key_frames.len() <= rendition {
            self.key_frames.resize(rendition + 1, KeyFrames::default());
        }
        self.key_frames[rendition].wanted.get_or_insert(track);
    }

    /// A key frame of a rendition came in: receivers that waited for one have it.
    pub(crate) fn key_frame_came(&mut self, rendition: usize) {
        self.key_frames.get_mut(rendition).into_iter().for_each(|of| of.wanted = None);
    }

    /// A receiver has lost this share of its packets lately, in 256ths.
    pub(crate) fn lost(&mut self, share: u8) {
        self.reception.reports = self.reception.reports.saturating_add(1);
        self.reception.lost_most = self.reception.lost_most.max(share);
        self.lost_sum += u64::from(share);
    }

    /// The path to a receiver carries that many bits a second, as it says.
    pub(crate) fn estimate(&mut self, bps: u64) {
        self.reception.estimate_bps = self.reception.estimate_bps.max(Some(bps));
    }

    /// What others have gathered.
    pub(crate) fn add(&mut self, feedback: Feedback) {
        match feedback {
            // Whichever rendition of another stream this one is, it has a source of its own.
            Feedback::KeyFrame { track, .. } => self.want_key_frame(0, track),
            Feedback::Reception(Reception { reports, lost_most, lost_mean, estimate_bps }) => {
                let own = &mut self.reception;
                own.reports = own.reports.saturating_add(reports);
                own.lost_most = own.lost_most.max(lost_most);
                own.estimate_bps = own.estimate_bps.max(estimate_bps);
                self.lost_sum += u64::from(lost_mean) * u64::from(reports);
            }
        }
    }

    /// What is to be handed on now.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Feedback> {
        let due = |of: &KeyFrames| of.due().is_some_and(|at| at <= now);
        if let Some(rendition) = self.key_frames.iter().position(due) {
            let of = &mut self.key_frames[rendition];
            of.asked_at = Some(now);
            return of.wanted.take().map(|track| Feedback::KeyFrame { rendition, track });
        }
        let is_due = self.handed_on_at.is_none_or(|last| now.since(last) >= RECEPTION_EVERY);
        if !self.has_reception() || !is_due {
            return None;
        }
        self.handed_on_at = Some(now);
        let reception = core::mem::take(&mut self.reception);
        let lost_mean = core::mem::take(&mut self.lost_sum) / u64::from(reception.reports.max(1));
        let lost_mean = u8::try_from(lost_mean).unwrap_or(u8::MAX);
        Some(Feedback::Reception(Reception { lost_mean, ..reception }))
    }

    /// When to poll next.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let after = |last: Option<Time>| last.map_or(Time::ZERO, |last| last + RECEPTION_EVERY);
        let reception = self.has_reception().then(|| after(self.handed_on_at));
        self.key_frames.iter().filter_map(KeyFrames::due).chain(reception).min()
    }

    fn has_reception(&self) -> bool {
        self.reception.reports > 0 || self.reception.estimate_bps.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(10_000 + ms)
    }

    #[test]
    fn one_request_goes_up_however_many_ask() {
        let mut gathered = Gathered::default();
        (0..100).for_each(|_| gathered.want_key_frame(0, 1));
        assert_eq!(gathered.poll(at(0)), Some(Feedback::KeyFrame { rendition: 0, track: 1 }));
        (0..100).for_each(|_| gathered.want_key_frame(0, 1));
        assert_eq!(gathered.poll(at(999)), None);
        assert_eq!(gathered.next_timeout(), Some(at(1_000)));
        assert_eq!(gathered.poll(at(1_000)), Some(Feedback::KeyFrame { rendition: 0, track: 1 }));
        assert_eq!((gathered.poll(at(5_000)), gathered.next_timeout()), (None, None));
    }

    #[test]
    fn nothing_is_asked_for_that_has_come_meanwhile() {
        let mut gathered = Gathered::default();
        gathered.want_key_frame(0, 0);
        assert!(gathered.poll(at(0)).is_some());
        gathered.want_key_frame(0, 0);
        gathered.key_frame_came(0);
        assert_eq!((gathered.poll(at(2_000)), gathered.next_timeout()), (None, None));
    }

    #[test]
    fn each_rendition_is_asked_by_itself() {
        let mut gathered = Gathered::default();
        gathered.want_key_frame(2, 1);
        assert_eq!(gathered.poll(at(0)), Some(Feedback::KeyFrame { rendition: 2, track: 1 }));
        gathered.want_key_frame(2, 1);
        gathered.want_key_frame(0, 0);
        assert_eq!(gathered.poll(at(1)), Some(Feedback::KeyFrame { rendition: 0, track: 0 }));
        assert_eq!((gathered.poll(at(2)), gathered.next_timeout()), (None, Some(at(1_000))));
        gathered.key_frame_came(2);
        assert_eq!((gathered.poll(at(2_000)), gathered.next_timeout()), (None, None));
    }

    #[test]
    fn what_replicas_have_gathered_counts_like_what_was_heard_here() {
        let (mut owner, mut replica) = (Gathered::default(), Gathered::default());
        owner.lost(0);
        [64, 128].into_iter().for_each(|share| replica.lost(share));
        owner.add(replica.poll(at(0)).expect("two reports"));
        owner.add(Feedback::KeyFrame { rendition: 0, track: 2 });
        assert_eq!(owner.poll(at(0)), Some(Feedback::KeyFrame { rendition: 0, track: 2 }));
        let all = Reception { reports: 3, lost_most: 128, lost_mean: 64, estimate_bps: None };
        assert_eq!(owner.poll(at(0)), Some(Feedback::Reception(all)));
    }

    #[test]
    fn reports_are_put_together() {
        let mut gathered = Gathered::default();
        [0, 128, 64, 64].into_iter().for_each(|share| gathered.lost(share));
        gathered.estimate(2_000_000);
        gathered.estimate(1_000_000);
        let all = Reception { reports: 4, lost_most: 128, lost_mean: 64, estimate_bps: Some(2_000_000) };
        assert_eq!(gathered.poll(at(0)), Some(Feedback::Reception(all)));
        gathered.lost(255);
        assert_eq!(gathered.poll(at(500)), None);
        let next = Reception { reports: 1, lost_most: 255, lost_mean: 255, estimate_bps: None };
        assert_eq!(gathered.poll(at(1_000)), Some(Feedback::Reception(next)));
    }
}
