//! A lane of a context's part of a line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outflow_graph::{NodeReport, Stage};
use outflow_media::Time;

use crate::inlet::Inlet;
use crate::limits::CONTEXT_PACKETS;
use crate::outlet::Outlet;
use crate::passed::{ForAll, Passed};

/// What can be seen of it from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Shown {
    reports: arc_swap::ArcSwap<Vec<NodeReport>>,
    /// Packets that found the queues to it full.
    dropped: Arc<AtomicU64>,
    /// Packets in those queues when they were last looked at.
    queued: AtomicU64,
}

impl Shown {
    /// Adds it to what other lanes show, which begins at `first`.
    pub(super) fn add_to(&self, all: &mut Vec<(NodeReport, u64, u64)>, first: usize) {
        for (index, report) in self.reports.load().iter().enumerate() {
            match all.get_mut(first + index) {
                Some((known, _, _)) => known.add(report),
                None => all.push((report.clone(), 0, 0)),
            }
        }
        if let Some((_, dropped, queued)) = all.get_mut(first) {
            *dropped += self.dropped.load(Ordering::Relaxed);
            *queued += self.queued.load(Ordering::Relaxed);
        }
    }
}

/// A lane of a context's part of a line.
#[derive(Debug)]
pub(super) struct Hop {
    /// Its context along the line, and its lane there.
    at: (usize, usize),
    inlet: Inlet,
    outlet: Outlet,
    stage: Option<Stage>,
    /// When it was told last to work.
    now: Time,
    shown: Arc<Shown>,
}

impl Hop {
    pub(super) fn new(at: (usize, usize), inlet: Inlet, outlet: Outlet, dropped: Arc<AtomicU64>) -> Self {
        let shown = Arc::new(Shown { dropped, ..Shown::default() });
        Hop { at, inlet, outlet, stage: None, now: Time::ZERO, shown }
    }

    pub(super) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Whether the owner has let the line go.
    pub(super) fn is_over(&self) -> bool {
        self.inlet.is_over()
    }

    /// Works on what has come, for a while. Returns whether there was anything.
    pub(super) fn work(&mut self) -> bool {
        self.outlet.flush();
        let mut any = false;
        for _ in 0..CONTEXT_PACKETS {
            let Some(passed) = self.inlet.take() else { break };
            any = true;
            self.pass(passed);
        }
        if any {
            self.outlet.ring();
        }
        any
    }

    fn pass(&mut self, passed: Passed) {
        match passed {
            Passed::Packet(to, item) => {
                let left = match &mut self.stage {
                    Some(stage) => stage.take(to, item),
                    None => Some(item),
                };
                if let Some(item) = left {
                    self.outlet.packet(self.now, to, item);
                }
            }
            Passed::End(now) => {
                self.run(now);
                self.outlet.end(now);
            }
            Passed::Turn(now) => {
                self.run(now);
                self.outlet.turn(now);
            }
            Passed::ForAll(for_all) => {
                let for_all = self.hear(for_all);
                self.outlet.all(for_all);
            }
        }
    }

    /// Lets its elements work on what they were given.
    fn run(&mut self, now: Time) {
        self.now = now;
        let Hop { stage: Some(stage), outlet, .. } = self else { return };
        stage.run(now, Some(crate::clock::probe), &mut |to, item| outlet.packet(now, to, item));
    }

    /// Does what all lanes are to do; what the next are to do.
    fn hear(&mut self, for_all: ForAll) -> ForAll {
        match (for_all, &mut self.stage) {
            (ForAll::Stages(stages), stage) => {
                *stage = stages.take(self.at);
                ForAll::Stages(stages)
            }
            (ForAll::Recall(stages), stage) => {
                stages.put(self.at, stage.take());
                ForAll::Recall(stages)
            }
            (for_all, None) => for_all,
            (ForAll::Messages(now, mut told), Some(stage)) => {
                self.now = now;
                told.retain(|(to, message)| stage.hear(*to, *message).is_some());
                stage.tell(now, &mut |to, message| told.push((to, message)));
                ForAll::Messages(now, told)
            }
            (ForAll::Wanted(wanted), Some(stage)) => {
                stage.set_wanted(&wanted);
                ForAll::Wanted(wanted)
            }
            (ForAll::Bypass(name, bypass), Some(stage)) => {
                stage.set_bypass(&name, bypass);
                ForAll::Bypass(name, bypass)
            }
        }
    }

    /// Shows how its elements fare.
    pub(super) fn show(&self) {
        self.shown.queued.store(self.inlet.queued() as u64, Ordering::Relaxed);
        let reports = self.stage.iter().flat_map(Stage::report).collect();
        self.shown.reports.store(Arc::new(reports));
    }
}
