//! Services of the streams, as control asks for them.

use outflow_media::Format;
use outflow_relay::graph::{Graph, Unfit};

use super::Worker;
use crate::message::{ControlError, StreamId, Swapped, Wanted};

impl Worker {
    /// What a stream, or one of its branches, carries.
    pub(super) fn describe(&mut self, id: StreamId, wanted: &Wanted) -> Result<Format, ControlError> {
        let index = self.find(id)?;
        let stream = &mut self.streams[index];
        let branch = wanted.branch.as_deref().map(|name| stream.core.branch_named(name));
        let carried = stream.core.carries(branch).map_err(|unfit| unsupported(&stream.name, &unfit))?;
        carried.ok_or_else(|| ControlError::NoSource(stream.name.clone()))
    }

    /// Puts other services in place, between two packets. What was there before goes back to control,
    /// which lets it go: that can take long.
    pub(super) fn set_services(
        &mut self,
        id: StreamId,
        (graph, note): (Option<Box<Graph>>, Option<String>),
    ) -> Result<Swapped, ControlError> {
        let index = self.find(id)?;
        let began = self.clock.now();
        let stream = &mut self.streams[index];
        let before = stream.core.set_services(began, graph);
        (stream.touched, stream.note) = (true, note);
        Ok(Swapped { before, took: self.clock.now().since(began) })
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
        if stream.core.set_bypass(element, bypass) {
            return Ok(());
        }
        Err(ControlError::UnknownElement(element.to_owned(), stream.name.clone()))
    }
}

/// What a stream cannot do, in words.
pub(super) fn unsupported(stream: &str, unfit: &Unfit) -> ControlError {
    ControlError::Unsupported(format!("'{stream}': {unfit}"))
}
