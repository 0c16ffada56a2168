//! Receivers ask for a quality over RTCP, or by a session of their own, or say what their way carries (GMS,
//! section III.C: the `negotiate_server`).
//!
//! The driver hands over what came from a receiver's own address. That is no proof, so a request also names
//! the SSRC that only its receivers know, and its number rises: one that was recorded, or guessed, is
//! refused.

use outflow_graph::Unfit;
use outflow_media::Time;
use outflow_packet::Level;
use outflow_rtp::rtcp::{LevelAnswer, LevelRequest, Limit};

use super::levels::Levels;
use super::{State, Stream};
use crate::limits::{LEVEL_HEADROOM_PERCENT, LEVEL_REQUEST_EVERY};
use crate::requests::Refusal;
use crate::schedule::{SinkKey, Wish};

/// What a receiver gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The level, 1 is the best.
    pub level: u8,
    /// Bits a second of each level, the best first; none before that is known.
    pub rates: Vec<u64>,
}

impl Stream {
    /// A receiver asks for a level. Returns what to answer; nothing to a receiver that may not ask.
    ///
    /// The same request again changes nothing and is answered again.
    pub fn handle_level_request(
        &mut self,
        now: Time,
        key: SinkKey,
        request: LevelRequest,
    ) -> Option<LevelAnswer> {
        let media = self.media_of(key)?;
        let asked = &mut self.state.out.sinks.get_mut(key.0)?.asked;
        if !asked.may(now) {
            return None;
        }
        let LevelRequest { number, level, media: named } = request;
        let step = asked.step(number);
        if named != media || step < 0 {
            asked.refuse(if named != media { Refusal::Foreign } else { Refusal::Replayed });
            return None;
        }
        asked.take(Some(number));
        if step > 0 && Level::new(level).is_none_or(|level| self.set_level(key, level).is_err()) {
            self.state.out.sinks.get_mut(key.0)?.asked.refuse(Refusal::NoSuchLevel);
        }
        let Granted { level, rates } = self.granted(now, key);
        let bytes = |bps: &u64| u32::try_from(bps / 8).unwrap_or(u32::MAX);
        Some(LevelAnswer { number, level, media, rates: rates.iter().map(bytes).collect() })
    }

    /// A receiver asks what it gets, and for a level if it names one, in a way that proves its identity.
    /// Returns what it gets now.
    ///
    /// # Errors
    /// It asks too often, or there is no such level; it keeps the one it has.
    pub fn handle_session_request(
        &mut self,
        now: Time,
        key: SinkKey,
        level: Option<u8>,
    ) -> Result<Granted, (Refusal, Unfit)> {
        if let Some(sink) = self.state.out.sinks.get_mut(key.0) {
            if !sink.asked.may(now) {
                let often = LEVEL_REQUEST_EVERY.as_millis();
                let what = format!("a session is asked once in {often} ms, and that was more often");
                return Err((Refusal::TooMany, Unfit::new(what, "wait a moment, and ask again")));
            }
            sink.asked.take(None);
        }
        if let Some(number) = level {
            let help = || format!("write 1 (the best) to {}", Level::MAX);
            let known = Level::new(number);
            let known = known.ok_or_else(|| Unfit::new(format!("there is no level {number}"), help()));
            if let Err(unfit) = known.and_then(|level| self.set_level(key, level)) {
                let sink = self.state.out.sinks.get_mut(key.0);
                sink.into_iter().for_each(|sink| sink.asked.refuse(Refusal::NoSuchLevel));
                return Err((Refusal::NoSuchLevel, unfit));
            }
        }
        Ok(self.granted(now, key))
    }

    /// A receiver says that its way carries so much: it gets the best level that fits, and that is no better than the
    /// one that it asked for. Returns whether that was taken, whatever has changed.
    pub fn handle_limit(&mut self, now: Time, key: SinkKey, limit: Limit) -> bool {
        let Some(media) = self.media_of(key) else { return false };
        let Some(sink) = self.state.out.sinks.get_mut(key.0) else { return false };
        // Before any work for it.
        if !sink.asked.may(now) {
            return false;
        }
        if limit.media != media {
            sink.asked.refuse(Refusal::Foreign);
            return false;
        }
        sink.asked.take(None);
        let wish = sink.wish;
        let rates = self.rates_of(now, key);
        match affordable(&rates, limit.bps, wish.carried).filter(|level| *level != wish.carried) {
            Some(carried) => self.set_wish(key, Wish { carried, ..wish }),
            None => self.want_layers(key),
        }
        true
    }

    /// Asks for a key frame if a sink still takes fewer layers than it is to get: none has opened since it was told so.
    fn want_layers(&mut self, key: SinkKey) {
        if let Some(track) = self.state.closed_to(key) {
            self.handle_key_frame_request(key, track);
        }
    }
}

impl State {
    /// The main track of a sink that takes fewer of its layers than it is to get.
    fn closed_to(&self, key: SinkKey) -> Option<u8> {
        let sink = self.sink(key)?;
        let index = sink.branch?;
        let layers = self.out.levels_at(index).count(&self.out);
        let wanted = sink.spec.level.of(layers).layer().min(layers.saturating_sub(1));
        self.main_track(index).filter(|_| sink.max_layer().layer() < wanted)
    }

    fn granted(&self, now: Time, key: SinkKey) -> Granted {
        let rates = self.rates_of(now, key);
        let level = self.spec(key).map_or(Level::BEST, |spec| spec.level);
        // Beyond the last level there is the base.
        let last = u8::try_from(rates.len()).ok().filter(|last| *last > 0).unwrap_or(Level::MAX);
        Granted { level: level.number().min(last), rates }
    }

    /// The SSRC of the main track of what a sink receives.
    fn media_of(&self, key: SinkKey) -> Option<u32> {
        let branch = self.sink(key)?.branch?;
        Some(self.out.branch_sender(branch, self.main_track(branch)?)?.1)
    }
}

/// The best level that costs no more than `bps`, or the base. One that is better than `current` has to leave
/// some room, so that an estimate that swings does not change the level all the time. `None` where there is
/// nothing to choose.
fn affordable(rates: &[u64], bps: u64, current: Level) -> Option<Level> {
    if rates.len() < 2 {
        return None;
    }
    let fits = |(level, rate): &(Level, u64)| {
        let percent = if *level < current { 100 + LEVEL_HEADROOM_PERCENT } else { 100 };
        rate.saturating_mul(percent) <= bps.saturating_mul(100)
    };
    let levels = || (1..=rates.len() as u8).filter_map(Level::new).zip(rates.iter().copied());
    levels().find(fits).or(levels().last()).map(|(level, _)| level)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use outflow_media::{Codec, Format, Track};
    use outflow_packet::{Incoming, MaxLayer};

    use super::*;
    use crate::control::{LevelBounds, StreamOptions};
    use crate::feedback::Feedback;
    use crate::limits::LEVEL_REQUESTS_BURST;
    use crate::schedule::{Encapsulation, SinkSpec, Transport};

    const SSRC: u32 = 0x0102_0304;

    /// A stream of H.264 that has run for two seconds, and a receiver of it.
    fn playing() -> (Stream, SinkKey, Time) {
        let mut stream = Stream::new(StreamOptions::default());
        let codec = Codec::H264 { sps: None, pps: None };
        let track = Track { codec, payload_type: 96, encoding: "H264".to_owned(), ..Track::mp2t() };
        stream.handle_source(Time::ZERO, Format::Rtp(vec![track]));
        let key = stream.handle_join(Time::ZERO, 1, SinkSpec::new(Encapsulation::Rtp, Transport::Stream));
        let mut now = Time::ZERO;
        for frame in 0..50_u16 {
            now = Time::from_millis(u64::from(frame) * 40);
            // IDR, P, B that nothing else needs.
            let (nal, slice) = match (frame % 25, frame % 2) {
                (0, _) => (0x65, 0x88),
                (_, 0) => (0x61, 0xe0),
                _ => (0x01, 0x9c),
            };
            let mut bytes = vec![0x80, 96 | 0x80];
            bytes.extend_from_slice(&frame.to_be_bytes());
            bytes.extend_from_slice(&(u32::from(frame) * 3600).to_be_bytes());
            bytes.extend_from_slice(&SSRC.to_be_bytes());
            bytes.extend_from_slice(&[nal, slice]);
            bytes.resize(1000, 0xff);
            stream.handle_media(now, 0, Incoming::Shared(Bytes::from(bytes)));
        }
        (stream, key, now)
    }

    fn request(number: u16, level: u8) -> LevelRequest {
        LevelRequest { number, level, media: SSRC }
    }

    fn level(stream: &Stream, key: SinkKey) -> u8 {
        stream.spec(key).expect("there").level.number()
    }

    #[test]
    fn a_request_is_taken_answered_and_answered_again() {
        let (mut stream, key, now) = playing();
        let answer = stream.handle_level_request(now, key, request(7, 2)).expect("an answer");
        assert_eq!((answer.number, answer.level, answer.media), (7, 2, SSRC));
        assert_eq!(answer.rates.len(), 3, "I, P and B");
        assert!(answer.rates[0] > answer.rates[1] && answer.rates[1] > answer.rates[2], "{:?}", answer.rates);
        // Another caller has changed it since: the same request again is only a sign of life.
        stream.set_level(key, Level::new(3).expect("a level")).expect("there is one");
        let again = stream.handle_level_request(now, key, request(7, 2)).expect("an answer");
        assert_eq!((again.level, level(&stream, key)), (3, 3));
    }

    #[test]
    fn what_is_old_foreign_or_impossible_changes_nothing() {
        let (mut stream, key, now) = playing();
        stream.handle_level_request(now, key, request(65_535, 2)).expect("an answer");
        stream.handle_level_request(now, key, request(3, 1)).expect("numbers wrap");
        assert_eq!(stream.handle_level_request(now, key, request(65_535, 2)), None);
        let foreign = LevelRequest { media: 1, ..request(4, 3) };
        assert_eq!(stream.handle_level_request(now, key, foreign), None);
        for (number, level) in [(4, 0), (5, 4), (6, 255)] {
            let answer = stream.handle_level_request(now, key, request(number, level)).expect("an answer");
            assert_eq!(answer.level, 1, "that it has");
        }
        let asked = stream.sink(key).expect("there").asked;
        assert_eq!((asked.taken, asked.refused), (5, [0, 1, 1, 3]));
        assert_eq!(level(&stream, key), 1);
    }

    #[test]
    fn a_thousand_requests_a_second_are_bounded() {
        let (mut stream, key, now) = playing();
        let at = |i: u16| now + core::time::Duration::from_millis(i.into());
        let answers = (0..1000).filter_map(|i| stream.handle_level_request(at(i), key, request(i, 2)));
        let answered = answers.count() as u64;
        let expected = 1 + u64::from(LEVEL_REQUESTS_BURST) + 1000 / LEVEL_REQUEST_EVERY.as_millis() as u64;
        assert!(answered.abs_diff(expected) <= 1, "{answered} of about {expected}");
        assert_eq!(stream.sink(key).expect("there").asked.refused, [1000 - answered, 0, 0, 0]);
    }

    #[test]
    fn one_that_says_what_its_way_carries_gets_what_fits() {
        let (mut stream, key, now) = playing();
        let rates = stream.rates_of(now, key);
        let mut tell = |bps: u64, seconds: u64| {
            let limit = Limit { media: SSRC, bps, overhead: 0 };
            assert!(stream.handle_limit(now + core::time::Duration::from_secs(seconds), key, limit));
            level(&stream, key)
        };
        assert_eq!(tell(rates[0], 0), 1);
        assert_eq!(tell(rates[0] - 1, 0), 2);
        assert_eq!(tell(rates[0] + 1, 0), 2, "no room to spare");
        assert_eq!(tell(rates[0] * 2, 0), 1);
        assert_eq!(tell(1, 0), 3, "the base in any case");
        assert!(!stream.handle_limit(now, key, Limit { media: 5, bps: u64::MAX, overhead: 0 }));
    }

    #[test]
    fn one_that_asked_for_a_level_gets_no_better_one_by_what_its_way_carries() {
        let (mut stream, key, now) = playing();
        stream.set_level(key, Level::new(2).expect("a level")).expect("there is one");
        let rates = stream.rates_of(now, key);
        let tell = |stream: &mut Stream, bps: u64, seconds: u64| {
            let limit = Limit { media: SSRC, bps, overhead: 0 };
            assert!(stream.handle_limit(now + core::time::Duration::from_secs(seconds), key, limit));
            level(stream, key)
        };
        assert_eq!(tell(&mut stream, u64::MAX, 0), 2);
        assert_eq!(tell(&mut stream, 1, 1), 3);
        stream.set_level(key, Level::BEST).expect("there is one");
        assert_eq!(level(&stream, key), 3, "what its way carries");
        assert_eq!(tell(&mut stream, rates[0] * 2, 2), 1);
    }

    #[test]
    fn a_key_frame_is_asked_for_where_a_layer_does_not_open_by_itself() {
        let (mut stream, key, now) = playing();
        let mut tell = |seconds: u64, layer: u8| {
            let now = now + core::time::Duration::from_secs(seconds);
            stream.state.out.sinks.get_mut(key.0).expect("there").max_layer = MaxLayer::up_to(layer);
            assert!(stream.handle_limit(now, key, Limit { media: SSRC, bps: u64::MAX, overhead: 0 }));
            stream.state.feedback.poll(now)
        };
        assert_eq!(tell(0, 2), None, "it takes all three");
        assert_eq!(tell(1, 0), Some(Feedback::KeyFrame { rendition: 0, track: 0 }));
        assert_eq!(tell(2, Level::MAX - 1), None);
        let low = Limit { media: SSRC, bps: 1, overhead: 0 };
        let later = now + core::time::Duration::from_secs(3);
        assert!((0..2).all(|_| stream.handle_limit(later, key, low)));
        assert_eq!(stream.state.feedback.poll(later), None, "it is to get no more");
    }

    #[test]
    fn a_session_is_told_what_it_gets_and_asks_no_more_often_than_by_rtcp() {
        let (mut stream, key, now) = playing();
        let told = stream.handle_session_request(now, key, None).expect("an answer");
        assert_eq!((told.level, told.rates.len()), (1, 3));
        assert_eq!(stream.handle_session_request(now, key, Some(2)).map(|told| told.level), Ok(2));
        for (number, help) in [(0, "to 128"), (4, "to 3"), (255, "to 128")] {
            let (refusal, unfit) = stream.handle_session_request(now, key, Some(number)).expect_err("none");
            assert!(refusal == Refusal::NoSuchLevel && unfit.help.ends_with(help), "{unfit}");
        }
        assert_eq!(level(&stream, key), 2);
        let refused = (0..100).map(|_| stream.handle_session_request(now, key, Some(1)));
        let refused = refused.filter(|told| told.as_ref().is_err_and(|(why, _)| *why == Refusal::TooMany));
        let refused = refused.count() as u64;
        let burst = u64::from(LEVEL_REQUESTS_BURST) + 1;
        assert_eq!(refused, 105 - burst);
        assert_eq!(stream.handle_level_request(now, key, request(1, 3)), None, "one budget for both");
        let asked = stream.sink(key).expect("there").asked;
        assert_eq!((asked.taken, asked.refused), (burst, [refused + 1, 0, 0, 3]));
    }

    #[test]
    fn answers_tell_the_level_that_a_bound_leaves() {
        let (mut stream, key, now) = playing();
        let bound = |stream: &mut Stream, to: u8| {
            let mut bounds = LevelBounds::default();
            bounds.lower(None, Level::new(to).expect("a level"));
            stream.set_bounds(bounds);
        };
        bound(&mut stream, 2);
        let ask = |stream: &mut Stream, number, level| {
            stream.handle_level_request(now, key, request(number, level)).expect("an answer").level
        };
        assert_eq!(ask(&mut stream, 1, 1), 2);
        assert_eq!(ask(&mut stream, 2, 3), 3, "less than it may have");
        bound(&mut stream, 100);
        assert_eq!(ask(&mut stream, 3, 1), 3, "the base");
        let second = stream.rates_of(now, key)[1];
        assert!(stream.handle_limit(now, key, Limit { media: SSRC, bps: second, overhead: 0 }));
        assert_eq!(ask(&mut stream, 3, 1), 3);
        bound(&mut stream, 1);
        assert_eq!(level(&stream, key), 2, "what its way carries");
    }
}
