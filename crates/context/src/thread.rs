//! The thread of a context.

use std::convert::Infallible;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use outflow_vital::Vital;

use crate::error::LineError;
use crate::hop::Hop;
use crate::limits::{BACKGROUND_NICE, CONTEXT_IDLE, CONTEXT_SHOWN};
use crate::ringer::{Parked, Ringer};

/// A context as control holds it. Its thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Thread {
    parked: Arc<Parked>,
    hops: mpsc::Sender<Hop>,
}

impl Thread {
    /// Starts one. Should it stand back, others have the processor first. If it panics, `vital` learns of it.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start(name: &str, stands_back: bool, vital: Vital) -> Result<Self, LineError> {
        let parked = Arc::new(Parked::default());
        // bounded: control adds a hop where services are made, which is done for one stream after the other.
        let (hops, new) = mpsc::channel();
        let shared = Arc::clone(&parked);
        let thread = format!("context-{name}");
        std::thread::Builder::new()
            .name(thread.clone())
            .spawn(move || {
                outflow_privilege::give_up_privileges(&thread);
                if stands_back {
                    stand_back();
                }
                vital.keep(&thread, || {
                    run(&shared, &new);
                    Ok::<_, Infallible>(())
                });
            })
            .map_err(|error| LineError::System { context: name.to_owned(), error })?;
        Ok(Thread { parked, hops })
    }

    pub(super) fn ringer(&self) -> Ringer {
        Ringer::Context(Arc::clone(&self.parked))
    }

    /// Gives it its part of a line.
    pub(super) fn attach(&self, hop: Hop) {
        // A thread that is gone has panicked, and said so.
        let _ = self.hops.send(hop);
        self.parked.wake();
    }
}

/// Lets this thread stand back behind those that carry packets. Where that is refused, it takes its turns
/// like others.
pub fn stand_back() {
    let _ = rustix::process::nice(BACKGROUND_NICE);
}

fn run(parked: &Parked, new: &mpsc::Receiver<Hop>) {
    parked.begin();
    let mut hops: Vec<Hop> = Vec::new();
    let mut shown = Instant::now();
    loop {
        parked.clear();
        loop {
            match new.try_recv() {
                Ok(hop) => hops.push(hop),
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) if hops.is_empty() => return,
                Err(mpsc::TryRecvError::Disconnected) => break,
            }
        }
        let mut any = false;
        for hop in &mut hops {
            any |= hop.work();
        }
        hops.retain(|hop| !hop.is_over());
        if shown.elapsed() >= CONTEXT_SHOWN {
            shown = Instant::now();
            hops.iter().for_each(Hop::show);
        }
        if !any && !parked.is_woken() {
            std::thread::park_timeout(idle(&hops));
        }
    }
}

/// How long to sleep: what is shown may be read, and what waits for a full queue is tried again.
fn idle(hops: &[Hop]) -> Duration {
    if hops.is_empty() { CONTEXT_IDLE } else { CONTEXT_SHOWN }
}
