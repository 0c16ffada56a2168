//! A task that holds a connection which could go on in another process.

use std::sync::Arc;

use tokio::sync::watch;

use super::Part;
use super::parts::{Parts, Phase};

/// A task's place among those that are asked for their parts; given back when dropped.
#[derive(Debug)]
pub struct Member {
    front: &'static str,
    phase: watch::Receiver<Phase>,
    parts: Arc<Parts>,
    brings_media: bool,
}

impl Member {
    pub(super) fn new(front: &'static str, parts: &Arc<Parts>) -> Self {
        Member { front, phase: parts.join(), parts: Arc::clone(parts), brings_media: false }
    }

    /// Media waits for it while it stands still: from now on it is asked last, once the relay stands still.
    pub fn brings_media(&mut self) {
        if !std::mem::replace(&mut self.brings_media, true) {
            self.parts.bring_media();
        }
    }

    /// Waits until its part is asked for. Nothing is lost if this is cancelled.
    pub async fn asked(&mut self) {
        // What tells is part of what this holds.
        let _ = self.phase.wait_for(|phase| phase.asks(self.brings_media)).await;
    }

    /// Gives its part (none: it cannot go on elsewhere), and waits until it is known what becomes of it. `true`: it is
    /// another process's now, and this one ends it without a word to its peer. `false`: it goes on here.
    pub async fn give(&mut self, part: Option<Part>) -> bool {
        self.parts.put(self.front, part);
        let then = self.phase.wait_for(|phase| matches!(phase, Phase::Runs | Phase::Gone)).await;
        then.is_ok_and(|phase| *phase == Phase::Gone)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.parts.leave(self.brings_media);
    }
}
