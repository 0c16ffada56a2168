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
    /// A receiver cannot go on without a key frame of this track.
    KeyFrame {
        /// The track, as the publisher numbers it.
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
    /// Track of which a key frame is wanted.
    wanted: Option<u8>,
    asked_at: Option<Time>,
    reception: Reception,
    lost_sum: u64,
    handed_on_at: Option<Time>,
}

impl Gathered {
    /// A receiver wants a key frame of a track.
    pub(crate) fn want_key_frame(&mut self, track: u8) {
        self.wanted.get_or_insert(track);
    }

    /// A key frame of the stream came in: receivers that waited for one have it.
    pub(crate) fn key_frame_came(&mut self) {
        self.wanted = None;
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
            Feedback::KeyFrame { track } => self.want_key_frame(track),
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
        if let Some(track) = self.wanted.filter(|_| is_due(now, self.asked_at, KEY_FRAME_EVERY)) {
            (self.wanted, self.asked_at) = (None, Some(now));
            return Some(Feedback::KeyFrame { track });
        }
        if !self.has_reception() || !is_due(now, self.handed_on_at, RECEPTION_EVERY) {
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
        let after = |last: Option<Time>, every| last.map_or(Time::ZERO, |last| last + every);
        let key_frame = self.wanted.map(|_| after(self.asked_at, KEY_FRAME_EVERY));
        let reception = self.has_reception().then(|| after(self.handed_on_at, RECEPTION_EVERY));
        key_frame.into_iter().chain(reception).min()
    }

    fn has_reception(&self) -> bool {
        self.reception.reports > 0 || self.reception.estimate_bps.is_some()
    }
}

fn is_due(now: Time, last: Option<Time>, every: Duration) -> bool {
    last.is_none_or(|last| now.since(last) >= every)
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
        (0..100).for_each(|_| gathered.want_key_frame(1));
        assert_eq!(gathered.poll(at(0)), Some(Feedback::KeyFrame { track: 1 }));
        (0..100).for_each(|_| gathered.want_key_frame(1));
        assert_eq!(gathered.poll(at(999)), None);
        assert_eq!(gathered.next_timeout(), Some(at(1_000)));
        assert_eq!(gathered.poll(at(1_000)), Some(Feedback::KeyFrame { track: 1 }));
        assert_eq!((gathered.poll(at(5_000)), gathered.next_timeout()), (None, None));
    }

    #[test]
    fn nothing_is_asked_for_that_has_come_meanwhile() {
        let mut gathered = Gathered::default();
        gathered.want_key_frame(0);
        assert!(gathered.poll(at(0)).is_some());
        gathered.want_key_frame(0);
        gathered.key_frame_came();
        assert_eq!((gathered.poll(at(2_000)), gathered.next_timeout()), (None, None));
    }

    #[test]
    fn what_replicas_have_gathered_counts_like_what_was_heard_here() {
        let (mut owner, mut replica) = (Gathered::default(), Gathered::default());
        owner.lost(0);
        [64, 128].into_iter().for_each(|share| replica.lost(share));
        owner.add(replica.poll(at(0)).expect("two reports"));
        owner.add(Feedback::KeyFrame { track: 2 });
        assert_eq!(owner.poll(at(0)), Some(Feedback::KeyFrame { track: 2 }));
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
