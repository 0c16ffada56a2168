//! Receivers at a relay, and the time in which they had nothing.

use core::time::Duration;

use outflow_media::{Format, Time};
use outflow_routing::Level;

use super::super::{Figures, Viewer};
use super::TreeWant;
use super::limits::DARK;

/// Receivers that come and go together.
#[derive(Debug)]
struct Want {
    level: Level,
    count: u64,
    at: Time,
    until: Option<Time>,
    is_there: bool,
    /// What one of them sees, since they came.
    viewer: Option<Viewer>,
}

impl Want {
    fn new(model: &TreeWant) -> Result<Self, &'static str> {
        let level = Level::new(model.level).ok_or("level must be 1 to 127")?;
        if model.count == 0 {
            return Err("count must be 1 or more");
        }
        if model.until.is_some_and(|until| until <= model.at) {
            return Err("until must be later than at");
        }
        let (at, until) = (Time::ZERO + model.at, model.until.map(|until| Time::ZERO + until));
        Ok(Want { level, count: model.count, at, until, is_there: false, viewer: None })
    }

    /// When they come or go.
    fn due(&self) -> Option<Time> {
        if self.is_there { self.until } else { Some(self.at).filter(|_| self.viewer.is_none()) }
    }
}

/// Receivers have come or gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) want: u32,
    pub(super) is_there: bool,
    pub(super) level: Level,
    /// How many want this level now.
    pub(super) count: u64,
}

/// All receivers at a relay.
#[derive(Debug)]
pub(super) struct Wants {
    format: Format,
    all: Vec<Want>,
    /// Since when there are any.
    since: Option<Time>,
    /// When a packet came here last.
    media: Option<Time>,
    dark: Duration,
}

impl Wants {
    /// # Errors
    ///
    /// What cannot be, and what to write.
    pub(super) fn new(models: &[TreeWant], format: Format) -> Result<Self, String> {
        let want = |(index, model)| Want::new(model).map_err(|must| format!("wants[{index}].{must}"));
        let all = models.iter().enumerate().map(want).collect::<Result<_, _>>()?;
        Ok(Wants { format, all, since: None, media: None, dark: Duration::ZERO })
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.all.iter().filter_map(Want::due).min()
    }

    /// The next ones that come or go now.
    pub(super) fn handle_timeout(&mut self, now: Time) -> Option<Change> {
        let index = self.all.iter().position(|want| want.due().is_some_and(|at| at <= now))?;
        let want = &mut self.all[index];
        want.is_there = !want.is_there;
        if want.is_there {
            want.viewer = Some(Viewer::new(now, &self.format));
        }
        let (is_there, level) = (want.is_there, want.level);
        self.look(now);
        let count = self.there().filter(|want| want.level == level).map(|want| want.count).sum();
        Some(Change { want: index as u32, is_there, level, count })
    }

    fn there(&self) -> impl Iterator<Item = &Want> {
        self.all.iter().filter(|want| want.is_there)
    }

    fn look(&mut self, now: Time) {
        if self.there().next().is_some() {
            self.since.get_or_insert(now);
        } else {
            self.dark += self.gap(now);
            self.since = None;
        }
    }

    /// For how long they have had nothing, if it is long.
    fn gap(&self, now: Time) -> Duration {
        let Some(since) = self.since else { return Duration::ZERO };
        let gap = now.since(self.media.map_or(since, |media| media.max(since)));
        if gap > DARK { gap } else { Duration::ZERO }
    }

    /// A packet of the stream has come to the relay.
    pub(super) fn handle_media(&mut self, now: Time) {
        self.dark += self.gap(now);
        self.media = Some(now);
    }

    /// A packet is for these.
    pub(super) fn handle_packet(&mut self, now: Time, want: u32, packet: &[u8]) {
        if let Some(viewer) = self.all.get_mut(want as usize).and_then(|want| want.viewer.as_mut()) {
            viewer.handle(now, packet);
        }
    }

    /// What came of them together. Each want counts once, however many receivers it stands for.
    pub(super) fn figures(&self, now: Time, figures: &mut Figures) {
        let viewers = self.all.iter().filter_map(|want| want.viewer.as_ref());
        if viewers.clone().next().is_some() {
            Viewer::figures_of(viewers, figures);
        }
        let receivers: u64 = self.there().map(|want| want.count).sum();
        figures.insert("receivers", receivers as f64);
        figures.insert("dark_ms", (self.dark + self.gap(now)).as_secs_f64() * 1e3);
    }
}
