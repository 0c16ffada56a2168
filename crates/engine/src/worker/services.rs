//! The services of a stream, of which stages may run in other contexts.

use outflow_context::{Arrived, Line};
use outflow_graph::NodeReport;
use outflow_media::Time;
use outflow_relay::Stream;
use outflow_relay::control::Stages;

use crate::clock::Clock;
use crate::message::{ControlError, Reply, Services, Swapped};

/// Where the stages of a stream's services are, and what comes next.
#[derive(Debug, Default)]
pub(super) struct LiveServices {
    /// To the contexts in which other stages of its services run.
    line: Option<Line>,
    /// The same, whose stages are here.
    stages_here: Option<Line>,
    /// Services that are put in place once all stages have come back; or those that are there, bound
    /// again.
    next: Option<Next>,
    /// What there is to say of its services.
    note: Option<String>,
}

/// What happens once all stages of a stream's services have come back.
#[derive(Debug)]
struct Next {
    began: Time,
    /// Other services, and the caller that waits for them; without, those that are there go on.
    put: Option<(Services, Reply<Swapped>)>,
}

impl LiveServices {
    /// What there is to say of them.
    pub(super) fn note(&self) -> Option<&String> {
        self.note.as_ref()
    }

    /// What elements in other contexts show, as [`Line::reports`] has it.
    pub(super) fn reports_elsewhere(&self) -> impl Iterator<Item = (NodeReport, u64, u64)> {
        self.line.iter().flat_map(Line::reports)
    }

    /// Puts other services in place, between two packets. What was there before goes back to control,
    /// which lets it go: that can take long. Stages that run elsewhere come back before; packets wait
    /// for that. Returns whether they are in place.
    pub(super) fn put(
        &mut self,
        core: &mut Stream,
        services: Services,
        reply: Reply<Swapped>,
        clock: &Clock,
    ) -> bool {
        let now = clock.now();
        if let Some(Next { put: Some((_, earlier)), .. }) = self.next.take() {
            // Control asks for one after the other.
            let text = "other services were asked for before these were in place".to_owned();
            let _ = earlier.send(Err(ControlError::Configuration(text)));
        }
        self.recall(core, now);
        self.next = Some(Next { began: now, put: Some((services, reply)) });
        let is_here = self.line.is_none();
        if is_here {
            self.go_on(core, clock);
        }
        is_here
    }

    /// Does what the stream asks for its stages in other contexts.
    pub(super) fn see_to_stages(&mut self, core: &mut Stream, now: Time, what: Stages) {
        match what {
            Stages::Give(far) => {
                if let Some(line) = &mut self.line {
                    far.into_iter().for_each(|far| line.give(now, far));
                    line.wake();
                }
            }
            Stages::TakeOut => self.launch(core),
            Stages::Recall if self.next.is_none() => {
                self.recall(core, now);
                self.next = Some(Next { began: now, put: None });
            }
            // They are on their way back.
            Stages::Recall => {}
        }
    }

    /// Sends stages out that are here. Until it is known what comes in they stay: they would have to come
    /// back to be told, and no receiver could be served meanwhile.
    fn launch(&mut self, core: &mut Stream) {
        if core.services_are_bound()
            && let Some(mut line) = self.stages_here.take()
        {
            line.launch(core.take_stages());
            self.line = Some(line);
        }
    }

    /// Asks all stages back. What came before them has gone out.
    fn recall(&mut self, core: &mut Stream, now: Time) {
        let is_on_its_way = self.next.is_some();
        let Some(line) = &mut self.line else { return };
        core.hold_services(now).into_iter().for_each(|far| line.give(now, far));
        if !is_on_its_way {
            line.recall();
        }
    }

    /// Takes what comes back from other contexts. Returns whether there was anything.
    pub(super) fn take_near(&mut self, core: &mut Stream, now: Time, clock: &Clock) -> bool {
        let mut any = false;
        while let Some(arrived) = self.line.as_mut().and_then(Line::take) {
            any = true;
            match arrived {
                Arrived::Packet(exit, item) => core.handle_near(now, exit, item),
                Arrived::Messages(told_at, messages) => core.hear_near(told_at, messages),
                Arrived::Stages(stages) => {
                    core.put_stages(now, stages);
                    self.go_on(core, clock);
                }
            }
        }
        any
    }

    /// All stages are here: the services that are to come next are put in place, and sent out.
    fn go_on(&mut self, core: &mut Stream, clock: &Clock) {
        let mut done = None;
        // Nothing comes next if they were asked back twice: those that are there go on.
        if let Some(Next { began, put: Some((Services { graph, line, note }, reply)) }) = self.next.take() {
            let before = core.set_services(clock.now(), graph);
            (self.line, self.note) = (line, note);
            done = Some((before, began, reply));
        }
        self.stages_here = self.line.take();
        self.launch(core);
        core.release_services();
        if let Some((before, began, reply)) = done {
            // The caller that asked may have gone; the services are there all the same.
            let _ = reply.send(Ok(Swapped { before, took: clock.now().since(began) }));
        }
    }
}

#[cfg(test)]
mod tests;
