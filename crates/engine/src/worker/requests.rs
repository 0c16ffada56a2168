//! What control asks about streams' services, and receivers about what they get of them.

use outflow_graph::{Unfit, View};
use outflow_media::Time;
use outflow_relay::{Encapsulation, Selection, SinkKey, SinkSpec, Transport};

use super::links::Links;
use super::stream::LiveStream;
use super::streams::Streams;
use crate::clock::Clock;
use crate::message::{
    ControlError, Described, ReceiverId, Reply, Services, ServicesCommand, StreamId, Swapped,
};

impl Streams {
    /// Does what control asks about services.
    pub(super) fn obey(&mut self, clock: &Clock, links: &mut Links, command: ServicesCommand) {
        match command {
            ServicesCommand::Put { stream, services, reply } => {
                self.set_services(clock, stream, services, reply);
            }
            ServicesCommand::View { stream, receiver, view, reply } => {
                // The caller that asked may have gone; it is done all the same. So below.
                let now = clock.now();
                let set = |stream: &mut LiveStream, key| stream.core.set_view(now, key, view);
                let _ = reply.send(self.set_wish((stream, receiver), (now, links), set));
            }
            ServicesCommand::Level { stream, receiver, level, reply } => {
                let set = |stream: &mut LiveStream, key| stream.core.set_level(key, level);
                let _ = reply.send(self.set_wish((stream, receiver), (clock.now(), links), set));
            }
            ServicesCommand::Session { stream, receiver, level, reply } => {
                // It leaves at times while its session is asked.
                let mut answer = Err(ControlError::UnknownSession);
                self.with_sink(stream, receiver, |stream, key| {
                    answer = stream.ask_session(clock.now(), key, level, links);
                });
                let _ = reply.send(answer);
            }
            ServicesCommand::Bypass { stream, element, bypass, reply } => {
                let _ = reply.send(self.set_bypass(stream, &element, bypass));
            }
        }
    }

    /// What a stream, or one of its branches, carries.
    pub(super) fn describe(
        &mut self,
        id: StreamId,
        (wanted, form): &(Selection, Encapsulation),
    ) -> Result<Described, ControlError> {
        let index = self.find(id)?;
        let stream = &mut self[index];
        let branch = wanted.branch.as_deref().map(|name| stream.core.branch_named(name)).transpose();
        let branch = branch.map_err(|unfit| stream.unsupported(&unfit))?;
        let sink = SinkSpec { branch, view: wanted.view, ..SinkSpec::new(*form, Transport::Datagram) };
        let carried = match form {
            Encapsulation::Tracks => stream.core.offer(&sink),
            _ => stream.core.views(branch, wanted.view),
        };
        let carried = carried.map_err(|unfit| stream.unsupported(&unfit))?;
        let format = carried.ok_or_else(|| ControlError::NoSource(stream.name.clone()))?;
        let is_whole = branch.is_none() && wanted.view == View::default();
        Ok(Described { format, levels: if is_whole { stream.core.levels() } else { 0 } })
    }

    fn set_services(&mut self, clock: &Clock, id: StreamId, services: Services, reply: Reply<Swapped>) {
        match self.find(id) {
            Ok(index) => self[index].put_services(services, reply, clock),
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Lets a receiver have something else from now on.
    fn set_wish(
        &mut self,
        (id, receiver): (StreamId, ReceiverId),
        (now, links): (Time, &mut Links),
        set: impl FnOnce(&mut LiveStream, SinkKey) -> Result<(), Unfit>,
    ) -> Result<(), ControlError> {
        let mut done = Err(ControlError::UnknownReceiver(receiver));
        self.with_sink(id, receiver, |stream, key| {
            let before = stream.wish(key);
            let is_set = set(stream, key).map_err(|unfit| stream.unsupported(&unfit));
            done = is_set.and_then(|()| stream.keep_within_link(now, key, before, links));
            stream.count_wish(key);
        });
        done
    }

    /// Lets an element pass everything as it is, or no longer.
    fn set_bypass(&mut self, id: StreamId, element: &str, bypass: bool) -> Result<(), ControlError> {
        let index = self.find(id)?;
        let stream = &mut self[index];
        if stream.core.services().is_some_and(|graph| graph.turns(element)) {
            let what = format!("'{element}' makes something else of what comes in");
            let unfit = Unfit::new(what, "change the services, with `bypass` at the element or without it");
            return Err(stream.unsupported(&unfit));
        }
        if stream.core.set_bypass(element, bypass) {
            return Ok(());
        }
        Err(ControlError::UnknownElement(element.to_owned(), stream.name.clone()))
    }
}
