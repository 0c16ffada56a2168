//! Which flows are alike, so that they may share a buffer.
//!
//! Flows that share a buffer share losses: room for one is made at another's. That pays where the others have
//! packets of about the same worth, and as many of them to choose from: a stream of 100 kbit/s beside one of
//! 8 Mbit/s would lose a whole picture for a fraction of the other's, and a stream with a tenth of the pictures
//! would wait behind ten times as many. So flows are alike if they are of the same medium, their mean rates are
//! within a factor of [`SIMILAR_RATES`] of each other, and, but for data, which has none, so are the numbers of
//! their frames within one of [`SIMILAR_FRAME_RATES`]: 24 and 30 pictures a second are alike, as are 720p and
//! 1080p, a thumbnail and the main stream are not. A factor is wide on purpose: the more flows share a buffer,
//! the less they lose together (ABD, section 5), and rates of one and the same encoder vary by two.
//!
//! A flow begins with those of its medium. It is measured over [`SIMILAR_WINDOW`], and where it is not like the
//! others that have been measured, it goes to the first group with which it is, or begins one. It leaves a group
//! only if it differs by a quarter more than that, so that it does not go to and fro.

use outflow_media::{Tag, Time};

use crate::flow::{ApplicationId, FlowId, Medium};
use crate::limits::{SIMILAR_FRAME_RATES, SIMILAR_GROUPS_MAX, SIMILAR_RATES, SIMILAR_WINDOW};

/// Measures flows and says which of them are alike.
#[derive(Debug, Default)]
pub struct Similar {
    /// By number.
    flows: Vec<Option<Measured>>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    application: ApplicationId,
    since: Time,
    bytes: u64,
    frames: u64,
    newest: Option<u32>,
    /// Over the last window: bytes and frames.
    mean: Option<(u64, u64)>,
}

impl Similar {
    /// A flow comes. Returns its application.
    pub fn begin(&mut self, now: Time, flow: FlowId, medium: Medium) -> ApplicationId {
        let application = ApplicationId::of(medium, 0);
        if self.flows.len() <= flow.0 {
            self.flows.resize(flow.0 + 1, None);
        }
        let begun = Measured { application, since: now, bytes: 0, frames: 0, newest: None, mean: None };
        self.flows[flow.0] = Some(begun);
        application
    }

    /// A flow ends.
    pub fn end(&mut self, flow: FlowId) {
        if let Some(place) = self.flows.get_mut(flow.0) {
            *place = None;
        }
    }

    /// A packet of a flow. Returns its application, as it is to be from now on.
    pub fn look(&mut self, now: Time, flow: FlowId, tag: &Tag, bytes: usize) -> Option<ApplicationId> {
        let measured = self.flows.get_mut(flow.0)?.as_mut()?;
        measured.bytes += bytes as u64;
        if measured.newest != Some(tag.frame) {
            measured.newest = Some(tag.frame);
            measured.frames += 1;
        }
        let passed = now.since(measured.since);
        if passed >= SIMILAR_WINDOW {
            let a_window = |count: u64| {
                let scaled = u128::from(count) * SIMILAR_WINDOW.as_nanos() / passed.as_nanos();
                u64::try_from(scaled).unwrap_or(u64::MAX)
            };
            let mean = (a_window(measured.bytes), a_window(measured.frames));
            *measured = Measured { since: now, bytes: 0, frames: 0, mean: Some(mean), ..*measured };
            let (application, of) = (measured.application, *measured);
            let place = self.place(flow, application, mean);
            self.flows[flow.0] = Some(Measured { application: place, ..of });
            return Some(place);
        }
        Some(measured.application)
    }

    /// Where a flow belongs that has now this mean.
    fn place(&self, flow: FlowId, now_in: ApplicationId, mean: (u64, u64)) -> ApplicationId {
        let fits = |application: ApplicationId, (parts, of): (u64, u64)| {
            let others = self.flows.iter().enumerate().filter(|(other, _)| *other != flow.0);
            let mut others =
                others.filter_map(|(_, other)| other.filter(|o| o.application == application)?.mean);
            let is_data = application.medium() == Medium::Data;
            others.all(|other| {
                within(mean.0, other.0, SIMILAR_RATES, (parts, of))
                    && (is_data || within(mean.1, other.1, SIMILAR_FRAME_RATES, (parts, of)))
            })
        };
        if fits(now_in, (5, 4)) {
            return now_in;
        }
        let groups = (0..SIMILAR_GROUPS_MAX).map(|group| ApplicationId::of(now_in.medium(), group));
        groups.into_iter().find(|group| fits(*group, (1, 1))).unwrap_or(now_in)
    }
}

/// Whether two numbers are within `factor` times `parts` / `of` of each other.
fn within(one: u64, other: u64, factor: u64, (parts, of): (u64, u64)) -> bool {
    let (low, high) = (one.min(other).max(1), one.max(other).max(1));
    u128::from(high) * u128::from(of) <= u128::from(low) * u128::from(factor * parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows that come with these bits and frames a second, for three windows.
    fn grouped(flows: &[(Medium, u64, u64)]) -> Vec<ApplicationId> {
        let mut similar = Similar::default();
        let of = |(number, (medium, ..)): (usize, &(Medium, _, _))| (FlowId(number), *medium);
        flows.iter().enumerate().map(of).for_each(|(flow, medium)| {
            similar.begin(Time::ZERO, flow, medium);
        });
        let mut last = vec![ApplicationId(99); flows.len()];
        for ms in 0..SIMILAR_WINDOW.as_millis() as u64 * 3 + 1 {
            for (number, (_, bps, fps)) in flows.iter().enumerate() {
                let tag = Tag { frame: (ms * fps / 1000) as u32, ..Tag::default() };
                let now = Time::from_millis(ms);
                last[number] = similar.look(now, FlowId(number), &tag, (bps / 8000) as usize).expect("known");
            }
        }
        last
    }

    #[test]
    fn those_of_about_the_same_rates_are_alike() {
        let alike = grouped(&[
            (Medium::Video, 4_000_000, 24),
            (Medium::Video, 6_000_000, 30),
            (Medium::Video, 8_000_000, 25),
            (Medium::Audio, 128_000, 47),
        ]);
        let video = ApplicationId::of(Medium::Video, 0);
        assert_eq!(alike, [video, video, video, ApplicationId::of(Medium::Audio, 0)]);
    }

    #[test]
    fn a_thumbnail_is_not_like_the_main_stream_and_slow_pictures_not_like_fast_ones() {
        let groups = grouped(&[
            (Medium::Video, 8_000_000, 25),
            (Medium::Video, 104_000, 25),
            (Medium::Video, 8_000_000, 5),
            (Medium::Video, 160_000, 30),
            (Medium::Data, 8_000, 1),
            (Medium::Data, 24_000, 1000),
        ]);
        let video = |group| ApplicationId::of(Medium::Video, group);
        assert_eq!(groups[..4], [video(0), video(1), video(2), video(1)]);
        assert_eq!(groups[4..], [ApplicationId::of(Medium::Data, 0); 2], "data has no frames");
    }

    #[test]
    fn one_that_is_about_the_factor_apart_does_not_go_to_and_fro() {
        assert!(within(400, 100, 4, (1, 1)) && !within(401, 100, 4, (1, 1)));
        assert!(within(500, 100, 4, (5, 4)) && !within(501, 100, 4, (5, 4)));
        assert!(within(0, 0, 4, (1, 1)));
    }

    #[test]
    fn numbers_tell_medium_and_group() {
        for medium in Medium::ALL {
            let application = ApplicationId::of(medium, 3);
            assert_eq!((application.medium(), application.group()), (medium, 3));
        }
    }
}
