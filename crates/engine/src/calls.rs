//! What calls a worker to one of its streams, so that it looks at no other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use outflow_context::Owner;

use crate::bell::Bell;
use crate::message::StreamId;

/// Calls a worker to one of its streams: something was put down for it. Calling again before the worker has looked
/// costs nothing.
#[derive(Debug, Clone)]
pub struct Caller {
    call: Arc<Call>,
    callers: Callers,
}

#[derive(Debug)]
struct Call {
    stream: StreamId,
    is_made: AtomicBool,
}

/// What makes the callers of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Callers {
    made: mpsc::Sender<Arc<Call>>,
    bell: Arc<Bell>,
}

/// The calls that a worker has not answered: one a caller at most.
#[derive(Debug)]
pub(crate) struct Calls {
    made: mpsc::Receiver<Arc<Call>>,
    taken: Vec<Arc<Call>>,
}

/// The two ends; the worker hears this bell.
pub(crate) fn calls(bell: Arc<Bell>) -> (Callers, Calls) {
    // bounded: a caller stands there once.
    let (sender, made) = mpsc::channel();
    (Callers { made: sender, bell }, Calls { made, taken: Vec::new() })
}

impl Callers {
    /// What calls to this stream.
    pub(crate) fn to(&self, stream: StreamId) -> Caller {
        let call = Arc::new(Call { stream, is_made: AtomicBool::new(false) });
        Caller { call, callers: self.clone() }
    }
}

impl Caller {
    /// Calls.
    pub fn ring(&self) {
        if !self.call.is_made.swap(true, Ordering::AcqRel) {
            // A worker that has ended has nothing to look at.
            let _ = self.callers.made.send(Arc::clone(&self.call));
        }
        self.callers.bell.ring();
    }
}

impl Owner for Caller {
    fn ring(&self) {
        Caller::ring(self);
    }
}

impl Calls {
    /// Takes the calls. What is put down after this is called to again.
    pub(crate) fn take(&mut self, streams: &mut Vec<StreamId>) {
        // All before any is answered: one that calls at once again waits for the next time.
        self.taken.extend(self.made.try_iter());
        for call in self.taken.drain(..) {
            call.is_made.swap(false, Ordering::AcqRel);
            streams.push(call.stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_called_to_once_until_that_is_answered() {
        let (callers, mut calls) = calls(Arc::new(Bell::new().expect("an eventfd")));
        let (one, other) = (callers.to(1), callers.to(2));
        one.ring();
        other.ring();
        one.ring();
        let mut streams = Vec::new();
        calls.take(&mut streams);
        assert_eq!(streams, [1, 2]);
        calls.take(&mut streams);
        assert_eq!(streams, [1, 2], "nothing since");
        one.ring();
        calls.take(&mut streams);
        assert_eq!(streams, [1, 2, 1]);
    }
}
