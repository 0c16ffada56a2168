//! Services of the streams, as control asks for them.

use outflow_graph::{Unfit, View};
use outflow_media::Time;
use outflow_relay::{Selection, SinkKey};

use super::Worker;
use super::stream::LiveStream;
use crate::clock::Clock;
use crate::context::{Arrived, Line};
use crate::message::{
    ControlError, Described, ReceiverId, Reply, Services, ServicesCommand, StreamId, Swapped,
};

impl Worker {
    /// Does what control asks about services.
    pub(super) fn obey_services(&mut self, command: ServicesCommand) {
        match command {
            ServicesCommand::Put { stream, services, reply } => self.set_services(stream, services, reply),
            ServicesCommand::View { stream, receiver, view, reply } => {
                // The caller that asked may have gone; it is done all the same. So below.
                let now = self.clock.now();
                let set = |stream: &mut LiveStream, key| stream.core.set_view(now, key, view);
                let _ = reply.send(self.set_wish((stream, receiver), set));
            }
            ServicesCommand::Level { stream, receiver, level, reply } => {
                let set = |stream: &mut LiveStream, key| stream.core.set_level(key, level);
                let _ = reply.send(self.set_wish((stream, receiver), set));
            }
            ServicesCommand::Session { stream, receiver, level, reply } => {
                let _ = reply.send(self.ask_session((stream, receiver), level));
            }
            ServicesCommand::Bypass { stream, element, bypass, reply } => {
                let _ = reply.send(self.set_bypass(stream, &element, bypass));
            }
        }
    }

    /// What a stream, or one of its branches, carries.
    pub(super) fn describe(&mut self, id: StreamId, wanted: &Selection) -> Result<Described, ControlError> {
        let index = self.find(id)?;
        let stream = &mut self.streams[index];
        let branch = wanted.branch.as_deref().map(|name| stream.core.branch_named(name)).transpose();
        let branch = branch.map_err(|unfit| unsupported(&stream.name, &unfit))?;
        let carried =
            stream.core.views(branch, wanted.view).map_err(|unfit| unsupported(&stream.name, &unfit))?;
        let format = carried.ok_or_else(|| ControlError::NoSource(stream.name.clone()))?;
        let is_whole = branch.is_none() && wanted.view == View::default();
        Ok(Described { format, levels: if is_whole { stream.core.levels() } else { 0 } })
    }

    /// Puts other services in place, between two packets. What was there before goes back to control,
    /// which lets it go: that can take long. Stages that run elsewhere come back before; packets wait
    /// for that.
    pub(super) fn set_services(&mut self, id: StreamId, services: Services, reply: Reply<Swapped>) {
        let index = match self.find(id) {
            Ok(index) => index,
            Err(error) => return drop(reply.send(Err(error))),
        };
        self.streams[index].put_services(services, reply, &self.clock);
    }

    /// Takes what comes back from other contexts.
    pub(super) fn take_near(&mut self) {
        let now = self.clock.now();
        for (_, stream) in &mut self.streams {
            stream.take_near(now, &self.clock);
        }
    }

    /// Lets a receiver have something else from now on.
    fn set_wish(
        &mut self,
        (id, receiver): (StreamId, ReceiverId),
        set: impl FnOnce(&mut LiveStream, SinkKey) -> Result<(), Unfit>,
    ) -> Result<(), ControlError> {
        let mut done = Err(ControlError::UnknownReceiver(receiver));
        self.with_sink(id, receiver, |stream, key| {
            done = set(stream, key).map_err(|unfit| unsupported(&stream.name, &unfit));
            stream.count_wish(key);
        });
        done
    }

    /// Lets an element pass everything as it is, or no longer.
    pub(super) fn set_bypass(
        &mut self,
        id: StreamId,
        element: &str,
        bypass: bool,
    ) -> Result<(), ControlError> {
        let index = self.find(id)?;
        let stream = &mut self.streams[index];
        if stream.core.services().is_some_and(|graph| graph.turns(element)) {
            let what = format!("'{element}' makes something else of what comes in");
            let unfit = Unfit::new(what, "change the services, with `bypass` at the element or without it");
            return Err(unsupported(&stream.name, &unfit));
        }
        if stream.core.set_bypass(element, bypass) {
            return Ok(());
        }
        Err(ControlError::UnknownElement(element.to_owned(), stream.name.clone()))
    }
}

impl LiveStream {
    fn put_services(&mut self, services: Services, reply: Reply<Swapped>, clock: &Clock) {
        let now = clock.now();
        if let Some(Next { put: Some((_, earlier)), .. }) = self.next.take() {
            // Control asks for one after the other.
            let text = "other services were asked for before these were in place".to_owned();
            let _ = earlier.send(Err(ControlError::Configuration(text)));
        }
        self.recall(now);
        self.next = Some(Next { began: now, put: Some((services, reply)) });
        if self.line.is_none() {
            self.go_on(clock);
        }
    }

    /// Gives to other contexts what is for them.
    pub(super) fn give_far(&mut self, now: Time) {
        if self.core.services_wait() && self.next.is_none() {
            self.recall(now);
            self.next = Some(Next { began: now, put: None });
        }
        self.launch();
        let Some(line) = &mut self.line else { return };
        let mut any = false;
        for far in self.core.far() {
            line.give(now, far);
            any = true;
        }
        if any {
            line.wake();
        }
    }

    /// Sends stages out that are here. Until it is known what comes in they stay: they would have to come
    /// back to be told, and no receiver could be served meanwhile.
    fn launch(&mut self) {
        if self.core.services_are_bound()
            && let Some(mut line) = self.at_home.take()
        {
            line.launch(self.core.take_stages());
            self.line = Some(line);
        }
    }

    /// Asks all stages back. What came before them has gone out.
    fn recall(&mut self, now: Time) {
        let is_on_its_way = self.next.is_some();
        let Some(line) = &mut self.line else { return };
        self.core.hold_services(now);
        self.core.far().for_each(|far| line.give(now, far));
        if !is_on_its_way {
            line.recall();
        }
    }

    fn take_near(&mut self, now: Time, clock: &Clock) {
        while let Some(arrived) = self.line.as_mut().and_then(Line::take) {
            self.touched = true;
            match arrived {
                Arrived::Packet(exit, item) => self.core.handle_near(now, exit, item),
                Arrived::Messages(told_at, messages) => self.core.hear_near(told_at, messages),
                Arrived::Stages(stages) => {
                    self.core.put_stages(now, stages);
                    self.go_on(clock);
                }
            }
        }
    }

    /// All stages are here: the services that are to come next are put in place, and sent out.
    fn go_on(&mut self, clock: &Clock) {
        self.touched = true;
        let mut done = None;
        // Nothing comes next if they were asked back twice: those that are there go on.
        if let Some(Next { began, put: Some((Services { graph, line, note }, reply)) }) = self.next.take() {
            let before = self.core.set_services(clock.now(), graph);
            (self.line, self.note) = (line, note);
            done = Some((before, began, reply));
        }
        self.at_home = self.line.take();
        self.launch();
        self.core.release_services();
        if let Some((before, began, reply)) = done {
            // The caller that asked may have gone; the services are there all the same.
            let _ = reply.send(Ok(Swapped { before, took: clock.now().since(began) }));
        }
    }
}

/// What happens once all stages of a stream's services have come back.
#[derive(Debug)]
pub(super) struct Next {
    began: Time,
    /// Other services, and the caller that waits for them; without, those that are there go on.
    put: Option<(Services, Reply<Swapped>)>,
}

/// What a stream cannot do, in words.
pub(super) fn unsupported(stream: &str, unfit: &Unfit) -> ControlError {
    ControlError::Unsupported(format!("'{stream}': {unfit}"))
}

#[cfg(test)]
mod tests;
