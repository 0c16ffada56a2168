//! The renditions of a stream: what each carries, whether it is there, and how its packets become the stream's.

use core::time::Duration;

use outflow_media::{Format, Time, Track};
use outflow_packet::receive::Timeline;
use outflow_packet::{DropReason, Level, Parsed, ReportClock};

use super::fit::Fit;
use super::switch::{KeyFrame, Switch};
use crate::control::handed::TrackClock;
use crate::control::origin::Origin;
use crate::limits::RENDITION_AWAITED;
use outflow_ring::Seq;

/// The renditions of a stream.
#[derive(Debug)]
pub(in crate::control) struct Renditions {
    each: Vec<Rendition>,
    /// The one whose format and clocks are the stream's.
    reference: usize,
    timeline: Timeline,
    /// What the clock of its main track was last told to be.
    clock: Option<TrackClock>,
    switch: Switch,
    /// When the first packet of any came.
    began: Option<Time>,
}

/// One of them.
#[derive(Debug, Default)]
struct Rendition {
    /// What it carries; `None` before it ever had a source.
    format: Option<Format>,
    /// Packets of its main track come in.
    is_up: bool,
    /// When the last one did.
    last: Time,
    /// It is not waited for: it went away, or did not come with the others.
    is_missed: bool,
    /// How its packets become the stream's.
    fit: Option<Fit>,
}

/// What a stream gets of a packet of a rendition.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) parsed: Parsed,
    /// It is of the main track.
    pub(super) is_main: bool,
    /// The clock of the reference that is to be told once more.
    pub(super) clock: Option<TrackClock>,
}

impl Renditions {
    pub(in crate::control) fn new(count: usize) -> Self {
        Renditions {
            each: core::iter::repeat_with(Rendition::default).take(count).collect(),
            reference: 0,
            timeline: Timeline::default(),
            clock: None,
            switch: Switch::default(),
            began: None,
        }
    }

    /// Some have come or gone: all sinks are checked.
    pub(super) fn changed(&mut self) {
        self.switch.look_at_all();
    }

    /// Those that have not come, or whose pictures have not for so long, are not waited for any longer.
    pub(super) fn miss(&mut self, now: Time, source_timeout: Duration) {
        if self.began.is_none_or(|began| now.since(began) < RENDITION_AWAITED) {
            return;
        }
        let mut is_any = false;
        for rendition in self.each.iter_mut().filter(|each| !each.is_missed) {
            // Its sound may go on.
            rendition.is_up &= now.since(rendition.last) < source_timeout;
            rendition.is_missed = !rendition.is_up;
            is_any |= rendition.is_missed;
        }
        if is_any {
            self.changed();
        }
    }

    /// How many there are.
    pub(in crate::control) fn count(&self) -> usize {
        self.each.len()
    }

    /// The rendition for a sink that asks for a level: that of this number, or, as long as its source is
    /// away, the next lower one, or else the next better.
    pub(in crate::control) fn of_level(&self, level: Level) -> usize {
        let own = usize::from(level.number() - 1).min(self.each.len().saturating_sub(1));
        let serves = |index: &usize| !self.each[*index].is_passed_over();
        let lower = (own..self.each.len()).find(serves);
        lower.or_else(|| (0..own).rev().find(serves)).unwrap_or(own)
    }

    /// What is wrong with those that cannot be used, and how many are there, in words.
    pub(in crate::control) fn describe(&self) -> String {
        let up = self.each.iter().filter(|rendition| rendition.is_up).count();
        let unfit = (1..).zip(&self.each).filter(|(_, each)| each.format.is_some() && each.fit.is_none());
        let unfit: Vec<String> =
            unfit.map(|(number, _)| format!("number {number} has another codec")).collect();
        let all = self.each.len();
        let there = format!("{up} of {all} renditions");
        if unfit.is_empty() { there } else { format!("{there}; {}", unfit.join(", ")) }
    }

    /// The number of the reference.
    pub(super) fn reference(&self) -> usize {
        self.reference
    }

    /// How the packets of one become the stream's, if they can.
    pub(super) fn fit_of(&self, index: usize) -> Option<&Fit> {
        self.each.get(index)?.fit.as_ref()
    }

    /// Where receivers change.
    pub(super) fn switch(&self) -> &Switch {
        &self.switch
    }

    pub(super) fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// A key frame has come into a branch; receivers of the others may change there.
    pub(super) fn key_frame(
        &mut self,
        came: KeyFrame,
        beside: impl Iterator<Item = (usize, Seq)>,
        is_alone: impl Fn(usize, Seq) -> bool,
    ) {
        self.switch.key_frame(came, beside, (&self.timeline, is_alone));
    }

    /// A rendition carries this from now on. Returns whether it is the reference, and the stream, which was
    /// known to carry something else or nothing, carries this, too.
    pub(super) fn declare(&mut self, index: usize, format: &Format, known: Option<&Format>) -> bool {
        self.each[index].format = Some(format.clone());
        let is_news = known.is_none() || (index == self.reference && known != Some(format));
        if is_news {
            self.reference = index;
            let rate = format.clock_rate(format.main_track());
            self.timeline = Timeline::new(rate, self.count());
        }
        is_news
    }

    /// Finds how the packets of each become those of the stream. Returns what the branch of each carries, where
    /// that is not the stream's own format.
    pub(super) fn fit(&mut self, stream: &Format, ssrc: u32) -> Vec<Option<Format>> {
        for rendition in &mut self.each {
            let fit = |format: &Format| Fit::new(format, stream, ssrc);
            rendition.fit = rendition.format.as_ref().and_then(fit);
        }
        self.each.iter().map(|rendition| rendition.as_of(stream)).collect()
    }

    /// The clock of a track of the reference is this. Returns the stream's, if it is known how far it is from
    /// that; if not, it is told again when packets have shown it.
    pub(super) fn clock(&mut self, told: TrackClock, main_track: u8) -> Option<ReportClock> {
        if told.track != main_track {
            return Some(told.clock);
        }
        self.clock = Some(told);
        Some(told.clock.later(self.timeline.shift_of(self.reference)?))
    }

    /// The source of a rendition is away. Returns whether all are.
    pub(super) fn went_away(&mut self, index: usize) -> bool {
        (self.each[index].is_up, self.each[index].is_missed) = (false, true);
        self.each.iter().all(|rendition| !rendition.is_up)
    }

    /// Takes a packet of a rendition. Returns what the stream gets of it, if anything.
    pub(super) fn take(
        &mut self,
        now: Time,
        index: usize,
        origin: &Origin,
        parsed: Parsed,
    ) -> Result<Option<Taken>, DropReason> {
        let Renditions { each, timeline, reference, began, .. } = self;
        let (rendition, is_reference) = (&mut each[index], index == *reference);
        let fit = rendition.fit.as_mut().ok_or(DropReason::Unfit)?;
        let Some((fitted, is_main)) = fit.apply(parsed, origin, timeline, (index, is_reference)) else {
            return Ok(None);
        };
        let has_come = is_main && !core::mem::replace(&mut rendition.is_up, true);
        if is_main {
            (rendition.is_missed, rendition.last) = (false, now);
            began.get_or_insert(now);
        }
        let parsed = fitted.ok_or(DropReason::Malformed)?;
        if has_come {
            self.changed();
        }
        let clock = self.clock.filter(|_| has_come && is_reference && is_main);
        Ok(Some(Taken { parsed, is_main, clock }))
    }
}

impl Rendition {
    /// The stream's format for a sink that receives this rendition: what a decoder of its main track has to
    /// know is its own.
    fn as_of(&self, stream: &Format) -> Option<Format> {
        let (Some(Fit::Rtp { main, .. }), Format::Rtp(tracks)) = (&self.fit, stream) else { return None };
        let own = self.format.as_ref()?.track(*main)?;
        let mut tracks = tracks.clone();
        let track = tracks.get_mut(usize::from(stream.main_track()))?;
        *track = Track { payload_type: track.payload_type, ..own.clone() };
        Some(Format::Rtp(tracks))
    }

    /// Whether sinks that want it are served by others.
    fn is_passed_over(&self) -> bool {
        self.is_missed || (self.format.is_some() && self.fit.is_none())
    }
}
